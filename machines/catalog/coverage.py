"""What tests covered of one definition, identified by the digest of its program."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from machines.engine import Engine
from machines.engine.definitions import Outline, TransitionOutline, compile_definition

FORMAT = "signalbox-coverage"
MOST_BYTES = 10_000_000  # of a file


@dataclass(slots=True)
class Coverage:
    """Counts of one definition. ``taken``: transition -> how often; ``refused``: transition -> how often its guard was
    seen false when an event was refused; ``tests``: how many tests ran the machine."""

    machine: str
    digest: str
    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    tests: int = 0

    def add(self, other: Coverage) -> None:
        """Add what other tests of the same definition covered."""
        self.taken.update(other.taken)
        self.refused.update(other.refused)
        self.tests += other.tests

    def as_dict(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "digest": self.digest,
            "tests": self.tests,
            "taken": dict(sorted(self.taken.items())),
            "refused": dict(sorted(self.refused.items())),
        }

    @classmethod
    def from_dict(cls, value: Any) -> Coverage:
        """Read what ``as_dict`` wrote. Raises ValueError."""
        try:
            counts = [
                Counter({str(id): int(count) for id, count in value[name].items()}) for name in ("taken", "refused")
            ]
            return cls(str(value["machine"]), str(value["digest"]), *counts, int(value["tests"]))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"this is no coverage of a machine: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Part:
    """A transition, or the other outcome of its guard. ``outcome``: "taken", or "guard false"."""

    transition: TransitionOutline
    outcome: str
    covered: bool

    def __str__(self) -> str:
        one = self.transition
        name = f"{one.source} -> {', '.join(one.targets) or one.target or one.source} ({one.id})"
        return f"{name} never taken" if self.outcome == "taken" else f"{name} with its guard false"


def list_parts(outline: Outline, coverage: Coverage) -> list[Part]:
    """List all that tests can cover: each transition, and of one with a guard that it was false, where that shows: by
    a refused event, or by a later transition for the same."""
    parts = []
    for state in outline.states:
        for one in state.transitions:
            parts.append(Part(one, "taken", coverage.taken[one.id] > 0))
            if one.guard_text is not None and (one.cause == "on" or _list_following(one, state.transitions)):
                parts.append(Part(one, "guard false", was_false(one, state.transitions, coverage)))
    return parts


def was_false(one: TransitionOutline, siblings: Iterable[TransitionOutline], coverage: Coverage) -> bool:
    """Tell whether a guard was seen false: an event was refused by it, or a later transition of the same state and
    event was taken, which is asked after it."""
    if coverage.refused[one.id]:
        return True
    return any(coverage.taken[each.id] for each in _list_following(one, siblings))


def _list_following(one: TransitionOutline, siblings: Iterable[TransitionOutline]) -> list[TransitionOutline]:
    """List the transitions of a state that are asked for the same events after this one was not taken."""
    later = itertools.islice(itertools.dropwhile(lambda each: each.id != one.id, siblings), 1, None)
    return [each for each in later if each.cause == one.cause and set(each.events) <= set(one.events)]


def percent(parts: Iterable[Part]) -> float:
    """Return the share of parts that are covered; 100 of none."""
    all_parts = list(parts)
    return 100.0 * sum(part.covered for part in all_parts) / len(all_parts) if all_parts else 100.0


def measure(engine: Engine, guards: Mapping[tuple[str, str], int], digests: dict[str, str]) -> list[Coverage]:
    """Read what the instances of an engine did, by definition. ``guards``: machine and transition -> how often a
    refusal named its guard; ``digests``: text of a definition -> its digest, kept for the next time."""
    found = []
    for machine, current in engine.machines().items():
        flow = engine.live(machine).flow
        versions = {current, *(int(edge.partition(":")[0]) for edge in flow)}
        for version in sorted(versions):
            text = json.dumps(engine.definition(machine, version))
            if text not in digests:
                digests[text] = compile_definition(json.loads(text)).digest
            taken = {edge.partition(":")[2]: n for edge, n in flow.items() if edge.startswith(f"{version}:") and n}
            refused = {id: n for (name, id), n in guards.items() if name == machine} if version == current else {}
            if taken or refused:
                found.append(Coverage(machine, digests[text], Counter(taken), Counter(refused), 1))
    return found


class Collector:
    """Adds up what many tests covered."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Coverage] = {}
        self._digests: dict[str, str] = {}

    def note(self, engine: Engine, guards: Mapping[tuple[str, str], int]) -> None:
        """Add what one test did, before its keys are removed."""
        self.add(measure(engine, guards, self._digests))

    def note_kit(self, kit: Any) -> None:
        """Add what the test kit of one test did."""
        self.note(kit.engine, kit.engine.false_guards)

    def add(self, coverages: Iterable[Coverage]) -> None:
        for one in coverages:
            self.found.setdefault((one.machine, one.digest), Coverage(one.machine, one.digest)).add(one)

    def write(self) -> str:
        """Return all of it as JSON."""
        document = {"format": FORMAT, "machines": [self.found[key].as_dict() for key in sorted(self.found)]}
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def read(text: str) -> list[Coverage]:
    """Read what ``Collector.write`` wrote. Raises ValueError."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"a file of coverage has at most {MOST_BYTES} bytes")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT or "machines" not in document:
        raise ValueError('this is no file of coverage: "format" is not "signalbox-coverage"')
    if not isinstance(document["machines"], list):
        raise ValueError('"machines" is no list')
    return [Coverage.from_dict(one) for one in document["machines"]]
