"""Compares the transitions of a pair of states, their guards, actions and timers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from machines.engine.definitions import StateOutline, TransitionOutline, render
from machines.engine.versions.content import VersionContent
from machines.engine.versions.diff import CHANGES, COMPATIBLE, Change

from .pairs import Pair, Pairs, freeze, locate_state

KEYS = {"on": "on", "after": "after", "always": "always", "done": "onDone", "error": "onError", "state done": "onDone"}


@dataclass(frozen=True, slots=True)
class Arrow:
    """A transition in one version, with names as in the new one. ``trigger``: what it listens for; ``targets``:
    names; ``guard``, ``actions``: comparable texts."""

    outline: TransitionOutline
    trigger: tuple[str, ...]
    targets: tuple[str, ...]
    guard: str
    actions: str
    path: str

    @property
    def id(self) -> str:
        return self.outline.id

    @property
    def is_timer(self) -> bool:
        return self.outline.cause == "after"

    @property
    def terms(self) -> tuple[Any, ...]:
        """Return what beside guard and actions decides what it does."""
        return self.trigger, self.targets, self.outline.reenter, self.outline.allow

    @property
    def whole(self) -> tuple[Any, ...]:
        return *self.terms, self.guard, self.actions

    def __str__(self) -> str:
        words = f"after {self.outline.delay}" if self.is_timer and self.outline.delay else ""
        words = words or ", ".join(self.outline.events) or self.outline.cause
        guard = f" [{self.outline.guard_text}]" if self.outline.guard_text else ""
        allow = f", allowed for {', '.join(self.outline.allow)}" if self.outline.allow else ""
        return f"{words}{guard} to {', '.join(self.outline.targets) or 'no other state'}{allow}"


def read_arrows(version: VersionContent, state: StateOutline, pairs: Pairs, invokes: dict[str, str]) -> list[Arrow]:
    """List the transitions of a state. ``invokes``: id -> id in the new version, for events of invokes."""
    program = version.programs[state.name]
    compiled = [*program.get("transitions", ()), *program.get("always", ())]
    delays = {c["events"][0]: c["delay"] for c in compiled if "delay" in c and c.get("events")}
    keys = [_find_key(transition) for transition in state.transitions]
    total, seen = Counter(keys), Counter[tuple[str, ...]]()
    found = []
    for transition, code, key in zip(state.transitions, compiled, keys, strict=True):
        below: tuple[str | int, ...] = (*key, seen[key]) if total[key] > 1 else key
        seen[key] += 1
        rename = pairs.map if version is pairs.old else (lambda name: name)
        found.append(
            Arrow(
                transition,
                _find_trigger(transition, delays, invokes if version is pairs.old else {}),
                tuple(str(rename(target)) for target in transition.targets),
                freeze(code.get("guard")),
                freeze(code.get("actions", [])),
                render((*locate_state(version, state), *below)),
            )
        )
    return found


def _find_key(transition: TransitionOutline) -> tuple[str, ...]:
    key = KEYS.get(transition.cause, transition.cause)
    if transition.cause == "on":
        return key, " ".join(transition.events)
    if transition.cause in ("done", "error"):
        return "invoke", key
    return (key, transition.delay) if transition.cause == "after" and transition.delay else (key,)


def _find_trigger(transition: TransitionOutline, delays: dict[str, Any], invokes: dict[str, str]) -> tuple[str, ...]:
    if transition.cause == "after":
        return "after", freeze(delays.get(transition.events[0] if transition.events else ""))
    if transition.cause in ("done", "error"):
        word, _, id = (transition.events or ("",))[0].partition(".invoke.")
        return word, invokes.get(id, id)
    if transition.cause == "state done":
        return ("state done",)
    return (transition.cause, *transition.events)


def compare_transitions(pair: Pair, pairs: Pairs, invokes: dict[str, str]) -> Iterator[Change]:
    """Compare the transitions of a state in both versions."""
    old = read_arrows(pairs.old, pair.old, pairs, invokes)
    new = read_arrows(pairs.new, pair.new, pairs, invokes)
    matches: list[tuple[Arrow, Arrow]] = []
    waiting, left = list(old), list(new)
    tests: list[Callable[[Arrow, Arrow], bool]] = [
        lambda one, other: one.whole == other.whole,
        lambda one, other: one.trigger == other.trigger and one.targets == other.targets,
        lambda one, other: one.trigger == other.trigger,
        lambda one, other: one.outline.cause == other.outline.cause and one.whole[1:] == other.whole[1:],
        lambda one, other: one.is_timer and other.is_timer and one.targets == other.targets,
    ]
    for test in tests:
        for one in list(waiting):
            other = next((candidate for candidate in left if test(one, candidate)), None)
            if other is not None:
                matches.append((one, other))
                waiting.remove(one)
                left.remove(other)
    taken = {one.trigger for one in old}
    yield from (_remove(one) for one in waiting)
    for one, other in sorted(matches, key=lambda both: new.index(both[1])):
        yield from _compare_pair(one, other)
    yield from (_add(other, other.trigger in taken) for other in left)
    yield from _compare_order(pair, pairs, [(old.index(one), new.index(other), one.trigger) for one, other in matches])


def _remove(one: Arrow) -> Change:
    if one.is_timer:
        reason = "armed timers of it are disarmed"
    elif one.outline.cause == "always":
        reason = "instances no longer leave by it"
    else:
        reason = "instances in this state no longer take it"
    kind = "timer" if one.is_timer else "transition"
    part = ("transitions", one.id)
    return Change(kind, "removed", one.path, str(one), "", CHANGES, reason, old_part=part)


def _add(other: Arrow, known: bool) -> Change:
    verdict = CHANGES
    if other.is_timer:
        reason = "instances that stand here get a timer"
    elif other.outline.cause == "always":
        reason = "an instance that stands here takes it with its next step"
    elif other.outline.cause != "on" or known:
        reason = "it competes with transitions of the same event"
    else:
        verdict, reason = COMPATIBLE, "the state took no such event before"
    kind = "timer" if other.is_timer else "transition"
    part = ("transitions", other.id)
    return Change(kind, "added", other.path, "", str(other), verdict, reason, new_part=part)


def _compare_pair(one: Arrow, other: Arrow) -> Iterator[Change]:
    parts: dict[str, Any] = {"old_part": ("transitions", one.id), "new_part": ("transitions", other.id), "match": "id"}
    if one.trigger != other.trigger:
        parts["match"] = "shape"
        if one.is_timer:
            reason = "an armed timer is another one: it is disarmed, and armed with the new delay"
            before, after = f"after {one.outline.delay}", f"after {other.outline.delay}"
            yield Change("timer", "changed", other.path, before, after, CHANGES, reason, **parts)
        else:
            reason = "events of the old name are no longer taken here"
            yield Change("transition", "renamed", other.path, str(one), str(other), CHANGES, reason, **parts)
    elif one.terms != other.terms:
        reason = "it leads elsewhere, or on other terms"
        yield Change("transition", "changed", other.path, str(one), str(other), CHANGES, reason, **parts)
    yield from _compare_guards(one, other, parts)
    if one.actions != other.actions:
        before, after = "; ".join(one.outline.actions), "; ".join(other.outline.actions)
        verb = "added" if not before else "removed" if not after else "changed"
        reason = "steps that take the transition do something else"
        yield Change("action", verb, f"{other.path}.actions", before, after, CHANGES, reason, **parts)
    if one.outline.description != other.outline.description:
        before, after = one.outline.description, other.outline.description
        path, reason = f"{other.path}.description", "it is for people"
        yield Change("transition", "changed", path, before, after, COMPATIBLE, reason, **parts)


def _compare_guards(one: Arrow, other: Arrow, parts: dict[str, Any]) -> Iterator[Change]:
    before, after = one.outline.guard_text or "", other.outline.guard_text or ""
    if one.guard == other.guard and before == after:
        return
    verb = "added" if not before else "removed" if not after else "changed"
    same = one.guard == other.guard
    reason = "it is written in another way" if same else "other events, or data, take the transition"
    verdict = COMPATIBLE if same else CHANGES
    yield Change("guard", verb, f"{other.path}.guard", before, after, verdict, reason, **parts)


def _compare_order(pair: Pair, pairs: Pairs, places: list[tuple[int, int, tuple[str, ...]]]) -> Iterator[Change]:
    """Report transitions of one trigger whose order has changed: the first that can be taken is."""
    for trigger in dict.fromkeys(trigger for *_, trigger in places):
        order = [new for _, new, other in sorted(places) if other == trigger]
        if order != sorted(order):
            path = render((*locate_state(pairs.new, pair.new), *trigger[:1]))
            before, after = "in the old order", "in the new order"
            reason = "the first transition that can be taken is another one"
            part = {"old_part": ("states", pair.old.name), "new_part": ("states", pair.new.name)}
            yield Change("transition", "changed", path, before, after, CHANGES, reason, "id", **part)
