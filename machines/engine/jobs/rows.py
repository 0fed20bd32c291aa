"""Reads jobs from the hashes that ``sb_take`` and ``sb_jobs`` return; each field is decoded when it is first read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from machines.engine import limits
from machines.engine.connection.replies import FieldTypes, read_whole

from .records import Job

Row = Mapping[str, Any]

_set = object.__setattr__


def read_job(machine: str, root: str, id: str, row: Row, data: dict[str, Any], instance: Row | None = None) -> Job:
    """Build a job from its hash, which leaves out empty and default fields, and from that of its instance."""
    found: Job = Job.__new__(Job)
    _set(found, "id", id)
    _set(found, "machine", machine)
    _set(found, "root", root)
    _set(found, "data", data)
    if instance is not None:
        _set(found, "instance_is", _find_instance(row, instance))
        _set(found, "instance_state", tuple(filter(None, instance.get("_state", "").split("\n"))))
    _set(found, "_lazy", (_FIELDS, row))
    return found


def read_taken_jobs(
    machine: str, root: str, worker: str, reply: Sequence[Any], types_of: Callable[[str], FieldTypes]
) -> list[Job]:
    """Build the jobs that ``sb_take`` returned. ``types_of`` returns the field types of a definition."""
    now, types, found = int(reply[2]), dict[str, FieldTypes](), []
    words = iter(reply)
    next(words), next(words), next(words)
    for id, flat, token, until, definition, text in zip(words, words, words, words, words, words, strict=True):
        if definition and definition not in types:
            types[definition] = types_of(definition)
        job: Job = Job.__new__(Job)
        _set(job, "id", id)
        _set(job, "machine", machine)
        _set(job, "root", root)
        _set(job, "token", token)
        pairs = iter(flat)
        row = dict(zip(pairs, pairs, strict=True))
        _set(job, "queue", row["queue"])
        _set(job, "src", row["src"])
        _set(job, "instance", row.get("instance", ""))
        _set(job, "attempt", 1 if token[:2] == "1-" else int(token.partition("-")[0]))
        _set(job, "timeout", int(row["timeout"]) if "timeout" in row else 0)
        _set(job, "lease", int(row["lease"]) if "lease" in row else limits.DEFAULT_LEASE)
        row[_LEASE] = (now, worker, token, until, text, types.get(definition))
        _set(job, "_lazy", (_FIELDS_OF_TAKEN, row))
        found.append(job)
    return found


def set_data(job: Job, data: dict[str, Any]) -> None:
    """Give a job the data of its instance."""
    _set(job, "data", data)


def _find_instance(row: Row, instance: Row) -> str:
    if not row.get("instance"):
        return ""
    if "_later" in instance or "_elsewhere" in instance:
        return "later" if "_later" in instance else "elsewhere"
    if "_state" not in instance:
        return "gone"
    return "finished" if "_done" in instance else "present"


_LEASE = ""  # a key that no hash has: the lease of a job that was just taken


def _read_json(row: Row, name: str) -> Any:
    text = row.get(name)
    return json.loads(text) if text else None


_FIELDS: Mapping[str, Callable[[Row], Any]] = {
    "queue": lambda row: row["queue"],
    "src": lambda row: row["src"],
    "instance": lambda row: row.get("instance") or "",
    "invoke": lambda row: row.get("invoke") or "",
    "input": lambda row: _read_json(row, "input"),
    "attempt": lambda row: int(row.get("attempt") or 0),
    "attempts": lambda row: int(row.get("attempts") or limits.DEFAULT_ATTEMPTS),
    "token": lambda row: row.get("token") or "",
    "lease_until": lambda row: _read_time(row.get("until")),
    "lease": lambda row: int(row.get("lease") or limits.DEFAULT_LEASE),
    "created": lambda row: _read_time(row["created"]),
    "place": lambda row: row["place"],
    "worker": lambda row: row.get("worker") or "",
    "error": lambda row: row.get("error") or "",
    "kind": lambda row: row.get("kind") or "",
    "trace": lambda row: row.get("trace") or "",
    "priority": lambda row: _read_int(row.get("priority"), limits.DEFAULT_PRIORITY),
    "unique": lambda row: row.get("unique") or "",
    "timeout": lambda row: int(row.get("timeout") or 0),
    "deadline": lambda row: _read_time(row.get("deadline")),
    "due": lambda row: _read_time(row.get("due")) or _read_time(row["created"]),
    "started": lambda row: _read_time(row.get("started")) or _read_time(row.get("taken")),
    "taken": lambda row: _read_time(row.get("taken")),
    "finished": lambda row: _read_time(row.get("finished")),
    "handled": lambda row: _read_time(row.get("handled")),
    "instance_is": lambda row: "",
    "instance_state": lambda row: (),
    "backoff": lambda row: _read_int(row.get("backoff"), limits.DEFAULT_BACKOFF),
    "jitter": lambda row: row.get("jitter") != "0",
    "stop": lambda row: tuple((row.get("stop") or "").split()),
    "progress": lambda row: _read_json(row, "progress"),
    "log": lambda row: tuple(_read_json(row, "log") or ()),
}


def _deadline(row: Row) -> int:
    timeout = int(row.get("timeout") or 0)
    return int(row[_LEASE][0]) + timeout if timeout else 0


def _data(row: Row) -> dict[str, Any]:
    text, types = row[_LEASE][4:]
    return types.convert(json.loads(text)) if types else {}


_FIELDS_OF_TAKEN: Mapping[str, Callable[[Row], Any]] = {
    **_FIELDS,
    "place": lambda row: "leased",
    "taken": lambda row: row[_LEASE][0],
    "worker": lambda row: row[_LEASE][1],
    "lease_until": lambda row: read_whole(row[_LEASE][3]),
    "started": lambda row: _read_time(row.get("started")) or _read_time(row.get("taken")) or row[_LEASE][0],
    "deadline": _deadline,
    "data": _data,
}


def _read_int(raw: Any, default: int) -> int:
    return default if raw is None else int(raw)


def _read_time(raw: Any) -> int:
    return read_whole(raw) if raw else 0
