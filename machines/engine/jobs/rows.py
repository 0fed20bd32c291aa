"""Reading jobs from their hashes, as ``sb_take`` and ``sb_jobs`` answer them: each field when somebody looks at it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from machines.engine import limits
from machines.engine.connection.replies import FieldTypes, read_whole

from .records import Job

Row = Mapping[str, Any]

_put = object.__setattr__


def read_job(machine: str, root: str, id: str, row: Row, data: dict[str, Any]) -> Job:
    """A job from its hash, which leaves out what is empty or as it is by default."""
    found: Job = Job.__new__(Job)
    _put(found, "id", id)
    _put(found, "machine", machine)
    _put(found, "root", root)
    _put(found, "data", data)
    _put(found, "_late", (_FIELDS, row))
    return found


def read_taken_jobs(
    machine: str, root: str, worker: str, reply: Sequence[Any], types_of: Callable[[str], FieldTypes]
) -> list[Job]:
    """The jobs ``sb_take`` gave. ``types_of``: how the data of a definition reads."""
    now, types, found = int(reply[2]), dict[str, FieldTypes](), []
    words = iter(reply)
    next(words), next(words), next(words)
    for id, flat, token, until, definition, text in zip(words, words, words, words, words, words, strict=True):
        if definition and definition not in types:
            types[definition] = types_of(definition)
        job: Job = Job.__new__(Job)
        _put(job, "id", id)
        _put(job, "machine", machine)
        _put(job, "root", root)
        _put(job, "token", token)
        pairs = iter(flat)
        row = dict(zip(pairs, pairs, strict=True))
        _put(job, "queue", row["queue"])
        _put(job, "src", row["src"])
        _put(job, "instance", row.get("instance", ""))
        _put(job, "attempt", 1 if token[:2] == "1-" else int(token.partition("-")[0]))
        _put(job, "timeout", int(row["timeout"]) if "timeout" in row else 0)
        _put(job, "lease", int(row["lease"]) if "lease" in row else limits.DEFAULT_LEASE)
        row[_LEASE] = (now, worker, token, until, text, types.get(definition))
        _put(job, "_late", (_FIELDS_OF_TAKEN, row))
        found.append(job)
    return found


_LEASE = ""  # no field of a hash: what was new to it when the job was taken


def _document(row: Row, name: str) -> Any:
    text = row.get(name)
    return json.loads(text) if text else None


_FIELDS: Mapping[str, Callable[[Row], Any]] = {
    "queue": lambda row: row["queue"],
    "src": lambda row: row["src"],
    "instance": lambda row: row.get("instance") or "",
    "invoke": lambda row: row.get("invoke") or "",
    "input": lambda row: _document(row, "input"),
    "attempt": lambda row: int(row.get("attempt") or 0),
    "attempts": lambda row: int(row.get("attempts") or limits.DEFAULT_ATTEMPTS),
    "token": lambda row: row.get("token") or "",
    "lease_until": lambda row: _moment(row.get("until")),
    "lease": lambda row: int(row.get("lease") or limits.DEFAULT_LEASE),
    "created": lambda row: _moment(row["created"]),
    "place": lambda row: row["place"],
    "worker": lambda row: row.get("worker") or "",
    "error": lambda row: row.get("error") or "",
    "kind": lambda row: row.get("kind") or "",
    "trace": lambda row: row.get("trace") or "",
    "priority": lambda row: _or(row.get("priority"), limits.DEFAULT_PRIORITY),
    "unique": lambda row: row.get("unique") or "",
    "timeout": lambda row: int(row.get("timeout") or 0),
    "deadline": lambda row: _moment(row.get("deadline")),
    "due": lambda row: _moment(row.get("due")) or _moment(row["created"]),
    "started": lambda row: _moment(row.get("started")) or _moment(row.get("taken")),
    "taken": lambda row: _moment(row.get("taken")),
    "finished": lambda row: _moment(row.get("finished")),
    "backoff": lambda row: _or(row.get("backoff"), limits.DEFAULT_BACKOFF),
    "jitter": lambda row: row.get("jitter") != "0",
    "stop": lambda row: tuple((row.get("stop") or "").split()),
    "progress": lambda row: _document(row, "progress"),
    "log": lambda row: tuple(_document(row, "log") or ()),
}


def _deadline(row: Row) -> int:
    timeout = int(row.get("timeout") or 0)
    return int(row[_LEASE][0]) + timeout if timeout else 0


def _data(row: Row) -> dict[str, Any]:
    text, types = row[_LEASE][4:]
    return types.typed(json.loads(text)) if types else {}


_FIELDS_OF_TAKEN: Mapping[str, Callable[[Row], Any]] = {
    **_FIELDS,
    "place": lambda row: "leased",
    "taken": lambda row: row[_LEASE][0],
    "worker": lambda row: row[_LEASE][1],
    "lease_until": lambda row: read_whole(row[_LEASE][3]),
    "started": lambda row: _moment(row.get("started")) or _moment(row.get("taken")) or row[_LEASE][0],
    "deadline": _deadline,
    "data": _data,
}


def _or(raw: Any, default: int) -> int:
    return default if raw is None else int(raw)


def _moment(raw: Any) -> int:
    return read_whole(raw) if raw else 0
