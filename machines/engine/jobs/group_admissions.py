"""Has leased jobs admitted by the homes of their queue and group: the partitions that count the jobs of all partitions.

A job is leased, then admitted, and only then does it run; it ends first, and then its place is freed. So the home never
counts too few. A process that is killed between two of these calls leaves an admission whose token no longer holds the
job: the next jobs that are refused have it checked and freed.
"""

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status
from machines.engine.errors import EngineUnavailable, SignalboxError
from machines.engine.keys import Partition, name_root

from .reading import parse_plain_job
from .records import Job

Place = tuple[str, str, str]  # group ('' of the queue), job, token
Call = tuple[str, str, Sequence[str | int]]
BUSY = "busy"
MOST = 1000  # places of one call
UNANSWERED = -1


class GroupAdmissions:
    """Admits jobs and frees their places. Safe to share between threads."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def admit(self, queue: str, jobs: Sequence[Job], now: str) -> tuple[Sequence[Job], int | None]:
        """Return those of the jobs of one take that may run. The others are given back; then also the ms after which
        to take again, UNANSWERED where it is not known whether they are given back."""
        homes: dict[str, list[tuple[Job, str, str]]] = {}
        for job in [job for job in jobs if job.homes]:
            for group, place in job.homes:
                number, _, more = place.partition(" ")
                homes.setdefault(name_root(job.root, number), []).append((job, group, more))
            object.__setattr__(job, "homes", ())
        if not homes:
            return jobs, None
        calls: list[Call] = []
        for home, own in homes.items():
            asked = (word for job, group, more in own for word in (group, job.id, job.token, more))
            calls.append(("sb_admit", home, ("admit", queue, now, *asked)))
        refused: dict[str, tuple[str, str]] = {}
        admitted: list[tuple[Job, str, str, str]] = []
        unchecked: dict[str, list[Place]] = {}
        undone: dict[str, list[Place]] = {}
        for (home, own), words in zip(homes.items(), self._call(calls), strict=True):
            for (job, group, _), word in zip(own, words or [BUSY] * len(own), strict=False):
                if word in ("held", "free"):
                    admitted.append((job, group, home, word))
                else:
                    refused[job.id] = group, word
            if named := words[len(own) :]:
                unchecked[home] = list(zip(named[::3], named[1::3], named[2::3], strict=True))
        for job, group, home, word in admitted:
            if job.id in refused:
                undone.setdefault(home, []).append((group, job.id, job.token))
            elif word == "held":
                object.__setattr__(job, "homes", (*job.homes, (group, home)))
        wait = self._give_back(queue, [job for job in jobs if job.id in refused], refused, now)
        self._free(queue, undone, now, "undo")
        self._check(queue, unchecked, now)
        return [job for job in jobs if job.id not in refused], wait

    def free(self, jobs: Iterable[Job], now: str) -> None:
        """Free the places of jobs whose attempts have ended, and offer them to the partitions that wait."""
        for queue, freed in _list_places(jobs).items():
            self._free(queue, freed, now)

    def free_lost(self, lost: Iterable[tuple[str, Sequence[str]]], now: str) -> None:
        """Free the places of jobs that their workers no longer hold, as ``sb_tick`` names them for a root."""
        queues: dict[str, dict[str, list[Place]]] = {}
        for root, words in lost:
            for queue, number, group, job, token in zip(*[iter(words)] * 5, strict=True):
                queues.setdefault(queue, {}).setdefault(name_root(root, number), []).append((group, job, token))
        for queue, freed in queues.items():
            self._free(queue, freed, now)

    def keep(self, renewed: Iterable[tuple[Job, str, str, str]], now: str) -> None:
        """Have jobs counted whose leases were renewed, each with its queue, the number of a home and the group there:
        it may have lost that in a failover, or the limit is new."""
        queues: dict[str, dict[str, list[Place]]] = {}
        for job, queue, number, group in renewed:
            home = name_root(job.root, number)
            queues.setdefault(queue, {}).setdefault(home, []).append((group, job.id, job.token))
            object.__setattr__(job, "homes", (*(each for each in job.homes if each[0] != group), (group, home)))
        self._call([call for queue, homes in queues.items() for call in _split("keep", queue, homes, now)])

    def count_leased(self, queues: Iterable[str], roots: Sequence[str]) -> None:
        """Have the jobs counted that are leased already, of queues whose limits have changed."""
        calls: list[Call] = [("sb_admit", root, ("list", queue, "")) for queue in queues for root in roots]
        for (_, root, (_, queue, _)), words in zip(calls, self._call(calls), strict=True):
            homes: dict[str, list[Place]] = {}
            for number, group, id, token in zip(words[::4], words[1::4], words[2::4], words[3::4], strict=True):
                homes.setdefault(name_root(root, number), []).append((group, id, token))
            self._call(_split("keep", str(queue), homes, ""))

    def _free(self, queue: str, freed: dict[str, list[Place]], now: str, mode: str = "free") -> None:
        while freed:
            calls, mode = _split(mode, queue, freed, now), "free"
            offers: dict[tuple[str, str], list[str]] = {}
            for (_, home, _), words in zip(calls, self._call(calls), strict=True):
                for number, group, places in zip(words[::3], words[1::3], words[2::3], strict=True):
                    offers.setdefault((home, number), []).extend((group, places))
            answers = self._call(
                [("sb_admit", name_root(*place), ("offer", queue, now, *words)) for place, words in offers.items()]
            )
            freed = {}
            for (home, number), words in zip(offers, answers, strict=True):  # those in vain are for others
                for group, places in zip(words[::2], words[1::2], strict=True):
                    freed.setdefault(home, []).extend([(group, f"{number}-0", "")] * int(places))

    def _give_back(self, queue: str, jobs: Sequence[Job], words: dict[str, tuple[str, str]], now: str) -> int | None:
        if not jobs:
            return None
        quads = (word for job in jobs for word in (job.id, job.token, *words[job.id]))
        (reply,) = self._call([("sb_admit", jobs[0].root, ("back", queue, now, *quads))])
        return int(reply[0]) if reply else UNANSWERED

    def _check(self, queue: str, unchecked: dict[str, list[Place]], now: str) -> None:
        """Free the places of jobs that another token holds, or none."""
        named = [(home, place) for home, places in unchecked.items() for place in places]
        wanted = [Partition(name_root(home, job.partition("-")[0])).job(job) for home, (_, job, _) in named]
        tokens: list[Any] = []
        with contextlib.suppress(SignalboxError):
            tokens = self._read_tokens(wanted)
        ended: dict[str, list[Place]] = {}
        for (home, place), token in zip(named, tokens, strict=False):
            held = token.partition(" ")[0] if isinstance(token, str) else token
            if held != place[2] and not isinstance(token, EngineUnavailable):
                ended.setdefault(home, []).append(place)
        if ended:
            self._free(queue, ended, now)

    def _read_tokens(self, jobs: Sequence[str]) -> list[Any]:
        """Return the token of each job, an error where it cannot be read."""
        texts = self._caller.commands_available([(key, ("MGET", key)) for key in jobs])
        hashes = [(key, ("HGET", key, "token")) for key, text in zip(jobs, texts, strict=True) if text == [None]]
        found = iter(self._caller.commands_available(hashes))
        return [
            next(found) if text == [None] else parse_plain_job(text[0])[0] if isinstance(text, list) else text
            for text in texts
        ]

    def _call(self, calls: Sequence[Call]) -> list[list[str]]:
        """Return what each call answered; nothing for one that failed: what is not freed is found by a check."""
        answers: list[Any] = [None] * len(calls)
        with contextlib.suppress(SignalboxError):
            answers = self._caller.many(calls) if calls else []
        return [list(map(str, each[1:])) if isinstance(each, list) and each[0] == Status.OK else [] for each in answers]


def _split(mode: str, queue: str, homes: dict[str, list[Place]], now: str) -> list[Call]:
    """Make the calls for places, each for as many as one call may have."""
    return [
        ("sb_admit", home, (mode, queue, now, *(word for place in places[start : start + MOST] for word in place)))
        for home, places in homes.items()
        for start in range(0, len(places), MOST)
    ]


def _list_places(jobs: Iterable[Job]) -> dict[str, dict[str, list[Place]]]:
    """Return queue -> home -> the jobs that it counts."""
    found: dict[str, dict[str, list[Place]]] = {}
    for job in jobs:
        for group, home in job.homes:
            found.setdefault(job.queue, {}).setdefault(home, []).append((group, job.id, job.token))
    return found
