"""Reads jobs: those of a place, and one by its id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from machines.engine import arguments
from machines.engine.connection import replies
from machines.engine.connection.calls import Caller, keep_available
from machines.engine.connection.replies import Status
from machines.engine.errors import BadInput, EngineUnavailable, LookupFailed
from machines.engine.keys import Partition
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import PartialList

from . import rows
from .records import Job

PLACES = ("ready", "leased", "delayed", "dead", "handled")
MAX_LISTED = 1000  # jobs one call shows


class JobReadMethods:
    """Reading of jobs: a part of ``Engine``."""

    _caller: Caller
    _catalog: Catalog

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
        return found[0] if found else _raise_no_job(machine, id)

    def _find_job_partition(self, machine: str, id: str) -> Partition:
        """Return the partition that a job's id names. Raises LookupFailed."""
        number, dash, _ = str(id).partition("-")
        ending = f":{number}}}"
        found = [p for p in self._catalog.partitions(machine) if dash and p.root.endswith(ending)]
        return found[0] if found else _raise_no_job(machine, id)

    def _read_jobs(self, machine: str, partition: Partition, reply: Sequence[Any]) -> list[Job]:
        """Read the jobs in a reply of ``sb_jobs``."""
        if reply[0] != Status.OK:
            raise BadInput(str(reply[1]))
        found = []
        for id, row, flat in zip(reply[2::3], reply[3::3], reply[4::3], strict=True):
            raw = replies.read_pairs(flat)
            fields = replies.read_pairs(row)
            if not raw and fields.get("instance") and self._is_elsewhere(machine, partition, fields["instance"]):
                raw["_elsewhere"] = "1"
            data: dict[str, Any] = {}
            if "_def" in raw:
                types = self._catalog.types(machine, partition.root, raw["_def"])
                data = types.data(raw)
                if raw["_state"] in types.finals:
                    raw["_done"] = "1"
            found.append(rows.read_job(machine, partition.root, id, fields, data, raw))
        return found

    def _is_elsewhere(self, machine: str, partition: Partition, instance: str) -> bool:
        return self._catalog.partition(machine, instance).root != partition.root


def check_place(place: str, places: Sequence[str]) -> None:
    """Raise BadInput unless ``place`` is one of ``places``."""
    if place not in places:
        raise BadInput(f"a job is in one of {', '.join(places)}, not {arguments.show(place)}", code="SB406")


def get_job_id(job: object) -> str:
    """Return the id of a job given as a record or as its id."""
    if not isinstance(job, Job | str):
        raise BadInput(f"a job or its id is needed here, not {arguments.show(job)}")
    return job if isinstance(job, str) else job.id


def _raise_no_job(machine: str, id: str) -> NoReturn:
    raise LookupFailed(
        f"machine {machine!r} has no job {arguments.show(id)}: it is finished, withdrawn or never was", code="SB423"
    )
