"""Makes a draft of a machine from the event log of a process that has none: CSV, XES (IEEE 1849) or OCEL 2.0 (JSON).

Each activity becomes a state that the event of its name leads to; what follows it directly, often enough, becomes a
transition (a directly-follows graph, filtered by share). It is where a person goes on from, in the Studio.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pyexpat import ErrorString, ExpatError, ParserCreate
from typing import Any

from machines.engine.definitions import outline

from .errors import BadLog, BadSearch
from .facts import CREATE
from .records import Conformance, Deviation, Extent
from .rules import Rule, Rules, find_ends

MOST_EVENTS = 1_000_000
MOST_DEPTH = 32  # elements of XES inside each other
MOST_NAMES = 200  # activities of a draft: a diagram of more helps nobody
CASES = ("case:concept:name", "case_id", "caseid", "case", "id", "instance")
NAMES = ("concept:name", "activity", "event", "name", "type")
TIMES = ("time:timestamp", "timestamp", "time", "at", "date", "start_timestamp")


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a log. ``line``: where it stands, for errors."""

    case: str
    name: str
    at: float
    line: int


@dataclass(frozen=True, slots=True)
class Draft:
    """``kept``: share of the steps of the log that the definition has."""

    definition: dict[str, Any]
    cases: int
    events: int
    kept: float

    @property
    def text(self) -> str:
        return json.dumps(self.definition, indent=2, ensure_ascii=False)


def discover(text: str, name: str = "process", *, least: float = 0.05) -> Draft:
    """Make a draft. ``least``: share of the steps from an activity below which a step is left out. Raises BadLog."""
    traces = read_traces(text)
    pairs = Counter((a, b) for trace in traces.values() for a, b in _follow([one.name for one in trace]))
    definition, kept = _make(name, pairs, least)
    return Draft(definition, len(traces), sum(map(len, traces.values())), kept)


def read_traces(text: str) -> dict[str, list[Event]]:
    """Read the events of each case. Raises BadLog with a line where the log has no ids or names, goes backwards in
    time, ends in the middle, or has too many names."""
    traces: dict[str, list[Event]] = {}
    names: set[str] = set()
    for count, event in enumerate(_read(text), start=1):
        names.add(event.name)
        if len(names) > MOST_NAMES:
            raise BadLog(f"the log has more than {MOST_NAMES} names of events: group them first", event.line)
        if count > MOST_EVENTS:
            raise BadLog(f"the log has more than {MOST_EVENTS:,} events", event.line)
        trace = traces.setdefault(event.case, [])
        if trace and event.at < trace[-1].at:
            raise BadLog(
                f"the time of {event.name!r} of {event.case!r} is before that of line {trace[-1].line}", event.line
            )
        trace.append(event)
    if not traces:
        raise BadLog("the log has no events")
    return traces


def _follow(names: list[str]) -> Iterator[tuple[str, str]]:
    yield from zip(["", *names], [*names, ""], strict=True)


def _make(name: str, pairs: Mapping[tuple[str, str], int], least: float) -> tuple[dict[str, Any], float]:
    """Make the definition of the pairs that are frequent enough. "" stands for the begin and the end of a case."""
    outs: Counter[str] = Counter()
    for (before, _), count in pairs.items():
        outs[before] += count
    often = {pair: count for pair, count in pairs.items() if count >= least * outs[pair[0]]}
    best = {before: max((p for p in pairs if p[0] == before), key=lambda p: (pairs[p], p)) for before in outs}
    often |= {pair: pairs[pair] for pair in best.values()}
    reached, waiting = {""}, [""]
    while waiting:
        before = waiting.pop()
        fresh = {after for one, after in often if one == before} - reached
        reached |= fresh
        waiting += sorted(fresh)
    often = {pair: count for pair, count in often.items() if pair[0] in reached}
    states = _name([one for one in dict.fromkeys(after for _, after in often) if one])
    found: dict[str, dict[str, Any]] = {"Begin": {"on": {}}}
    for activity, state in states.items():
        found[state] = {"description": activity, "on": {}}
    ends = {before for before, after in often if not after}
    only = {before for before in ends if not any(one == before and after for one, after in often)}
    for (before, after), _ in sorted(often.items(), key=lambda item: (-item[1], item[0])):
        source = found[states[before] if before else "Begin"]
        if after:
            source["on"][states[after]] = states[after]
        elif before not in only:
            source["on"]["end"] = "End"
    for activity in only:
        found[states[activity]] = {"description": activity, "type": "final"}
    if ends - only:
        found["End"] = {"type": "final"}
    machine = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:64]
    definition = {"id": machine if machine[:1].isalpha() else f"m_{machine}"[:64], "initial": "Begin", "states": found}
    return definition, sum(often.values()) / sum(pairs.values())


