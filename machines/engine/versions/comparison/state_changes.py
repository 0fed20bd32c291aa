"""Compares the states of two versions: those that came, went or changed, with their transitions, actions and
invokes."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from machines.engine.definitions import InvokeOutline, StateOutline, TransitionOutline, render
from machines.engine.definitions.durations import format_duration
from machines.engine.versions.content import VersionContent
from machines.engine.versions.records import CHANGES, COMPATIBLE, NEEDS_MAPPING, Change

from .pairs import Pair, Pairs, freeze, locate_state, render_state, show


def compare_states(pairs: Pairs) -> Iterator[Change]:
    """Compare all states, in the order of the new version; those that went come first."""
    for state in pairs.removed:
        yield _remove(pairs, state)
    matched = {pair.new.name: pair for pair in pairs.pairs}
    for state in pairs.new.outline.states:
        pair = matched.get(state.name)
        if pair is None:
            yield _add(pairs, state)
        else:
            yield from _compare(pair, pairs)


def _remove(pairs: Pairs, state: StateOutline) -> Change:
    verdict, reason = NEEDS_MAPPING, "instances in it have no place"
    if state.type == "final":
        reason = "finished instances in it have no place"
    elif state.type == "history":
        verdict, reason = CHANGES, "what it remembers is forgotten"
    elif not state.is_leaf:
        verdict, reason = CHANGES, "its transitions and actions no longer run; its leaves are listed by themselves"
    path, part = render_state(pairs.old, state), ("states", state.name)
    return Change("state", "removed", path, _describe(state), "", verdict, reason, old_part=part)


def _add(pairs: Pairs, state: StateOutline) -> Change:
    inside = any(pairs.new.outline.root != around.name for around in pairs.new.outline.lineage(state.name)[1:])
    region = inside and _is_region(pairs.new, state)
    verdict = CHANGES if region else COMPATIBLE
    reason = "instances in the state around it get this region" if region else "no instance stands in it"
    path, part = render_state(pairs.new, state), ("states", state.name)
    return Change("state", "added", path, "", _describe(state), verdict, reason, new_part=part)


def _is_region(version: VersionContent, state: StateOutline) -> bool:
    parent = version.outline.state(state.parent) if state.parent else None
    return parent is not None and parent.type == "parallel" and state.type != "history"


def _describe(state: StateOutline) -> str:
    kind = f"{state.history} history" if state.type == "history" else state.type
    return f"{state.name} ({kind})"


def _compare(pair: Pair, pairs: Pairs) -> Iterator[Change]:
    invokes = _match_invokes(pair, pairs)
    yield from _compare_name(pair, pairs)
    yield from _compare_kind(pair, pairs)
    yield from _compare_terms(pair, pairs)
    yield from _compare_actions(pair, pairs)
    yield from _compare_invokes(pair, pairs, invokes)
    yield from compare_transitions(pair, pairs, {old.id: new.id for old, new in invokes})


def _make(pair: Pair, pairs: Pairs, below: tuple[str | int, ...], *texts: str, **parts: Any) -> Change:
    """Make a change of a state. ``texts``: kind, verb, before, after, verdict, reason."""
    kind, verb, before, after, verdict, reason = texts
    path = render((*locate_state(pairs.new, pair.new), *below))
    ends = {"old_part": ("states", pair.old.name), "new_part": ("states", pair.new.name), "match": pair.match} | parts
    return Change(kind, verb, path, before, after, verdict, reason, **ends)


def _compare_name(pair: Pair, pairs: Pairs) -> Iterator[Change]:
    if pair.old.name == pair.new.name:
        return
    verdict, reason = NEEDS_MAPPING, f"it looks like the same state: {pair.why}"
    if pair.match == "path":
        verdict, reason = COMPATIBLE, "a plan finds it by its path; conditions and searches by the old name do not"
    elif pair.old.name == pairs.old.outline.root:
        verdict, reason = COMPATIBLE, "it is the machine itself"
    elif not pair.old.is_leaf:
        verdict, reason = CHANGES, f"conditions and searches by the old name no longer find it: {pair.why}"
    yield _make(pair, pairs, (), "state", "renamed", pair.old.name, pair.new.name, verdict, reason)


def _compare_kind(pair: Pair, pairs: Pairs) -> Iterator[Change]:
    old, new = pair.old, pair.new
    if (old.type, old.history) != (new.type, new.history):
        verdict, reason = CHANGES, "it is another kind of state"
        if (old.type == "final") != (new.type == "final"):
            verdict, reason = NEEDS_MAPPING, "instances in it would end, or live again"
        elif old.is_leaf:
            verdict, reason = COMPATIBLE, "instances in it enter the states inside by default"
        before, after = _describe(old), _describe(new)
        yield _make(pair, pairs, ("type",), "state", "changed", before, after, verdict, reason)
    roots = pairs.old.outline.root, pairs.new.outline.root
    around = [state.parent if state.parent not in roots else None for state in (old, new)]
    if pairs.map(around[0]) != around[1]:
        before, after = (f"in {name}" if name else "at the top" for name in around)
        reason = "the transitions of other states around it apply, and their actions run"
        yield _make(pair, pairs, (), "state", "changed", before, after, CHANGES, reason)


def _compare_terms(pair: Pair, pairs: Pairs) -> Iterator[Change]:
    """Compare what a state says beside its actions, invokes and transitions."""
    old, new = pair.old, pair.new
    entered = tuple(str(pairs.map(name)) for name in old.initial)
    ours, theirs = (
        version.programs[state.name] for version, state in ((pairs.old, old), (pairs.new, new))
    )  # fmt: skip
    if old.type == new.type != "parallel" and not (
        _starts_as_parent(pairs.old, old) and _starts_as_parent(pairs.new, new)
    ):
        starts = [freeze((part.get("initial") or part.get("default") or {}).get("actions")) for part in (ours, theirs)]
        if entered != new.initial or starts[0] != starts[1]:
            before, after, reason = ", ".join(old.initial), ", ".join(new.initial), "it is entered in another way"
            yield _make(pair, pairs, ("initial",), "state", "changed", before, after, CHANGES, reason)
    if freeze(ours.get("donedata")) != freeze(theirs.get("donedata")):
        reason = "its end gives other data"
        yield _make(pair, pairs, ("output",), "state", "changed", old.output, new.output, CHANGES, reason)
    if old.sla != new.sla:
        before, after = (format_duration(state.sla) if state.sla else "" for state in (old, new))
        reason = "instances are late at another time"
        yield _make(pair, pairs, ("sla",), "state", "changed", before, after, CHANGES, reason)
    for key, before, after in (
        ("description", old.description, new.description),
        ("tags", ", ".join(old.tags), ", ".join(new.tags)),
    ):
        if before != after:
            reason = "it is for people and searches"
            yield _make(pair, pairs, (key,), "state", "changed", before, after, COMPATIBLE, reason)


def _starts_as_parent(version: VersionContent, state: StateOutline) -> bool:
    """Tell whether a history state has the default of the state around it."""
    parent = version.outline.state(state.parent) if state.parent else None
    return state.type == "history" and parent is not None and parent.initial == state.initial


def _compare_actions(pair: Pair, pairs: Pairs) -> Iterator[Change]:
    ours, theirs = pairs.old.programs[pair.old.name], pairs.new.programs[pair.new.name]
    for key, old, new in (("entry", pair.old.entry, pair.new.entry), ("exit", pair.old.exit, pair.new.exit)):
        if freeze(ours.get(key)) != freeze(theirs.get(key)):
            verb = "added" if not old else "removed" if not new else "changed"
            word = "enter" if key == "entry" else "leave"
            reason = f"steps that {word} the state do something else; a move itself runs no actions"
            yield _make(pair, pairs, (key,), "action", verb, "; ".join(old), "; ".join(new), CHANGES, reason)


Matched = list[tuple[InvokeOutline, InvokeOutline]]


def _match_invokes(pair: Pair, pairs: Pairs) -> Matched:
    """Match the invokes of a state by id, then by what does the work."""
    found: Matched = []
    left = list(pair.new.invokes)
    for same in (lambda a, b: a.id == b.id, lambda a, b: _get_work(a) == _get_work(b)):
        taken = [old for old, _ in found]
        for old in [one for one in pair.old.invokes if one not in taken]:
            new = next((one for one in left if same(old, one)), None)
            if new is not None:
                found.append((old, new))
                left.remove(new)
    return found


def _get_work(invoke: InvokeOutline) -> tuple[str, str]:
    return invoke.src, invoke.machine


def _show_invoke(invoke: InvokeOutline) -> str:
    work = f"machine {invoke.machine}" if invoke.machine else f"{invoke.src} on {invoke.queue}"
    return f"{invoke.id}: {work}{f' with {invoke.input}' if invoke.input else ''}"


def _compare_invokes(pair: Pair, pairs: Pairs, matched: Matched) -> Iterator[Change]:
    olds, news = [old for old, _ in matched], [new for _, new in matched]
    for old in pair.old.invokes:
        if old not in olds:
            reason = "open jobs of it are withdrawn, children of it are stopped"
            yield _make(pair, pairs, ("invoke",), "invoke", "removed", _show_invoke(old), "", CHANGES, reason)
    codes = [
        {one["id"]: one for one in version.programs[state.name].get("invoke", ())}
        for version, state in ((pairs.old, pair.old), (pairs.new, pair.new))
    ]
    for old, new in matched:
        before, after = _show_invoke(old), _show_invoke(new)
        match = {"match": "id" if old.id == new.id else "shape"}
        if _get_work(old) != _get_work(new):
            reason = "other work is done: open jobs are withdrawn and new ones put on the queue"
            yield _make(pair, pairs, ("invoke",), "invoke", "changed", before, after, CHANGES, reason, **match)
            continue
        if old.id != new.id:
            verdict, reason = COMPATIBLE, "open jobs are kept under the new id"
            if old.machine:
                verdict, reason = CHANGES, "children under the old id are stopped, and others begin"
            yield _make(pair, pairs, ("invoke",), "invoke", "renamed", old.id, new.id, verdict, reason, **match)
        ours, theirs = ({k: v for k, v in codes[n][one.id].items() if k != "id"} for n, one in ((0, old), (1, new)))
        if freeze(ours) != freeze(theirs):
            named = sorted(key for key in {*ours, *theirs} if freeze(ours.get(key)) != freeze(theirs.get(key)))
            before, after = ("; ".join(f"{key}: {_show(part.get(key))}" for key in named) for part in (ours, theirs))
            reason = "new jobs are made with it; open jobs stay as they are"
            yield _make(pair, pairs, ("invoke",), "invoke", "changed", before, after, CHANGES, reason, **match)
    for new in pair.new.invokes:
        if new not in news:
            reason = "instances that stand here get a job or a child of it"
            yield _make(pair, pairs, ("invoke",), "invoke", "added", "", _show_invoke(new), CHANGES, reason)


def _show(value: Any) -> str:
    text = show(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


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
    yield from (_remove_arrow(one) for one in waiting)
    for one, other in sorted(matches, key=lambda both: new.index(both[1])):
        yield from _compare_pair(one, other)
    yield from (_add_arrow(other, other.trigger in taken) for other in left)
    yield from _compare_order(pair, pairs, [(old.index(one), new.index(other), one.trigger) for one, other in matches])


def _remove_arrow(one: Arrow) -> Change:
    if one.is_timer:
        reason = "armed timers of it are disarmed"
    elif one.outline.cause == "always":
        reason = "instances no longer leave by it"
    else:
        reason = "instances in this state no longer take it"
    kind = "timer" if one.is_timer else "transition"
    part = ("transitions", one.id)
    return Change(kind, "removed", one.path, str(one), "", CHANGES, reason, old_part=part)


def _add_arrow(other: Arrow, known: bool) -> Change:
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
