"""Which occurrences of a schedule are to be run at a moment. A pure function of the schedule and the instance's data.

A *claim* is the result: what is pending from then on, and the next planned time. An entry of ``pending`` is JSON:
``k`` its key, ``p`` the planned time, ``w`` why it runs, ``c`` ms of the claim, and of runs by hand ``by``.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .document import Schedule
from .occurrences import Interval

LATE = 60  # seconds after which an occurrence counts as missed, and its schedule's catch-up decides
TOGETHER = 25  # occurrences of a catch-up or a backfill that one job carries out
LONGEST = 30 * 86_400_000  # ms of one timer: past that the schedule looks again

Entry = dict[str, Any]
Run = dict[str, Any]
"""``k``, ``p``, ``w``, ``by`` of its entry; ``o`` the outcome, ``at`` ms, ``led`` what it led to, ``e`` an error."""


@dataclass(slots=True)
class Claim:
    next: int | None
    pending: list[Entry] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    """The record of occurrences that are not run: those that were missed."""


def plan(schedule: Schedule, data: Mapping[str, Any], now: int, check: Callable[[], None] = lambda: None) -> Claim:
    """Compute what is due at ``now``, ms. ``check`` is called now and then in a long look back."""
    seconds = now // 1000
    claim = Claim(data["next"], requests=[dict(request) for request in data["requests"]])
    if not data["paused"]:
        _take_due(schedule, claim, seconds, now, check)
    _take_requests(schedule, claim, now)
    claim.pending.sort(key=lambda entry: int(entry["p"]))
    return claim


def wait_for(schedule: Schedule, planned: int | None, now: int) -> int:
    """Return the ms until an occurrence is due, as the timer takes them."""
    return 0 if planned is None else min(max(0, schedule.due(planned) * 1000 - now), LONGEST)


def _take_due(schedule: Schedule, claim: Claim, seconds: int, now: int, check: Callable[[], None]) -> None:
    missed, total, first = deque[int](maxlen=schedule.bound), 0, claim.next
    for number, planned in enumerate(_iterate_from(schedule, claim.next, seconds)):
        if number % 1000 == 0:
            check()
        claim.next = planned
        if schedule.due(planned) > seconds:
            break
        if seconds - schedule.due(planned) > LATE:
            missed.append(planned)
            total += 1
        else:
            claim.pending.append({"k": str(planned), "p": planned, "w": "due", "c": now})
        claim.next = None
    if isinstance(schedule.when, Interval) and first is not None:
        total += _count_missed_seconds(schedule, first, seconds) // schedule.when.seconds
    kept = {"none": 0, "last": 1, "all": schedule.bound}[schedule.catch_up]
    caught = list(missed)[-kept:] if kept else []
    if caught:
        claim.requests.insert(0, {"kind": "catch_up", "times": caught})
    if left := total - len(caught):
        claim.runs.append({"k": f"missed:{first}", "p": first, "w": "due", "o": "missed", "n": left, "at": now})


def _iterate_from(schedule: Schedule, planned: int | None, seconds: int) -> Iterator[int]:
    """Yield ``planned`` and what follows. Of a short interval after a long outage, only what may still be run."""
    if planned is None:
        return iter(())
    return schedule.iterate(planned - 1 + _count_missed_seconds(schedule, planned, seconds))


def _count_missed_seconds(schedule: Schedule, planned: int, seconds: int) -> int:
    """Return how many seconds of an interval's missed occurrences lie before those that its bound keeps."""
    if not isinstance(schedule.when, Interval):
        return 0
    every = schedule.when.seconds
    kept = (schedule.bound + 2) * every + LATE + schedule.jitter
    latest = seconds if schedule.end is None else min(seconds, schedule.end)
    return max(0, (latest - planned - kept) // every * every)


def _take_requests(schedule: Schedule, claim: Claim, now: int) -> None:
    left: list[dict[str, Any]] = []
    room = TOGETHER
    for request in claim.requests:
        if room <= 0:
            left.append(request)
            continue
        times, rest = _list_next_times(schedule, request, room)
        room -= len(times)
        claim.pending += [_make_entry(request, planned, now) for planned in times]
        if rest is not None:
            left.append(rest)
    claim.requests = left


def _list_next_times(schedule: Schedule, request: dict[str, Any], room: int) -> tuple[list[int], dict[str, Any] | None]:
    """Return the next occurrences of a request, and what is left of it."""
    if request["kind"] != "backfill":
        times, rest = request["times"][:room], request["times"][room:]
        return times, {**request, "times": rest} if rest else None
    found = [at for at in islice(schedule.iterate(request["from"] - 1), room + 1) if at < request["to"]]
    if len(found) <= room:
        return found, None
    return found[:room], {**request, "from": found[room]}


def _make_entry(request: dict[str, Any], planned: int, now: int) -> Entry:
    entry = {"k": str(planned), "p": planned, "w": request["kind"], "c": now}
    if request["kind"] != "catch_up":
        entry |= {"k": f"{request['id']}:{planned}", "by": request["by"]}
    return entry
