"""Builds the commands that read several sources in one round trip, and parses their replies. Does no I/O.

The hub sends the commands through an asyncio client, the HTTP twin through the engine's; both read the replies here.
"""

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dashboard.live.topics import Topic
from machines.engine.connection import replies
from machines.engine.connection.calls import translate
from machines.engine.connection.library_loader import MISSING
from machines.engine.connection.replies import FieldTypes, Status
from machines.engine.connection.server_permissions import find_denial
from machines.engine.errors import EngineFault, SignalboxError
from machines.engine.jobs import reading, workers
from machines.engine.jobs.records import Job, WorkerInfo
from machines.engine.keys import Keys
from machines.engine.publishing.machine_meta import Growth, read_sensitive_fields
from machines.engine.records import Live

from .sources import LOST, Directory, Source, Tally, Value, World, sources, value

log = logging.getLogger(__name__)

Command = tuple[str, tuple[Any, ...]]  # the key that routes it, "" for any server, and its words
#: rows of workers read at most, as the engine's own list has it
MOST_WORKERS = 1000
#: rounds after which a topic's sources must be known: the directory, then the instance, then how its data reads
MOST_ROUNDS = 5


class LibraryMissing(Exception):
    """The server holds no functions library: load it and read again."""


def commands(keys: Keys, wanted: Sequence[Source]) -> list[Command]:
    """List the commands: the clock, the directory, then each source."""
    sent = [
        ("HGETALL", keys.machines),
        ("HGETALL", keys.growth),
        *(_make_words(keys, source) for source in wanted),
    ]
    return [("", ("TIME",)), *((str(words[3] if words[0] == "FCALL_RO" else words[1]), words) for words in sent)]


def _make_words(keys: Keys, source: Source) -> tuple[Any, ...]:
    partition = keys.partition(source.machine, source.partition)
    if source.kind == "partition":
        return ("FCALL_RO", "sb_live", 1, partition.root)
    if source.kind == "stats":
        return ("FCALL_RO", "sb_stats", 1, partition.root)
    if source.kind == "job":
        return ("FCALL_RO", "sb_jobs", 1, partition.root, "", "job", source.name)
    if source.kind == "instance":
        return ("FCALL_RO", "sb_get", 1, partition.root, source.name)
    if source.kind == "types":
        return ("HGET", partition.definition(source.version), "program")
    if source.kind in ("sensitive", "marked"):
        return ("HGET", partition.meta, "sensitive")
    if source.kind == "edited":
        return ("GET", partition.edited)
    if source.kind == "workers":
        return ("ZRANGE", keys.workers, 0, MOST_WORKERS - 1, "REV")  # those whose row is gone are no workers
    return ("HGETALL", keys.worker(source.name))


def take_in(wanted: Sequence[Source], answers: Sequence[Any], directory: Mapping[str, int] | None = None) -> World:
    """Return a world of these readings alone, to be merged into the last one. ``directory``: the last known one, for
    when its server does not answer.

    Raises LibraryMissing, and the Redis error when no server can do anything now. An error of one source alone (a key
    of a foreign type in the way) leaves that source without a reading: None. Sources whose server does not answer are
    LOST.
    """
    lost = [answer for answer in answers if _is_lost(answer)]
    clock, machines, growths, *rest = answers
    if lost and (len(lost) == len(answers) or (_is_lost(machines) and not directory)):
        raise lost[0]
    _require_rights((clock, machines, growths), rest)
    seen = World(
        directory=_keep(directory) if _is_lost(machines) else _read_directory(machines, growths),
        at=int(time.time() * 1000) if _is_lost(clock) else _read_clock(clock),
    )
    for source, answer in zip(wanted, rest, strict=True):
        seen.readings[source] = LOST if _is_lost(answer) else _read(source, answer)
    return seen


def _require_rights(common: Sequence[Any], answers: Sequence[Any]) -> None:
    """Raise NotPermitted where the account may not read what every reading needs, or none of the sources. An account of
    single machines reads those."""
    denied = [find_denial(answer) for answer in (*common, *answers) if isinstance(answer, Exception)]
    of_all = any(isinstance(answer, Exception) for answer in common)
    for found in denied if of_all or len(denied) == len(answers) else ():
        if found is not None:
            raise found


