"""Hands a job to a worker of another queue, which reports its end in place of the worker that took it.

The job stays leased, under the token that the message of the other queue carries. So it has one end, from either
worker: a report after the lease ended, or of a job that was withdrawn, changes nothing.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from machines.connections import get_engine
from machines.engine import Engine, errors, limits
from machines.engine import Job as EngineJob
from machines.worker import Job, handler
from machines.worker.failure import format_error, format_trace, list_bases

log = logging.getLogger(__name__)

Ticket = dict[str, str]
"""What the message carries: machine, job, token."""
HEADER = "signalbox"  # its name there
HOUR = 3600
PAUSES = (0.1, 0.5, 1.0, 3.0, 5.0)  # seconds between the tries of a report


def check_seconds(seconds: int) -> int:
    """Return the seconds of a lease. Raises BadInput."""
    if not 1 <= seconds <= limits.MAX_LEASE // 1000:
        raise errors.BadInput(f"a job is handed over for 1 to {limits.MAX_LEASE // 1000} seconds, not {seconds}")
    return seconds


def read_arguments(job: Job) -> dict[str, Any]:
    """Return the keyword arguments for the other worker: the job's input. Raises BadInput."""
    payload = {} if job.payload is None else job.payload
    if not isinstance(payload, dict):
        raise errors.BadInput(f"the input of {job.src} is an object of arguments, not {type(payload).__name__}")
    return payload


def add_handler(
    name: str, send: Callable[[dict[str, Any], Ticket], object], seconds: int, where: str, task: str
) -> None:
    """Have jobs for the handler ``name`` handed over by ``send``, which gets the input of the job and what its message
    carries. ``where`` and ``task`` name who runs it. Raises BadInput."""
    check_seconds(seconds)

    def handle(job: Job) -> None:
        hand_over(job, partial(send, read_arguments(job)), seconds, where)

    handle.__qualname__ = f"{name} ({where} {task})"
    handler(name)(handle)


def hand_over(job: Job, send: Callable[[Ticket], object], seconds: int, where: str) -> NoReturn:
    """Send the message of a job, and let go of it without ending it. Its lease lasts for ``seconds`` from now; without
    a report it is then tried again, as after the death of a worker. Raises what ``send`` raises: the attempt failed."""
    engine = get_engine()
    engine.extend(job.taken, seconds * 1000)
    send({"machine": job.machine, "job": job.id, "token": job.taken.token, "homes": job.taken.homes})
    job.abandon(f"handed to {where}")
    engine.extend(job.taken, seconds * 1000)  # a heartbeat meanwhile may have shortened it
    raise errors.LeaseLost(job.id, why=f"handed to {where}")


def report_done(ticket: object, result: Any) -> None:
    """End a job that was handed over, and move its instance. A result that is no JSON, or that the machine refuses, is
    a failure."""
    try:
        _report(ticket, lambda engine, job: engine.complete(job, result))
    except (errors.BadInput, errors.Refused) as error:
        report_failed(ticket, error)


def report_failed(ticket: object, error: BaseException) -> None:
    """End the attempt of a job that was handed over; it is tried again as its invoke says."""

    def fail(engine: Engine, job: EngineJob) -> None:
        text, trace = format_error(error), format_trace(error)
        engine.fail(job, text, kind=type(error).__name__, trace=trace, kinds=list_bases(error))

    _report(ticket, fail)


def _report(ticket: object, call: Callable[[Engine, EngineJob], object]) -> None:
    if not _is_ticket(ticket):
        log.error("a message names no job: %r", ticket)
        return
    for pause in (*PAUSES, None):
        try:
            engine = get_engine()
            job = engine.job(ticket["machine"], ticket["job"])
            if job.place != "leased" or job.token != ticket["token"]:
                raise errors.LeaseLost(job.id, why="taken back")
            call(engine, replace(job, homes=ticket.get("homes", ())))  # which a job that was read does not tell
        except errors.EngineUnavailable as error:
            if pause is None:
                log.error("job %s: its end could not be reported: %s; it is tried again", ticket["job"], error)
                return
            time.sleep(pause)
        except (errors.LeaseLost, errors.LookupFailed) as error:
            log.info("job %s: its end counts no more: %s", ticket["job"], error)
            return
        else:
            return


def _is_ticket(ticket: object) -> bool:
    return isinstance(ticket, Mapping) and all(
        isinstance(ticket.get(name), str) for name in ("machine", "job", "token")
    )