def _name(activities: Iterable[str]) -> dict[str, str]:
    """Give each activity a name that events and states may have."""
    taken: dict[str, str] = {}
    for activity in activities:
        plain = re.sub(r"\W+", "_", activity).strip("_")[:80] or "activity"
        name, number = plain, 2
        while name in taken.values() or name in ("Begin", "End", "end"):
            name, number = f"{plain}_{number}", number + 1
        taken[activity] = name
    return taken


def _read(text: str) -> Iterator[Event]:
    head = text.lstrip("\ufeff \t\r\n")
    if head.startswith("<"):
        return _read_xes(text)
    return _read_ocel(text) if head.startswith("{") else _read_csv(text.lstrip("\ufeff"))


def _read_csv(text: str) -> Iterator[Event]:
    first = text.partition("\n")[0]
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    known = {name.strip().lower(): name for name in rows.fieldnames or () if name}
    case, name, at = (next((known[one] for one in wanted if one in known), None) for wanted in (CASES, NAMES, TIMES))
    if case is None or name is None or at is None:
        lacks = [wanted[0] for wanted, found in ((CASES, case), (NAMES, name), (TIMES, at)) if found is None]
        raise BadLog(f"the header has no column {', '.join(lacks)}", 1)
    try:
        for row in rows:
            if None in row or None in row.values():
                raise BadLog("the row has another number of columns than the header", rows.line_num)
            yield _check(row[case], row[name], row[at], rows.line_num)
    except csv.Error as error:
        raise BadLog(f"not CSV: {error}", rows.line_num + 1) from error


def _read_xes(text: str) -> Iterator[Event]:
    """Read traces and their events; of attributes only those of a trace and of an event itself."""
    found: list[Event] = []
    path: list[str] = []
    trace: dict[str, str] = {}
    event: dict[str, str] = {}
    parser = ParserCreate(namespace_separator=" ")

    def refuse(*_: object) -> int:
        raise BadLog("document types and entities are refused", parser.CurrentLineNumber)

    def begin(tag: str, attributes: dict[str, str]) -> None:
        if len(path) == MOST_DEPTH:
            raise BadLog(f"elements are more than {MOST_DEPTH} levels deep", parser.CurrentLineNumber)
        path.append(tag.rpartition(" ")[2])
        if path[1:] == ["trace"]:
            trace.clear()
        elif path[1:] == ["trace", "event"]:
            event.clear()
        elif path[1:-1] == ["trace"]:
            trace[attributes.get("key", "")] = attributes.get("value", "")
        elif path[1:-1] == ["trace", "event"]:
            event[attributes.get("key", "")] = attributes.get("value", "")

    def end(_: str) -> None:
        if path[1:] == ["trace", "event"]:
            words = trace.get("concept:name", ""), event.get("concept:name", ""), event.get("time:timestamp", "")
            found.append(_check(*words, parser.CurrentLineNumber))
        path.pop()

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(text, True)
    except ExpatError as error:
        raise BadLog(f"not XES, or half a file: {ErrorString(error.code)}", error.lineno) from error
    return iter(found)


