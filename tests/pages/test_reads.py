"""A read writes nothing: neither SQL nor Redis.

Exceptions, each by itself: the session, when people were last seen, ids that a process takes in blocks, and the audit
entry for a sensitive value that somebody was shown. A preview is a step that is not committed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from machines.models import Machine
from tests import wire
from tests.cases import for_each

from .table import TABLE

WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)
COUNTING = {"sb_ranks", "sb_distinct_count", "sb_throttle"}
"""Functions that read scoreboards and distinct counts, and may keep a sum of them for a moment; and the rate limit."""
NOTED = {"sb_ids"}
"""Blocks of ids."""
APART = re.compile(r"INSERT .*auditentry|(INSERT|UPDATE) .*machines_lastseen")
"""An entry of the audit, and who was last seen."""
READS = {
    "GET", "MGET", "HGET", "HMGET", "HGETALL", "HKEYS", "HLEN", "EXISTS", "SMEMBERS", "ZRANGE", "ZCARD", "ZCOUNT",
    "ZSCORE", "ZREVRANGE", "LRANGE", "LLEN", "XINFO", "XRANGE", "XLEN", "INFO", "TIME", "TYPE", "SCAN", "CONFIG",
    "MEMORY", "PTTL", "TTL", "FCALL_RO", "WATCH", "UNWATCH",
}  # fmt: skip
SKIPPED = {"logout", "audit-export"}


@contextmanager
def written() -> Iterator[list[str]]:
    """SQL statements that write."""
    found: list[str] = []

    def look(execute, sql, params, many, context):
        if WRITES.match(sql) and not APART.match(sql):
            found.append(sql[:120])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        yield found


def is_write(command: wire.Command) -> bool:
    if command[0] == "FCALL":
        return command[1] not in COUNTING | NOTED and "dry" not in command
    return command[0] not in READS and wire.store_of(command) != "session"


def test_a_get_of_a_page_writes_neither_sql_nor_redis(as_, engine, filled):
    client = as_("supervisor", "sue")

    @for_each("name", sorted(name for name, entry in TABLE.items() if entry.right and name not in SKIPPED))
    def check(name):
        with written() as sql, wire.recorded() as traffic:
            client.get(TABLE[name].url(name))
        assert sql == []
        assert [command[:3] for command in traffic.commands if is_write(command)] == []

    check()


def test_a_page_of_a_machine_that_a_script_published_writes_nothing(as_, engine, waiting):
    client = as_("viewer")
    before = Machine.objects.count()
    with written() as sql:
        for address in ("", "rows/", "diagram.svg", "instances/ATV-123:NBCSports/"):
            assert client.get(f"/machines/activation/{address}").status_code == 200
        assert client.get("/api/v1/machines/activation/versions").status_code == 200
    assert (sql, Machine.objects.count()) == ([], before)