def _is_lost(answer: Any) -> bool:
    """Return whether a server can do nothing now. Raises LibraryMissing."""
    if not isinstance(answer, Exception):
        return False
    if MISSING in str(answer):
        raise LibraryMissing from answer
    try:
        translate(answer)
    except EngineFault:
        return False
    except SignalboxError:
        return True


def _read(source: Source, answer: Any) -> Any:
    if isinstance(answer, Exception):
        log.warning("%s cannot be read: %s", source, answer)
        return None
    return READERS[source.kind](source, answer)


def _read_clock(clock: Any) -> int:
    """Convert TIME's seconds and microseconds to ms. Some clients return a pair of numbers, some leave text."""
    seconds, micros = clock
    return int(seconds) * 1000 + int(micros) // 1000


def _keep(directory: Mapping[str, int] | None) -> Directory:
    return directory if isinstance(directory, Directory) else Directory(directory or {})


def _read_directory(answer: Any, growths: Any) -> Directory:
    """Return machine -> number of partitions. Skip entries that the engine cannot have written."""
    counts = {
        name: int(count)
        for name, count in replies.read_pairs(answer).items()
        if re.fullmatch(r"[1-9]\d{0,4}", str(count))
    }
    found = Directory(counts)
    for name, text in () if _is_lost(growths) else replies.read_pairs(growths).items():
        growth = Growth.read(str(text))
        if name in found and growth.under_way:
            found[name], found.before[name] = growth.after, growth.before
    return found


def _read_partition(source: Source, reply: Sequence[Any]) -> Live | None:
    return replies.read_live(source.machine, reply[1]) if reply[0] == Status.OK else None


def _read_stats(source: Source, reply: Sequence[Any]) -> Tally | None:
    if reply[0] != Status.OK:
        return None
    seen = json.loads(reply[1])
    return Tally(int(seen["now"]), seen["queues"])


def _read_job(source: Source, reply: Sequence[Any]) -> Job | None:
    if reply[0] != Status.OK or len(reply) < 4:
        return None
    return reading.read_job(source.machine, "", source.name, replies.read_pairs(reply[3]), {})


def _read_instance(source: Source, reply: Sequence[Any]) -> dict[str, Any] | None:
    return replies.read_fields(reply) if reply[0] == Status.OK else None


def _types(source: Source, program: str | None) -> FieldTypes | None:
    return None if program is None else FieldTypes(json.loads(program), source.version)


def _read_worker(source: Source, answer: Any) -> WorkerInfo | None:
    fields = replies.read_pairs(answer)
    return workers.read_worker(fields) if fields else None


READERS: Mapping[str, Callable[[Source, Any], Any]] = {
    "partition": _read_partition,
    "stats": _read_stats,
    "job": _read_job,
    "instance": _read_instance,
    "types": _types,
    "sensitive": lambda source, text: read_sensitive_fields(text),
    "marked": lambda source, text: read_sensitive_fields(text),
    "edited": lambda source, answer: int(answer) if answer else None,
    "workers": lambda source, answer: list(answer),
    "worker": _read_worker,
}


def read_once(
    keys: Keys,
    topic: Topic,
    send: Callable[[Iterable[Command]], list[Any]],
    directory: Callable[[], Mapping[str, int]] = dict,
) -> tuple[Value, int]:
    """Return the topic's value right now and the Redis time of the read (ms); ``send`` is one pipelined round trip.
    ``directory`` returns the last known machines, for when their list does not answer."""
    world, known = World(), directory()
    for _ in range(MOST_ROUNDS):
        wanted = [source for source in sources(topic, world) if source not in world.readings]
        if world.at and not wanted:
            return value(topic, world), world.at
        seen = take_in(wanted, send(commands(keys, wanted)), known)
        world = World(seen.directory, world.readings | seen.readings, seen.at)
    raise EngineFault(f"{topic} changed its shape faster than it could be read")
