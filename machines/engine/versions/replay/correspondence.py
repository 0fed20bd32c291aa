"""How the parts of one version's program correspond to those of another, for the replay of histories."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from machines.engine.errors import BadInput

Program = Mapping[str, Any]
States = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Correspondence:
    """What of a recorded version stands for what of the replayed one.

    ``states``: leaf -> names; ``events``: timers (``""`` where there is none) and ends of renamed invokes;
    ``transitions``: ids; ``fields``: data fields that both have with one type; ``timers``: events of timers that only
    the replayed version has. ``same``: both are one version.
    """

    same: bool
    definition: str = ""
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    transitions: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    timers: tuple[str, ...] = ()

    def as_rules(self) -> dict[str, Any]:
        """Return it as ``sb_replay`` takes it."""
        if self.same:
            return {"same": True}
        return {
            "def": self.definition,
            "states": self.states,
            "events": self.events,
            "transitions": self.transitions,
            "fields": dict.fromkeys(self.fields, True),
            "timers": dict.fromkeys(self.timers, True),
        }


def read_states(states: Mapping[str, str | Sequence[str]] | None) -> dict[str, tuple[str, ...]]:
    """Read ``{old: new}``, where new is a name or several. Raises BadInput."""
    found = {}
    for old, new in dict(states or {}).items():
        names = (new,) if isinstance(new, str) else tuple(new) if isinstance(new, list | tuple) else (new,)
        if not isinstance(old, str) or not all(isinstance(name, str) for name in names):
            raise BadInput(f"states maps names of states to names, not {old!r} to {new!r}", code="SB635")
        found[old] = names
    return found


def check_states(states: States, old: Iterable[Program], new: Program) -> None:
    """Raise BadInput for a name that no recorded version has, or that is no state of the replayed one."""
    known = {state["name"] for program in old for state in program["states"]}
    targets = {state["name"] for state in new["states"] if state.get("kind") != "history"}
    for name, names in states.items():
        if name not in known:
            raise BadInput(f"no recorded version has a state {name!r}", code="SB635")
        for target in names:
            if target not in targets:
                raise BadInput(
                    f"the replayed version has no state {target!r}, to which {name!r} is mapped", code="SB635"
                )


def compare_programs(old: Program, new: Program, states: States, definition: str = "") -> Correspondence:
    """Compute the correspondence of two programs. States correspond by name unless ``states`` says otherwise."""
    if old == new and not states:
        return Correspondence(True, definition)
    tree = _Tree(old, new, states)
    events, timers = _map_timers(tree)
    return Correspondence(
        same=False,
        definition=definition,
        states={state["name"]: names for state in tree.leaves() if (names := tree.find(state))},
        events=events | _map_invokes(tree),
        transitions=_map_transitions(tree),
        fields=_list_shared_fields(old, new),
        timers=timers,
    )


class _Tree:
    """The states of both programs."""

    def __init__(self, old: Program, new: Program, states: States) -> None:
        self.old, self.new, self.states = old["states"], new["states"], states
        self._known = {state["name"]: state for state in self.new if state.get("kind") != "history"}

    def leaves(self) -> Iterator[Mapping[str, Any]]:
        return (state for state in self.old if "kind" not in state)

    def find(self, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the states that stand for a leaf: mapped, of its name, or those of the nearest state around it that is
        mapped or a leaf now."""
        name = state["name"]
        if name in self.states:
            return tuple(self.states[name])
        if name in self._known:
            return (name,)
        while parent := state.get("parent"):
            state = self.old[parent - 1]
            if state["name"] in self.states:
                return tuple(self.states[state["name"]])
            if "kind" not in self._known.get(state["name"], {"kind": ""}):
                return (state["name"],)
        return ()

    def name_of(self, state: Mapping[str, Any]) -> str:
        """Return the name of the state that has the transitions of this one; "" where there is none."""
        mapped = self.states.get(state["name"])
        if mapped is not None:
            return mapped[0] if len(mapped) == 1 else ""
        return str(state["name"])

    def pairs(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Yield each old state that has a counterpart, with it."""
        for state in self.old:
            other = self._known.get(self.name_of(state))
            if other is not None:
                yield state, other


def _list_timed(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the timers of a state: event and delay."""
    return [(t["events"][0], json.dumps(t["delay"])) for t in state.get("transitions", ()) if "delay" in t]


def _map_timers(tree: _Tree) -> tuple[dict[str, str], tuple[str, ...]]:
    """Map the timers of states by their delay; return the events, and the timers that only the new program has."""
    events = {event: "" for state in tree.old for event, _ in _list_timed(state)}
    for state, other in tree.pairs():
        waiting = _list_timed(other)
        for event, delay in _list_timed(state):
            match = next((one for one in waiting if one[1] == delay), None)
            if match is not None:
                waiting.remove(match)
                events[event] = match[0]
    own = [event for state in tree.new for event, _ in _list_timed(state)]
    return events, tuple(event for event in own if event not in set(events.values()))


def _map_invokes(tree: _Tree) -> dict[str, str]:
    """Map the ends of invokes that have another id now: the only new one of the same source in the state."""
    found = {}
    for state, other in tree.pairs():
        was = {invoke["id"]: invoke for invoke in state.get("invoke", ())}
        now = {invoke["id"]: invoke for invoke in other.get("invoke", ())}
        gone, added = [was[id] for id in was if id not in now], [now[id] for id in now if id not in was]
        for invoke in gone:
            same = [one for one in added if _get_work(one) == _get_work(invoke)]
            if len(same) == 1 and sum(_get_work(one) == _get_work(invoke) for one in gone) == 1:
                for way in ("done", "error"):
                    found[f"{way}.invoke.{invoke['id']}"] = f"{way}.invoke.{same[0]['id']}"
    return found


def _get_work(invoke: Mapping[str, Any]) -> Any:
    return invoke.get("src") or json.dumps(invoke.get("machine"))


def _list_transitions(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*state.get("transitions", ()), *state.get("always", ())]


def _describe_cause(transition: Mapping[str, Any]) -> str:
    if "delay" in transition:
        return "after " + json.dumps(transition["delay"])
    return " ".join(transition.get("events", ()))


def _map_transitions(tree: _Tree) -> dict[str, str]:
    """Map transitions of corresponding states by cause, guard and target; then those that alone are left of a cause."""
    found: dict[str, str] = {}
    for state, other in tree.pairs():
        left, waiting = list(_list_transitions(state)), list(_list_transitions(other))
        for with_guard in (True, False):
            for transition in list(left):
                fits = (one for one in waiting if not with_guard or one.get("guard") == transition.get("guard"))
                match = next((one for one in fits if _has_equal_target(tree, transition, one)), None)
                if match is not None:
                    found[transition["id"]] = match["id"]
                    left.remove(transition)
                    waiting.remove(match)
    return found


def _list_targets(states: Sequence[Mapping[str, Any]], transition: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    single = transition.get("target")
    return [states[n - 1] for n in transition.get("targets", [single] if single else [])]


def _has_equal_target(tree: _Tree, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    was = [tree.name_of(state) for state in _list_targets(tree.old, old)]
    now = [state["name"] for state in _list_targets(tree.new, new)]
    return _describe_cause(old) == _describe_cause(new) and was == now


def _list_shared_fields(old: Program, new: Program) -> tuple[str, ...]:
    types = {one["name"]: (one["type"], one.get("types")) for one in old.get("data", ())}
    return tuple(
        one["name"] for one in new.get("data", ()) if types.get(one["name"]) == (one["type"], one.get("types"))
    )
