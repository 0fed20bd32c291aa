"""Reads jobs: those of a place, and one by its id. Each field of a job is decoded when it is first read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, NoReturn

from machines.engine import arguments, limits
from machines.engine.base import EngineBase
from machines.engine.connection import replies
from machines.engine.connection.calls import keep_available
from machines.engine.connection.replies import FieldTypes, Status, read_whole
from machines.engine.errors import BadInput, EngineUnavailable, LookupFailed
from machines.engine.keys import Partition
from machines.engine.records import PartialList

from .records import Job, LazyRecord

PLACES = ("ready", "leased", "delayed", "dead", "handled")
MAX_LISTED = 1000  # jobs one call shows


class JobReadMethods(EngineBase):
    """Reading of jobs: a part of ``Engine``."""

    def bells(self, machine: str, queue: str) -> list[str]:
        """List the keys that are pushed to when a job comes to the queue, one for each partition."""
        arguments.check_queue(queue)
        return [partition.bell(queue) for partition in self._catalog.partitions(machine)]

    def jobs(
        self, machine: str, queue: str, *, place: str = "ready", limit: int = 50, offset: int = 0
    ) -> PartialList[Job]:
        """List the first jobs of a place (of the dead and handled, the newest) after ``offset`` others. The attribute
        ``missing`` of the result lists the roots of partitions that did not answer."""
        arguments.check_queue(queue)
        check_place(place, PLACES)
        arguments.check_count("limit", limit, MAX_LISTED)
        arguments.encode_whole("offset", offset)
        partitions = self._catalog.partitions(machine)
        if len(partitions) == 1:
            reply = self._caller.call("sb_jobs", partitions[0].root, queue, place, limit, offset)
            return PartialList(self._read_jobs(machine, partitions[0], reply))
        answers = self._caller.many([("sb_jobs", partition.root, (queue, place, 1, 0)) for partition in partitions])
        found: PartialList[Job] = PartialList()
        for partition, reply in zip(partitions, keep_available(answers), strict=True):
            if isinstance(reply, EngineUnavailable):
                found.missing += (partition.root,)
                continue
            held = int(reply[1]) if reply[0] == Status.OK else 1  # else the next call raises
            if len(found) < limit and offset < held:
                try:
                    reply = self._caller.call("sb_jobs", partition.root, queue, place, limit - len(found), offset)
                    found += self._read_jobs(machine, partition, reply)
                except EngineUnavailable:
                    found.missing += (partition.root,)
            offset = max(0, offset - held)
        return found

    def job(self, machine: str, id: str) -> Job:
        """Read one job. Raises LookupFailed when it is finished or withdrawn."""
        partition = self._find_job_partition(machine, id)
        found = self._read_jobs(machine, partition, self._caller.call("sb_jobs", partition.root, "", "job", id))
        return found[0] if found else raise_missing(machine, id)

    def _find_job_partition(self, machine: str, id: str) -> Partition:
        """Return the partition that a job's id names. Raises LookupFailed."""
        number, dash, _ = str(id).partition("-")
        ending = f":{number}}}"
        found = [p for p in self._catalog.partitions(machine) if dash and p.root.endswith(ending)]
        return found[0] if found else raise_missing(machine, id)

    def _read_jobs(self, machine: str, partition: Partition, reply: Sequence[Any]) -> list[Job]:
        """Read the jobs in a reply of ``sb_jobs``."""
        if reply[0] != Status.OK:
            raise BadInput(str(reply[1]))
        found = []
        for id, row, flat in zip(reply[2::3], reply[3::3], reply[4::3], strict=True):
            raw = replies.read_pairs(flat)
            fields = replies.read_pairs(row)
            id_of_instance = fields.get("instance")
            if not raw and id_of_instance and self._catalog.partition(machine, id_of_instance).root != partition.root:
                raw["_elsewhere"] = "1"
            data: dict[str, Any] = {}
            if "_def" in raw:
                types = self._catalog.types(machine, partition.root, raw["_def"])
                data = types.data(raw)
                if raw["_state"] in types.finals:
                    raw["_done"] = "1"
            found.append(read_job(machine, partition.root, id, fields, data, raw))
        return found


def check_place(place: str, places: Sequence[str]) -> None:
    """Raise BadInput unless ``place`` is one of ``places``."""
    if place not in places:
        raise BadInput(f"a job is in one of {', '.join(places)}, not {arguments.show(place)}", code="SB406")


def get_job_id(job: object) -> str:
    """Return the id of a job given as a record or as its id."""
    if not isinstance(job, Job | str):
        raise BadInput(f"a job or its id is needed here, not {arguments.show(job)}")
    return job if isinstance(job, str) else job.id


def raise_missing(machine: str, id: str, what: str = "job") -> NoReturn:
    raise LookupFailed(
        f"machine {machine!r} has no {what} {arguments.show(id)}: it is finished, withdrawn or never was", code="SB423"
    )


# The lease of a plain job, which stands before the rest; or a plain job that was never taken.
_STORED = re.compile(r" (?P<token>\S+) (?P<taken>\d+) \d+ |\S+ \S+ \S* (?P<created>\d+) ")


def parse_plain_job(text: str) -> tuple[str, str]:
    """Return the token of a plain job, "" where it is not leased, and the ms since when it is, or else since when it
    waits; "" for what is no job. Such a job is a text, as ``lua/jobs/packed_jobs.lua`` writes it."""
    found = _STORED.match(text)
    return (found["token"] or "", found["taken"] or found["created"]) if found else ("", "")


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


class JobBeingBuilt(LazyRecord):
    """A job that is not frozen yet: to set the fields of one that is takes several times as long."""

    __slots__ = tuple(each.name for each in fields(Job))
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__  # with both, Python sets a field a lot faster


