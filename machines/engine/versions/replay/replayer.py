"""Replays recorded histories on a version of their machine, or on a definition that is not published."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from machines.engine import arguments
from machines.engine.connection import waiting
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status, require_ok
from machines.engine.publishing.catalog import Catalog
from machines.engine.simulation import encode_program
from machines.engine.versions.content import VersionContent
from machines.engine.versions.planning.mapping import Targets
from machines.engine.versions.records import OWN_VERSION, TRIMMED, Divergence, Replay, StepOutcome

from .correspondence import check_states, compare_versions, read_states
from .history_walk import History, HistoryWalk, RecordedMove, map_states

TOGETHER = 100  # instances of which the histories are read and replayed together
STEPS = 100  # of one call, which ends after a few ms in any case: those that are left are sent again
MOST_SAMPLE = 10_000_000
SHARE = 0.5  # of the server's time
EXAMPLES = 10
FRESH = "{}"
MAX_KNOWN = 64  # mappings that are kept


@dataclass(slots=True)
class _Task:
    """The replay of one history. ``done``: steps that are over; ``last``: how many to replay."""

    history: History
    last: int
    done: int = 0
    snapshot: str = FRESH
    compared: int = 0
    untold: Counter[str] = field(default_factory=Counter)
    divergence: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        return self.done >= self.last or self.divergence is not None


@dataclass(frozen=True, slots=True)
class _Target:
    """What histories are replayed on: ``text`` is ``<version>:<digest>`` or the program of a draft; ``rules`` say how
    each recorded version corresponds to it."""

    text: str
    rules: Mapping[int, Mapping[str, Any]]


class _Comparer:
    """Compares the recorded versions with the replayed one, once for all histories whose moves map the same states.
    ``renamed``: states as the caller maps them, which count first."""

    def __init__(
        self, recorded: Mapping[int, VersionContent], replayed: VersionContent, renamed: Mapping[str, Targets]
    ) -> None:
        self.number = replayed.number or None
        self._recorded, self._replayed, self._renamed = recorded, replayed, renamed
        self._text = replayed.key if replayed.number else encode_program(replayed.program)
        self._states = {state.name for state in replayed.outline.states if state.type != "history"}
        self._known: dict[str, _Target] = {}

    def compare(self, moves: Sequence[RecordedMove]) -> _Target:
        """Return the target for histories with these moves."""
        mapped = map_states(moves, self.number, self._renamed, self._states)
        key = json.dumps(mapped, sort_keys=True)
        if key not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[key] = _Target(self._text, {n: self._compare(n, mapped.get(n, {})) for n in self._recorded})
        return self._known[key]

    def _compare(self, number: int, mapped: Mapping[str, Targets]) -> dict[str, Any]:
        states = {} if number == self.number else {**mapped, **self._renamed}
        return compare_versions(self._recorded[number], self._replayed, states)


class Replayer:
    """Replays histories of one machine."""

    def __init__(self, caller: Caller, catalog: Catalog, machine: str) -> None:
        self._caller, self._catalog, self._machine = caller, catalog, machine
        self._walk = HistoryWalk(caller, catalog, machine)

    def replay(
        self, recorded: Mapping[int, VersionContent], replayed: VersionContent, sample: int | None, states: Any = None
    ) -> Replay:
        """Replay histories of published versions on one of these, or on a draft."""
        if sample is not None:
            arguments.check_count("sample", sample, MOST_SAMPLE)
        renamed = read_states(states)
        check_states(renamed, recorded.values(), replayed)
        comparer, tally = waiting.compute(_Comparer, recorded, replayed, renamed), _Tally()
        walk = self._walk.find(sample)
        while found := list(islice(walk, TOGETHER)):
            histories = self._walk.read(found)
            tally.instances += len(found)
            self._replay_together(comparer, histories, tally)
        return Replay(
            machine=self._machine,
            version=comparer.number,
            instances=tally.instances,
            steps=tally.steps,
            divergences=sorted(
                tally.classes.values(), key=lambda one: (-one.count, one.version, one.configuration, one.event)
            ),
            untold=dict(sorted(tally.untold.items())),
            skipped=tally.skipped,
        )

    # The steps

    def _replay_together(self, comparer: _Comparer, histories: Sequence[History], tally: _Tally) -> None:
        groups: list[tuple[_Target, list[_Task]]] = []
        for history in histories:
            target = comparer.compare(history.moves)
            if not history.is_whole or not set(history.versions) <= set(target.rules):
                tally.untold[TRIMMED if not history.is_whole else "unknown step"] += len(history.entries)
                continue
            tasks = next((some for other, some in groups if other is target), None)
            if tasks is None:
                groups.append((target, tasks := []))
            tasks.append(_Task(history, len(history.entries), snapshot=_begin(history)))
        for target, tasks in groups:
            self._run(target, tasks)
            self._check_own_versions(target, [task for task in tasks if task.divergence is not None])
            for task in tasks:
                tally.add(task)

    def _check_own_versions(self, target: _Target, tasks: Sequence[_Task]) -> None:
        """Replay histories that diverge on the version that recorded them, up to the step that does. Where that does
        not repeat it either, the history does not tell enough."""
        by_version: dict[int, list[tuple[_Task, _Task]]] = {}
        for task in tasks:
            version, *others = task.history.versions
            rules = target.rules[version]
            if not others and not rules.get("same"):
                control = _Task(task.history, task.done, snapshot=_begin(task.history))
                by_version.setdefault(version, []).append((task, control))
        for version, pairs in by_version.items():
            own = _Target(str(target.rules[version]["def"]), {version: {"same": True}})
            self._run(own, [control for _, control in pairs])
            for task, control in pairs:
                if control.divergence is not None or control.untold:
                    kept = min(task.compared, control.done) - 1
                    task.untold = Counter({OWN_VERSION: task.last - max(0, kept)})
                    task.compared, task.divergence, task.done = max(0, kept), None, task.last

    def _run(self, target: _Target, tasks: Sequence[_Task]) -> None:
        """Replay tasks to their end, in calls that leave the server half of its time."""
        rules = json.dumps({str(version): one for version, one in target.rules.items()})
        by_root: dict[str, list[_Task]] = {}
        for task in tasks:
            by_root.setdefault(task.history.root, []).append(task)
        for root, waiting_tasks in by_root.items():
            while left := [task for task in waiting_tasks if not task.is_over]:
                began = time.monotonic()
                self._call(root, target.text, rules, left)
                waiting.pause((time.monotonic() - began) * (1 / SHARE - 1))

    def _call(self, root: str, text: str, rules: str, tasks: Sequence[_Task]) -> None:
        chosen, words, room = [], [], STEPS
        for task in tasks:
            if room <= 0:
                break
            part = list(islice(task.history.entries, task.done, min(task.last, task.done + room)))
            room -= len(part)
            chosen.append(task)
            words += [task.history.id, task.snapshot, f"[{','.join(part)}]"]
        reply = self._caller.call("sb_replay", root, text, rules, *words)
        if reply[0] == Status.NO_MACHINE:
            self._catalog.forget(self._machine)
        require_ok("sb_replay", reply, self._machine)
        for task, answer in zip(chosen, reply[1:], strict=False):
            _advance(task, json.loads(answer))


def _begin(history: History) -> str:
    return json.dumps({"version": str(history.versions[0]), "parent": history.parent or None})


def _advance(task: _Task, answer: Mapping[str, Any]) -> None:
    """Note what a call did."""
    task.done += int(answer["done"])
    task.compared += int(answer["compared"])
    task.untold.update({reason: int(count) for reason, count in answer["untold"].items()})
    task.divergence = answer.get("divergence")
    if "stopped" in answer:
        task.untold[answer["stopped"]] += task.last - task.done
        task.done = task.last
    if "snapshot" in answer:
        task.snapshot = json.dumps(answer["snapshot"], ensure_ascii=False, separators=(",", ":"))


class _Tally:
    """What was replayed so far."""

    def __init__(self) -> None:
        self.instances = self.steps = self.skipped = 0
        self.untold: Counter[str] = Counter()
        self.classes: dict[tuple[Any, ...], Divergence] = {}

    def add(self, task: _Task) -> None:
        self.steps += task.compared
        self.untold.update(task.untold)
        if task.divergence is not None:
            self.skipped += task.last - task.done
            self._add_divergence(task.history.id, task.divergence)

    def _add_divergence(self, id: str, found: Mapping[str, Any]) -> None:
        kinds, source = tuple(found["kinds"]), tuple(found["source"])
        key = (int(found["version"]), source, found["event"], kinds)
        known = self.classes.get(key)
        if known is not None:
            examples = known.examples if len(known.examples) == EXAMPLES else (*known.examples, id)
            self.classes[key] = replace(known, count=known.count + 1, examples=examples)
            return
        expected, actual = _read_outcome(found["expected"]), _read_outcome(found["actual"])
        self.classes[key] = Divergence(
            1, key[0], source, found["event"], kinds, expected, actual,
            example=id, step=int(found["step"]), at=int(found["at"]), examples=(id,),
        )  # fmt: skip


def _read_outcome(found: Mapping[str, Any]) -> StepOutcome:
    transitions: Iterable[str] = found["transitions"].split()
    return StepOutcome(
        tuple(found["configuration"]), tuple(transitions), found.get("data") or {}, str(found.get("error") or "")
    )
