"""How the parts of one version correspond to those of another, for the replay of histories: as a plan maps them, and by
their transitions."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from machines.engine.errors import BadInput
from machines.engine.versions.content import VersionContent
from machines.engine.versions.planning.mapping import Mapper, Targets

States = Mapping[str, Targets]
Part = Mapping[str, Any]  # of a program


def read_states(states: Mapping[str, str | Sequence[str]] | None) -> dict[str, Targets]:
    """Read ``{old: new}``, where new is a name or several. Raises BadInput."""
    found = {}
    for old, new in dict(states or {}).items():
        names = (new,) if isinstance(new, str) else tuple(new) if isinstance(new, list | tuple) else (new,)
        if not isinstance(old, str) or not all(isinstance(name, str) for name in names):
            raise BadInput(f"states maps names of states to names, not {old!r} to {new!r}", code="SB635")
        found[old] = names
    return found


def check_states(states: States, recorded: Collection[VersionContent], replayed: VersionContent) -> None:
    """Raise BadInput for a name that no recorded version has, or that is no state of the replayed one."""
    for name, names in states.items():
        if all(one.outline.state(name) is None for one in recorded):
            raise BadInput(f"no recorded version has a state {name!r}", code="SB635")
        for target in names:
            state = replayed.outline.state(target)
            if state is None or state.type == "history":
                raise BadInput(
                    f"the replayed version has no state {target!r}, to which {name!r} is mapped", code="SB635"
                )


def compare_versions(old: VersionContent, new: VersionContent, states: States) -> dict[str, Any]:
    """Return what of a recorded version stands for what of the replayed one, as ``sb_replay`` takes it.

    ``states``: leaf -> names; ``events``: timers ("" where there is none) and ends of renamed invokes; ``transitions``:
    ids; ``fields``: those that both have with one type; ``timers``: events of timers that only the replayed version
    has. ``same``: both are one version. States correspond by name or path unless ``states`` says otherwise.
    """
    if old.program == new.program and not states:
        return {"same": True}
    mapper = Mapper(old, new, states, keeps_children=True)
    plan = mapper.map(suggestions=False)
    events = dict.fromkeys(old.timers, "") | {event: other for event, (other, _) in plan.timers.items()}
    for id, other in plan.invokes.items():
        if id != other:
            events |= {f"{way}.invoke.{id}": f"{way}.invoke.{other}" for way in ("done", "error")}
    return {
        "def": old.key,
        "states": plan.states | _find_states_around(plan.unmapped_states, old, new),
        "events": events,
        "transitions": _map_transitions(old, new, {**mapper.same, **states}),
        "fields": dict.fromkeys(_list_shared_fields(old, new), True),
        "timers": dict.fromkeys(new.timers.keys() - events.values(), True),
    }


def _find_states_around(leaves: Sequence[str], old: VersionContent, new: VersionContent) -> dict[str, Targets]:
    """Return for leaves without a place the nearest state around each that is a leaf in the new version."""
    found: dict[str, Targets] = {}
    for leaf in leaves:
        around = (new.outline.state(state.name) for state in old.outline.lineage(leaf)[1:])
        state = next((state for state in around if state is not None and state.is_leaf), None)
        if state is not None:
            found[leaf] = (state.name,)
    return found


def _list_transitions(state: Part) -> list[Part]:
    return [*state.get("transitions", ()), *state.get("always", ())]


def _describe(transition: Part, version: VersionContent, names: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the cause of a transition, and the names of its targets in the new version."""
    cause = f"after {json.dumps(transition['delay'])}" if "delay" in transition else ""
    single = transition.get("target")
    targets = [version.names[n - 1] for n in transition.get("targets", [single] if single else [])]
    return cause or " ".join(transition.get("events", ())), [names.get(target, target) for target in targets]


def _map_transitions(old: VersionContent, new: VersionContent, counterparts: Mapping[str, Any]) -> dict[str, str]:
    """Map transitions of corresponding states by cause, guard and target; then those that alone are left of a cause.
    ``counterparts``: state -> its name in the new version, or several names."""
    names = {name: to if isinstance(to, str) else to[0] if len(to) == 1 else None for name, to in counterparts.items()}
    found: dict[str, str] = {}
    for name, state in old.programs.items():
        left, waiting = _list_transitions(state), _list_transitions(new.programs.get(names.get(name) or "", {}))
        for with_guard in (True, False):
            for transition in list(left):
                fits = (one for one in waiting if not with_guard or one.get("guard") == transition.get("guard"))
                wanted = _describe(transition, old, names)
                match = next((one for one in fits if _describe(one, new, {}) == wanted), None)
                if match is not None:
                    found[transition["id"]] = match["id"]
                    left.remove(transition)
                    waiting.remove(match)
    return found


def _list_shared_fields(old: VersionContent, new: VersionContent) -> Iterator[str]:
    types = {one["name"]: (one["type"], one.get("types")) for one in old.program.get("data", ())}
    for one in new.program.get("data", ()):
        if types.get(one["name"]) == (one["type"], one.get("types")):
            yield one["name"]
