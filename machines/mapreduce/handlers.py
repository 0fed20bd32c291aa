"""Job handlers of a run: split it, map a chunk, reduce the parts, remove it.

Each may be run twice, or by two workers at a time: a plan is made once, a chunk is created once, parts and the result
stand under names of their own, and the run counts its finished chunks as a set.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from machines.connections import get_engine
from machines.engine import Engine, arguments, errors
from machines.worker import Job, handler

from .run import MAX_CHUNKS, Functions, mappers, reducers
from .store import CHUNK, RUN, Store, bounds, encode

SMALL = 4 * 1024  # bytes of JSON: a result up to that stands in the run's data, too, for people to see
LATER = 5_000  # ms a job is set aside that cannot be done now, or not by this worker

log = logging.getLogger(__name__)


@handler("map_reduce.split", machine=RUN)
def split(job: Job) -> dict[str, int]:
    """Bring every chunk to work that is not finished, and say how many items and chunks there are."""
    engine = get_engine()
    items = Store(engine, job.instance).freeze().items
    chunks = min(job.data["chunks"], items)
    finished = set(job.data["finished"])
    for chunk in range(chunks):
        job.progress(chunk, chunks, "chunks at work")
        if chunk not in finished:
            _set_to_work(engine, job, chunk, *bounds(chunk, chunks, items))
    return {"items": items, "chunks": chunks}


def _set_to_work(engine: Engine, job: Job, chunk: int, start: int, stop: int) -> None:
    id = chunk_id(job.instance, chunk)
    data = {"run": job.instance, "chunk": chunk, "start": start, "stop": stop, "map": job.data["map"]}
    try:
        engine.create(CHUNK, id, data, actor=job.actor)
        return
    except errors.InstanceExists:
        state = engine.get(CHUNK, id).state
    if state == "mapped":
        _fire_event(engine, job, RUN, job.instance, "mapped", {"chunk": chunk})
    elif state in ("failed", "stopped"):
        _fire_event(engine, job, CHUNK, id, "retry")


@handler("map_reduce.map", machine=CHUNK)
def map_chunk(job: Job) -> None:
    """Read the items of a chunk page by page, map them, and keep what that gave."""
    engine, chunk = get_engine(), job.data
    function = _function(engine, job, mappers, chunk["map"])
    try:
        engine.get(RUN, chunk["run"])
    except errors.UnknownInstance:
        engine.delete(CHUNK, job.instance, actor=job.actor, reason="its run was deleted")
        return
    with suppress(errors.Suspended, errors.Refused):  # its work goes on; its result waits
        engine.fire(CHUNK, job.instance, "begin", actor=job.actor)
    store = Store(engine, chunk["run"])
    items: list[Any] = []
    for page in store.items(chunk["start"], chunk["stop"]):
        items += page
        job.progress(len(items), chunk["stop"] - chunk["start"], "items read")
    part = encode("what the map gave", function(items))
    job.check()
    store.put_part(chunk["chunk"], part)


@handler("map_reduce.reduce", machine=RUN)
def reduce_parts(job: Job) -> dict[str, Any]:
    """Read the parts in the order of their chunks, reduce them, and keep the result."""
    engine = get_engine()
    function = _function(engine, job, reducers, job.data["reduce"])
    store = Store(engine, job.instance)
    result = function(store.parts(job.data["chunks"]))
    text = encode("what the reduce gave", result)
    job.check()
    store.put_result(text)
    return {"value": result} if _fits(text, result) else {}


@handler("map_reduce.remove", machine=RUN)
def remove(job: Job) -> None:
    """Take everything of a run away, and the run last: should this worker die, another goes on."""
    engine = get_engine()
    for chunk in range(min(job.data["chunks"], MAX_CHUNKS)):
        job.check()
        _delete(engine, job, CHUNK, chunk_id(job.instance, chunk))
    Store(engine, job.instance).remove()
    _delete(engine, job, RUN, job.instance)


def chunk_id(run: str, chunk: int) -> str:
    """Return the instance of map_reduce_chunk. The definition of a run builds the same."""
    return f"{run}:{chunk}"


def _function(engine: Engine, job: Job, functions: Functions, name: str) -> Callable[[list[Any]], Any]:
    """Return the registered function; without one the job is left to workers that have it."""
    function = functions.get(name)
    if function is None:
        _put_off(engine, job, f"no {functions.kind} {name!r} is registered in this worker")
    return function


def _put_off(engine: Engine, job: Job, why: str) -> NoReturn:
    """Give the job back, without an attempt being counted."""
    log.warning("%s is put off: %s", job, why)
    engine.hand_back(job.taken, delay=LATER)
    raise errors.LeaseLost(job.id, why=why)


def _fire_event(
    engine: Engine, job: Job, machine: str, id: str, event: str, payload: dict[str, Any] | None = None
) -> None:
    """Fire an event that the instance may no longer accept: then there is nothing to do. One that is suspended gets
    it later, by another attempt."""
    try:
        engine.fire(machine, id, event, payload, actor=job.actor)
    except errors.Suspended as suspended:
        _put_off(engine, job, str(suspended))
    except (errors.Refused, errors.UnknownInstance):
        job.check()


def _delete(engine: Engine, job: Job, machine: str, id: str) -> None:
    with suppress(errors.UnknownInstance):
        engine.delete(machine, id, actor=job.actor, reason="the run is removed")


def _fits(text: str, result: object) -> bool:
    """Tell whether an instance may hold it: the engine's numbers are doubles."""
    if len(text) > SMALL:
        return False
    try:
        arguments.encode_document("result", result, SMALL)
    except errors.BadPayload:
        return False
    return True
