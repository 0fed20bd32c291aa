"""``machine inspect NAME ID`` prints every key that Redis holds of one instance, with its size and what it says;
``machine erase`` erases one person's data, and shows that nothing is left.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from machines.connections import get_engine
from machines.engine import Engine, limits
from machines.engine.errors import SignalboxError
from machines.engine.keys import Partition
from machines.engine.storage import Storage
from machines.people import rules
from machines.people.actor import Actor
from machines.retention.erasure import ErasureReport, erase, summarize

TIMES = ("_created", "_entered", "_suspended", "created", "due", "taken", "started", "deadline", "finished", "handled")
READ = {"hash": ("HGETALL",), "list": ("LRANGE", 0, -1), "string": ("GET",)}


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key of one instance. ``encoding``: how the server keeps it, by OBJECT ENCODING; ``bytes``: by MEMORY USAGE;
    both None where the account may not ask. ``content``: fields of a hash, steps of a history, other items as text."""

    name: str
    kind: str
    encoding: str | None
    bytes: int | None
    content: Any


def add_inspect_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a machine")
    parser.add_argument("id", metavar="ID", help="an instance")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print a list of objects")


def inspect_instance(stdout: OutputWrapper, name: str, id: str, as_json: bool) -> None:
    """Print the keys. Raises UnknownInstance, UnknownMachine."""
    engine = get_engine()
    storage = Storage(engine.client)
    partition = storage.partition(engine.keys, name, id)
    found = read_keys(engine, storage, partition, name, id)
    if as_json:
        stdout.write(json.dumps([asdict(key) for key in found], ensure_ascii=False, indent=2))
        return
    for key in found:
        _print(stdout, key)
    for state in found[0].content["_state"].split("\n"):
        score = storage.command("ZSCORE", partition.state(state), id)
        stdout.write(f"{partition.state(state)}: {'is missing' if score is None else f'since {_date(score)}'}")
    stdout.write(f"{sum(key.bytes or 0 for key in found)} bytes in {len(found)} keys of its own")


def read_keys(engine: Engine, storage: Storage, partition: Partition, machine: str, id: str) -> list[StoredKey]:
    """Read the keys of an instance, its hash first, and those of the jobs that it waits for."""
    engine.get(machine, id)  # raises for one that is not there
    raw = storage.command("HGETALL", partition.instance(id))
    names = [partition.instance(id), partition.history(id), partition.held(id), partition.undo(id)]
    names += [partition.job(job) for job in f"{raw.get('_jobs', '')} {raw.get('_dead', '')}".split()]
    found = []
    for name in names:
        kind = str(storage.command("TYPE", name))
        if kind == "none":
            continue
        if name == partition.history(id):
            content: Any = [step.as_dict() for step in engine.history(machine, id, limit=limits.MAX_HISTORY)[::-1]]
        else:
            content = _read(storage, name, kind)
        encoding, size = _ask(storage, "OBJECT", "ENCODING", name), _ask(storage, "MEMORY", "USAGE", name)
        found.append(StoredKey(name, kind, encoding, size and int(size), content))
    return found


def _read(storage: Storage, name: str, kind: str) -> Any:
    if kind not in READ:
        return None
    command, *rest = READ[kind]
    return storage.command(command, name, *rest)


def _ask(storage: Storage, *words: str) -> Any:
    """Return the answer of a command that the account may lack."""
    try:
        return storage.command(*words)
    except SignalboxError:
        return None


def _print(output: OutputWrapper, key: StoredKey) -> None:
    size = "size unknown" if key.bytes is None else f"{key.bytes} bytes"
    output.write(f"{key.name}: {key.kind}{f' ({key.encoding})' if key.encoding else ''}, {size}")
    if isinstance(key.content, Mapping):
        width = max(map(len, key.content), default=0)
        for name, text in key.content.items():
            date = f"  ({_date(text)})" if name in TIMES else ""
            output.write(f"  {name:{width}}  {_one_line(text)}{date}")
    elif isinstance(key.content, list):
        for item in key.content:
            output.write(f"  {_describe(item) if isinstance(item, Mapping) else _one_line(item)}")
    else:
        output.write(f"  {_one_line(key.content)}")


def _describe(step: Mapping[str, Any]) -> str:
    parts = [str(step["revision"]), _date(step["at"]), step["event"], "-> " + ", ".join(step["configuration"])]
    for name in ("transitions", "actor", "reason", "payload", "changes"):
        if value := step[name]:
            parts.append(f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    return "  ".join(parts)


def _one_line(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)


def _date(ms: Any) -> str:
    try:
        return datetime.fromtimestamp(float(ms) / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return str(ms)


SHOWN = 20  # places that are listed as left


def add_erase_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="MACHINE[/ID]", help="an instance; with --where a machine")
    parser.add_argument("--where", metavar="FIELD=VALUE", help="all instances whose data field has or had this value")
    parser.add_argument("--reason", required=True, help="why; it stands in the audit, so name nobody")


def erase_data(stdout: OutputWrapper, target: str, where: str | None, reason: str) -> None:
    """Erase, print the report, and raise CommandError where something is left."""
    machine, separator, id = target.partition("/")
    field, equals, value = (where or "").partition("=")
    if bool(separator) == (where is not None):
        raise CommandError("name an instance, machine/id, or a machine with --where field=value")
    if where is not None and not (field and equals):
        raise CommandError("--where takes a data field and its value: --where email=eve@example.org")
    actor = Actor.console()
    with actor.records("machine.erase", machine=machine, target=field, reason=reason) as entry:
        rules.demand_open(machine)
        found = erase(
            get_engine(), machine, id=id, where=(field, value) if where else None, actor=actor.name, reason=reason
        )
        entry.note(**summarize(found))
    _print_report(stdout, found)
    if found.left:
        raise CommandError(
            f"{len(found.left)} places still hold a value; erase those instances as well, and run it again"
        )


def _print_report(output: OutputWrapper, found: ErasureReport) -> None:
    output.write(f"instances: {len(found.instances)}")
    for store, count in sorted(found.removed.items()):
        if count:
            output.write(f"{store}: {count}")
    for place in found.left[:SHOWN]:
        output.write(f"left: {place}")
    if not found.left:
        output.write("a second search of Redis, the database and the archive found nothing")