def read_taken_jobs(
    machine: str, root: str, queue: str, worker: str, reply: Sequence[Any], types_of: Callable[[str], FieldTypes]
) -> list[Job]:
    """Build the jobs that ``sb_take`` returned. ``types_of`` returns the field types of a definition."""
    now, types, found = int(reply[2]), dict[str, FieldTypes](), list[Job]()
    if len(reply) == _NONE_TAKEN:
        return found
    home = (("", str(reply[3])),) if reply[3] else ()  # of the queue, which admits them all
    words = iter(reply[6:])
    for word in words:
        job: Any = JobBeingBuilt()
        if isinstance(word, str):  # of a plain job
            id, created, src, invoke, definition, instance = word.split(" ", 5)
            token, until, text = reply[4], reply[5], next(words)
            row: Any = queue, src, created, instance, invoke  # a dict of each would be a large part of the work
            job.queue, job.src, job.instance, job.group, job.homes = queue, src, instance, "", home
            job.timeout, job.lease, job.priority = 0, limits.DEFAULT_LEASE, limits.DEFAULT_PRIORITY
            job.input = None
        else:
            id, flat, token, until, definition, text = word
            pairs = iter(flat)
            row = dict(zip(pairs, pairs, strict=True))
            job.queue, job.src, job.instance = row["queue"], row["src"], row.get("instance", "")
            job.timeout = int(row["timeout"]) if "timeout" in row else 0
            job.lease = int(row["lease"]) if "lease" in row else limits.DEFAULT_LEASE
            job.priority = int(row["priority"]) if "priority" in row else limits.DEFAULT_PRIORITY
            job.group = row.get("group", "")
            job.homes = (*home, (job.group, row["home"])) if "home" in row else home
        if definition and definition not in types:
            types[definition] = types_of(definition)
        job.id, job.machine, job.root, job.token = id, machine, root, token
        job.attempt = 1 if token[:2] == "1-" else int(token.partition("-")[0])
        job._lazy = _FIELDS_OF_TAKEN, (row, now, worker, token, until, text, types.get(definition))
        job.__class__ = Job
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


_NONE_TAKEN = 3  # words of such a reply
_PLAIN = ("queue", "src", "created", "instance", "invoke")  # fields of the hash of a plain job


def _read_json(row: Row, name: str) -> Any:
    text = row.get(name)
    return json.loads(text) if text else None


def _make_text_reader(name: str) -> Callable[[Row], Any]:
    return lambda row: row.get(name) or ""


def _make_time_reader(*names: str) -> Callable[[Row], Any]:
    """Make a reader of the first of some times that the hash has."""
    return lambda row: next((read_whole(row[name]) for name in names if row.get(name)), 0)


_TEXTS = ("instance", "invoke", "token", "worker", "error", "kind", "trace", "group", "unique", "batch", "traceparent")

_FIELDS: Mapping[str, Callable[[Row], Any]] = {
    **{name: _make_text_reader(name) for name in _TEXTS},
    **{name: _make_time_reader(name) for name in ("deadline", "taken", "finished", "handled")},
    "queue": lambda row: row["queue"],
    "src": lambda row: row["src"],
    "input": lambda row: _read_json(row, "input"),
    "attempt": lambda row: int(row.get("attempt") or 0),
    "attempts": lambda row: int(row.get("attempts") or limits.DEFAULT_ATTEMPTS),
    "lease_until": _make_time_reader("until"),
    "lease": lambda row: int(row.get("lease") or limits.DEFAULT_LEASE),
    "created": lambda row: read_whole(row["created"] or 0),
    "place": lambda row: row["place"],
    "priority": lambda row: int(row.get("priority", limits.DEFAULT_PRIORITY)),
    "weight": lambda row: float(row.get("weight") or 1),
    "timeout": lambda row: int(row.get("timeout") or 0),
    "due": _make_time_reader("due", "created"),
    "started": _make_time_reader("started", "taken"),
    "homes": lambda row: (),
    "instance_is": lambda row: "",
    "instance_state": lambda row: (),
    "backoff": lambda row: int(row.get("backoff", limits.DEFAULT_BACKOFF)),
    "jitter": lambda row: row.get("jitter") != "0",
    "stop": lambda row: tuple((row.get("stop") or "").split()),
    "progress": lambda row: _read_json(row, "progress"),
    "log": lambda row: tuple(_read_json(row, "log") or ()),
}


Lease = tuple[Any, ...]
"""What a job that was just taken is read from: its hash, or that of a plain job without the names; when, by whom and
with what token it was taken, until when; the data of its instance, and their types."""


def _read_field(name: str, lease: Lease) -> Any:
    row = lease[0]
    return _FIELDS[name](row if isinstance(row, dict) else dict(zip(_PLAIN, row, strict=True)))


def _deadline(lease: Lease) -> int:
    timeout: int = _read_field("timeout", lease)
    return int(lease[1]) + timeout if timeout else 0


def _data(lease: Lease) -> dict[str, Any]:
    _, _, _, _, _, text, types = lease
    return types.convert(replies.decode(text)[0]) if types else {}


_FIELDS_OF_TAKEN: Mapping[str, Callable[[Lease], Any]] = {
    **{name: partial(_read_field, name) for name in _FIELDS},
    "place": lambda lease: "leased",
    "taken": lambda lease: lease[1],
    "worker": lambda lease: lease[2],
    "lease_until": lambda lease: read_whole(lease[4]),
    "started": lambda lease: _read_field("started", lease) or lease[1],
    "deadline": _deadline,
    "data": _data,
}
