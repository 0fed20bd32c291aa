"""Reads scenario files. Strict: whatever is not known is a finding, and nothing of such a file is run."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from machines.catalog.editing.places import Places, read_places
from machines.engine import limits
from machines.formats import text as texts
from machines.formats import yaml as yaml_format
from machines.testing.clock import read_duration

from .document import Finding, Given, Message, Refusal, Scenario, ScenarioFile, Step, Then, When

SCHEMA = Path(__file__).with_name("schema.json")
NOT_READ, UNKNOWN_KEY, MISSING, WRONG, TWICE = "SB670", "SB671", "SB672", "SB673", "SB674"
FILE_KEYS = ("machine", "given", "scenarios")
SCENARIO_KEYS = ("name", "description", "given", "steps")
GIVEN_KEYS = ("data", "id", "time", "events")
WHEN_KEYS = {
    "event": ("event", "payload", "to", "actor", "groups"),
    "after": ("after",),
    "job": ("job", "of", "done", "failed"),
}
FAILED_KEYS = ("error", "kind", "retry")
THEN_KEYS = ("state", "data", "refused", "jobs", "messages", "transitions", "done")
REFUSED_KEYS = ("why", "code")
MESSAGE_KEYS = ("event", "to", "payload")
STEP_KEYS = ("when", "then")


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files. The object is shared: do not change it."""
    found: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return found


def read_text(text: str | bytes, path: Path | None = None) -> tuple[ScenarioFile | None, list[Finding]]:
    """Read the text of a file; return what it holds, None where anything is wrong, and all findings. Never raises."""
    decoded = texts.decode(text)
    if not isinstance(decoded, str):
        return None, [Finding(NOT_READ, 0, "", decoded.message, decoded.hint)]
    document, problems = yaml_format.read(decoded)
    if problems:
        return None, [Finding(NOT_READ, _line_of(one.path), "", one.message, one.hint) for one in problems]
    reader = _Reader(read_places(decoded, "yaml"))
    file = reader.read_file(document, path)
    return (None if reader.findings else file), reader.findings


def _line_of(place: str) -> int:
    """Return the line of ``line 3, column 7``; 0 for another text."""
    words = place.removeprefix("line ").partition(",")[0]
    return int(words) if words.isdigit() else 0