def _read_ocel(text: str) -> Iterator[Event]:
    """Read the events of the most frequent type of object, each object a case."""
    try:
        log = json.loads(text)
        types = {_read_text(one, "id"): _read_text(one, "type") for one in log["objects"]}
        related = [[link["objectId"] for link in one.get("relationships", ())] for one in log["events"]]
        counts = Counter(types[id] for ids in related for id in ids)
        wanted = counts.most_common(1)[0][0] if counts else ""
        cases = [
            (id, one) for ids, one in zip(related, log["events"], strict=True) for id in ids if types[id] == wanted
        ]
        events = [_check(id, _read_text(one, "type"), _read_text(one, "time"), 0) for id, one in cases]
    except json.JSONDecodeError as error:
        raise BadLog(f"not JSON, or half a file: {error.msg}", error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise BadLog("not OCEL 2.0: it is nested too deeply, or a number or a text makes no sense") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise BadLog(f"not OCEL 2.0: {error!r} is missing or of another kind") from error
    return iter(sorted(events, key=lambda one: one.at))  # its events have no order


def _read_text(record: Mapping[str, Any], key: str) -> str:
    text = record[key]
    if not isinstance(text, str):
        raise TypeError(f"{key}, which is a text,")
    text.encode()  # raises UnicodeEncodeError, a ValueError, for half a character
    return text


def _check(case: str, name: str, at: str, line: int) -> Event:
    if not case or not name:
        raise BadLog(f"the event has no {'name' if case else 'id of its case'}", line)
    try:
        time = float(at) if re.fullmatch(r"\d{9,13}(\.\d+)?", at) else _read_time(at)
    except ValueError:
        raise BadLog(f"{at!r} is no time: write ISO 8601", line) from None
    return Event(case, name, time, line)


def _read_time(text: str) -> float:
    found = datetime.fromisoformat(text.strip())
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


SENT = re.compile(r"\b(?:raise|send) ([\w.-]+)")
Places = frozenset[str]  # leaves where a case may be: a log does not tell how guards decided


def check_log(text: str, definition: Mapping[str, Any], version: int, *, most: int = 100) -> Conformance:
    """Answer which steps of a log a definition does not have. An activity is the state of its name or description, as
    in a draft, which the step enters; otherwise an event. Timers, results of jobs and raised events may come between
    two activities; activities in parentheses, steps of the engine itself, stay unchecked, and may lead anywhere.
    Raises BadLog, and BadSearch for a definition with parallel states."""
    traces = read_traces(text)
    replay = _Replay(definition)
    found: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str, str], str] = {}
    fitting = unchecked = 0
    for case, trace in traces.items():
        places, fits = Places(), True
        for one in trace:
            if one.name.startswith("("):
                unchecked += 1
                places = places if one.name == CREATE else replay.leaves
                continue
            places, wrong = replay.follow(places, one.name)
            if wrong:
                fits = False
                found[wrong] += 1
                examples.setdefault(wrong, case)
        fitting += fits
    rows = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    deviations = tuple(Deviation(version, *step, count, examples[step]) for step, count in rows[:most])
    extent = Extent(len(traces), sum(map(len, traces.values())), left_out=len(rows[most:]))
    return Conformance(extent, fitting, unchecked, deviations)


class _Replay:
    """``_states``: name or description -> leaves; ``_silent``: the transitions of no activity."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        found, self._rules = outline(definition), Rules.of(definition)
        if any(state.type == "parallel" for state in found.states):
            raise BadSearch("a log does not tell the states of parallel regions, which this definition has")
        self.leaves = Places(found.leaves)
        self._states: dict[str, Places] = {}
        for state in found.states:
            for name in {state.name, state.description} - {""}:
                self._states[name] = self._states.get(name, Places()) | Places(found.leaves_of(state.name))
        taken = [one for state in found.states for one in state.transitions]
        lists = [*(one.actions for one in taken), *(one.entry + one.exit for one in found.states)]
        own = {name for actions in lists for text in actions for name in SENT.findall(text)}
        own |= {event for one in taken if one.cause != "on" for event in one.events}
        self._silent = [one for one in self._rules.transitions.values() if not one.events or any(map(one.takes, own))]
        self._begin = Places(find_ends(found, (found.initial,))) & self.leaves
        self.follow = cache(self._follow)

    def _follow(self, places: Places, name: str) -> tuple[Places, tuple[str, str, str] | None]:
        """Return where a case may be after an activity, and the step if it is a deviation. No places: a new case."""
        near, rules = self._spread(places or self._begin), self._rules.transitions.values()
        if name in self._states:
            entered, step = self._states[name], (name, "")
            after = self._take(near, [one for one in rules if one.events]) & entered | (near - places) & entered
        else:
            taken, step = [one for one in rules if one.takes(name)], ("", name)
            entered = Places(end for one in taken for end in one.ends) & self.leaves
            after = self._take(near, taken)
        return (after, None) if after else (entered or places, (" | ".join(sorted(places or self._begin)), *step))

    def _take(self, places: Places, rules: Collection[Rule]) -> Places:
        """Return where these transitions lead from some leaves."""
        found: set[str] = set()
        for one in rules:
            if inside := {place for place in places if one.source in self._rules.around[place]}:
                found |= one.ends | (inside if one.inside is None else set())
        return Places(found) & self.leaves

    def _spread(self, places: Places) -> Places:
        """Add where a case may come by itself."""
        while more := self._take(places, self._silent) - places:
            places |= more
        return places