class _Reader:
    """Turns plain values into records, and collects what is wrong with them."""

    def __init__(self, places: Places) -> None:
        self.findings: list[Finding] = []
        self._places = places

    def add(self, code: str, path: str, message: str, hint: str = "") -> None:
        self.findings.append(Finding(code, self._places.find_line(path), path, message, hint))

    # Records

    def read_file(self, value: Any, path: Path | None) -> ScenarioFile:
        found = self._mapping(value, "", FILE_KEYS, ("machine", "scenarios"), "a scenario file")
        machine = self._text(found, "machine", "")
        shared = self._read_given(found.get("given"), "given") if "given" in found else None
        scenarios = tuple(
            self._scenario(one, place, machine, shared)
            for one, place in self._items(found, "scenarios", "", "a list of scenarios", least=1)
        )
        self._refuse_twice(scenarios)
        return ScenarioFile(machine, scenarios, path, self._places)

    def _refuse_twice(self, scenarios: tuple[Scenario, ...]) -> None:
        seen: set[str] = set()
        for number, one in enumerate(scenarios):
            if one.name and one.name in seen:
                self.add(TWICE, f"scenarios[{number}].name", f"two scenarios are named {one.name!r}", "rename one")
            seen.add(one.name)

    def _scenario(self, value: Any, path: str, machine: str, shared: Given | None) -> Scenario:
        found = self._mapping(value, path, SCENARIO_KEYS, ("name", "steps"), "a scenario")
        steps = tuple(
            self._step(one, place) for one, place in self._items(found, "steps", path, "a list of steps", least=1)
        )
        given = shared or Given()
        if "given" in found:
            own = self._read_given(found["given"], f"{path}.given")
            given = Given(
                {**given.data, **own.data},
                own.id or given.id,
                given.time if own.time is None else own.time,
                (*given.events, *own.events),
            )
        name, description = self._text(found, "name", path), self._text(found, "description", path)
        return Scenario(name, machine, given, steps, description, self._places.find_line(path))

    def _read_given(self, value: Any, path: str) -> Given:
        found = self._mapping(value, path, GIVEN_KEYS, (), "given")
        events = []
        for one, place in self._items(found, "events", path, "a list of what happens first"):
            when = self._when(one, place)
            if when is not None:
                events.append(when)
        data = self._fields(found, "data", path) or {}
        return Given(data, self._text(found, "id", path), self._time(found, path), tuple(events))

    def _step(self, value: Any, path: str) -> Step:
        found = self._mapping(value, path, STEP_KEYS, (), "a step")
        if isinstance(value, dict) and not found.keys() & set(STEP_KEYS):
            self.add(MISSING, path, "a step has when, then, or both")
        when = self._when(found["when"], f"{path}.when") if "when" in found else None
        then = self._then(found["then"], f"{path}.then") if "then" in found else None
        if then is not None and then.refused is not None and (when is None or when.kind != "event"):
            self.add(WRONG, f"{path}.then.refused", "only the event of the same step can be refused", "name it in when")
        return Step(when, then, self._places.find_line(path), path)

    def _when(self, value: Any, path: str) -> When | None:
        kinds = [kind for kind in WHEN_KEYS if isinstance(value, dict) and kind in value]
        if len(kinds) != 1:
            known = [key for keys in WHEN_KEYS.values() for key in keys]
            found = self._mapping(value, path, known, (), "when")
            if isinstance(value, dict):
                what = " and ".join(kinds) or ", ".join(found) or "nothing"
                self.add(WRONG, path, f"when has one of event, after and job, found {what}")
            return None
        kind = kinds[0]
        found = self._mapping(value, path, WHEN_KEYS[kind], (), f"when with {kind}")
        return {"event": self._event, "after": self._after, "job": self._job}[kind](found, path)

    def _event(self, found: dict[str, Any], path: str) -> When:
        groups = None
        if "groups" in found:
            groups = tuple(self._text_item(one, place) for one, place in self._items(found, "groups", path, "names"))
        return When(
            "event",
            self._text(found, "event", path),
            payload=self._fields(found, "payload", path),
            machine=self._text(found, "to", path),
            actor=self._text(found, "actor", path),
            groups=groups,
        )

    def _after(self, found: dict[str, Any], path: str) -> When:
        return When("after", delay=self._read(lambda: read_duration(found["after"]), f"{path}.after"))

    def _job(self, found: dict[str, Any], path: str) -> When:
        ends = [key for key in ("done", "failed") if key in found]
        if len(ends) != 1:
            hint = "done: its result, or failed: its error"
            self.add(WRONG if ends else MISSING, path, "a job ends in one way", hint)
            return When("job")
        name, machine = self._text(found, "job", path), self._text(found, "of", path)
        if ends == ["done"]:
            return When("job", name, machine=machine, outcome="done", result=found["done"])
        failed, place = found["failed"], f"{path}.failed"
        failed = {"error": failed} if isinstance(failed, str) else {} if failed is True else failed
        inner = self._mapping(failed, place, FAILED_KEYS, (), "failed", "or the text of the error, or true")
        return When(
            "job",
            name,
            machine=machine,
            outcome="failed",
            error=self._text(inner, "error", place) or "failed by the scenario",
            error_kind=self._text(inner, "kind", place),
            retry=bool(self._flag(inner, "retry", place)),
        )

    def _then(self, value: Any, path: str) -> Then:
        found = self._mapping(value, path, THEN_KEYS, (), "then")
        if isinstance(value, dict) and not value:
            self.add(MISSING, path, f"then says what holds: {', '.join(THEN_KEYS)}")
        states = found.get("state", [])
        return Then(
            self._texts({"state": [states] if isinstance(states, str) else states}, "state", path) or (),
            self._fields(found, "data", path),
            self._read_refusal(found["refused"], f"{path}.refused") if "refused" in found else None,
            self._texts(found, "jobs", path),
            self._messages(found, path),
            self._texts(found, "transitions", path),
            self._flag(found, "done", path),
        )

    def _read_refusal(self, value: Any, path: str) -> Refusal:
        if value is True or isinstance(value, str):
            return Refusal(why=value if isinstance(value, str) else "")
        found = self._mapping(value, path, REFUSED_KEYS, (), "refused", "or a part of the explanation, or true")
        return Refusal(self._text(found, "why", path), self._text(found, "code", path))

    def _messages(self, found: dict[str, Any], path: str) -> tuple[Message, ...] | None:
        if "messages" not in found:
            return None
        messages = []
        for one, place in self._items(found, "messages", path, "a list of messages"):
            inner = self._mapping(
                {"event": one} if isinstance(one, str) else one, place, MESSAGE_KEYS, ("event",), "it"
            )
            payload = self._fields(inner, "payload", place)
            messages.append(Message(self._text(inner, "event", place), self._text(inner, "to", place), payload))
        return tuple(messages)

    # Values

    def _mapping(
        self, value: Any, path: str, known: Collection[str], needed: Collection[str], what: str, otherwise: str = ""
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            hint = f"with the keys {', '.join(known)}" + (f", {otherwise}" if otherwise else "")
            self.add(WRONG, path, f"{what} is a mapping, not {_kind(value)}", hint)
            return {}
        for key in value:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"{what} has {', '.join(known)}"
                self.add(UNKNOWN_KEY, _join(path, key), f"the key {key!r} is not known here", hint)
        for key in needed:
            if key not in value:
                self.add(MISSING, path, f"{what} needs the key {key!r}")
        return value

    def _items(
        self, found: dict[str, Any], key: str, path: str, what: str, least: int = 0
    ) -> Iterator[tuple[Any, str]]:
        place = _join(path, key)
        items = found.get(key, [])
        if not isinstance(items, list) or (key in found and len(items) < least):
            self.add(WRONG, place, f"{what} is expected, found {_kind(items)}", "begin each entry with a dash")
            return
        for number, one in enumerate(items):
            yield one, f"{place}[{number}]"

    def _text(self, found: dict[str, Any], key: str, path: str) -> str:
        return self._text_item(found[key], _join(path, key)) if key in found else ""

    def _text_item(self, value: Any, path: str) -> str:
        if isinstance(value, str) and value.strip():
            return value
        self.add(WRONG, path, f"a text is expected, found {_kind(value)}", "write it in quotes" if value else "")
        return ""

    def _texts(self, found: dict[str, Any], key: str, path: str) -> tuple[str, ...] | None:
        if key not in found:
            return None
        return tuple(self._text_item(one, place) for one, place in self._items(found, key, path, "a list of names"))

    def _flag(self, found: dict[str, Any], key: str, path: str) -> bool | None:
        value = found.get(key)
        if key in found and not isinstance(value, bool):
            self.add(WRONG, _join(path, key), f"true or false is expected, found {_kind(value)}")
            return None
        return value

    def _fields(self, found: dict[str, Any], key: str, path: str) -> dict[str, Any] | None:
        if key not in found:
            return None
        value = found[key]
        if isinstance(value, dict):
            return value
        self.add(WRONG, _join(path, key), f"fields with their values are expected, found {_kind(value)}")
        return {}

    def _time(self, found: dict[str, Any], path: str) -> int | None:
        if "time" not in found:
            return None
        return self._read(lambda: _read_time(found["time"]), f"{path}.time")

    def _read(self, read: Callable[[], int], path: str) -> int:
        try:
            number = read()
        except ValueError as error:
            self.add(WRONG, path, str(error))
            return 0
        if number > limits.MAX_INTEGER:
            self.add(WRONG, path, "this is too far away")
            return 0
        return number


def _read_time(value: Any) -> int:
    """Return a moment in ms; a time without a zone is UTC. Raises ValueError."""
    hint = f"{value!r} is no time; write it as 2026-11-23 12:00, in UTC"
    if not isinstance(value, str):
        raise ValueError(hint)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(hint) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    ms = round(moment.timestamp() * 1000)
    if ms < 0:
        raise ValueError(f"{value!r} is before 1970")
    return ms


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if value == [] or value == "":
        return "an empty one"
    names = {
        dict: "a mapping",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), type(value).__name__)
