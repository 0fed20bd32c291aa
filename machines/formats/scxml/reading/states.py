"""Reads <state>, <parallel>, <final> and <history>, with their <transition> and <datamodel>."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from machines.engine import limits
from machines.formats.javascript import code, parsing
from machines.formats.javascript.code import ANY, Code
from machines.formats.javascript.parsing import SyntaxProblem
from machines.formats.javascript.scope import UNSET, Action
from machines.formats.scxml.elements import OURS, SCXML, Element
from machines.formats.text import single

from . import content
from .chart import EMPTY, Chart, more, parse_text, value_of
from .invokes import read_invokes
from .survey import STATES

_BEHAVIOUR = ("onentry", "onexit", "transition", "invoke", "datamodel")
_ALLOWED = {
    "scxml": ("state", "parallel", "final", "initial", "script", *_BEHAVIOUR),
    "state": ("state", "parallel", "final", "history", "initial", *_BEHAVIOUR),
    "parallel": ("state", "parallel", "history", *_BEHAVIOUR),
    "final": ("onentry", "onexit", "donedata"),
    "history": ("transition",),
}

Transition = dict[str, Any]
MAX_ORDERED = 20_000  # transitions of one state, each counted once for every descriptor


def read_states(chart: Chart, parent: Element) -> dict[str, Any]:
    check_children(chart, parent)
    return {chart.survey.names[child]: _read(chart, child) for child in parent.all(*STATES)}


def check_children(chart: Chart, parent: Element) -> None:
    for child in parent.children:
        if child.space == OURS or (child.space in (SCXML, "") and child.name in _ALLOWED[parent.name]):
            continue
        if child.space in (SCXML, ""):
            chart.refuse(child, f"<{child.name[:60]}> has no meaning inside <{parent.name}>")
        else:
            chart.report.add("SB221", child.locate, f"<{child.name[:60]}> of another namespace was left out")


def _read(chart: Chart, element: Element) -> dict[str, Any]:
    if element.name == "history":
        return _history(chart, element)
    body: dict[str, Any] = {}
    if element.name in ("parallel", "final"):
        body["type"] = element.name
    initial = read_initial(chart, element, [])
    if initial is not None:
        body["initial"] = initial
    body |= behaviour(chart, element) | more(chart, element, "description", "tags", "sla", "meta")
    inside = read_states(chart, element)
    return body | {"states": inside} if inside else body


def behaviour(chart: Chart, element: Element) -> dict[str, Any]:
    """Return what a state does, and on which events. The document as a whole may do more than SCXML allows."""
    entry = _entry(chart, element)
    exit = content.read_blocks(chart, element.all("onexit"))
    on, always, timed = read_transitions(chart, element)
    parts = {
        "entry": single(entry),
        "exit": single(exit),
        "invoke": _one(read_invokes(chart, element)),
        "on": on,
        "after": content.read_after(chart, element, timed),
        "always": _one(always),
        "output": _output(chart, element),
    }
    return {key: part for key, part in parts.items() if part not in (None, [], {}, EMPTY)}


def _one(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 and found[0] else found


def _entry(chart: Chart, element: Element) -> list[Action]:
    late = late_values(chart, element)
    own = content.read_blocks(chart, element.all("onentry"))
    return [*late, {"block": own}] if late and own and "block" not in own[0] else [*late, *own]


def read_initial(chart: Chart, element: Element, before: list[Action]) -> Any:
    """Return the initial state of a compound state or of the document.

    ``before``: actions that run on the way, before all others.
    """
    inner = list(element.all("state", "parallel", "final"))
    if element.name not in ("scxml", "state") or not inner or inner[0] not in chart.survey.names:
        return None
    actions = list(before)
    pseudo = element.first("initial")
    named: Any = write_target(chart.survey.names[inner[0]])
    if pseudo is not None:
        transition = pseudo.first("transition")
        if transition is None or not transition.get("target"):
            chart.refuse(pseudo, "<initial> needs a <transition> with a target")
        else:
            named = read_targets(chart, transition, "target", transition.get("target") or "")
            own = content.read(chart, transition.children)
            actions += [{"block": own}] if own and before else own
        if element.get("initial") is not None:
            chart.refuse(pseudo, '<initial> and the attribute "initial" exclude each other')
    elif element.get("initial"):
        named = read_targets(chart, element, "initial", element.get("initial") or "")
    if actions:
        return {"target": named, "actions": single(actions)}
    return named if isinstance(named, str) else {"target": named}


def _history(chart: Chart, element: Element) -> dict[str, Any]:
    check_children(chart, element)
    body: dict[str, Any] = {"type": "history"}
    if element.get("type") == "deep":
        body["history"] = "deep"
    transition = element.first("transition")
    if transition is None or not transition.get("target"):
        return body
    body |= more(chart, element, "description", "tags", "meta")
    target = read_targets(chart, transition, "target", transition.get("target") or "")
    actions = content.read(chart, transition.children)
    body["target"] = {"target": target, "actions": single(actions)} if actions else target
    return body


def _output(chart: Chart, element: Element) -> Any:
    donedata = element.first("donedata") if element.name == "final" else None
    if donedata is None:
        return None
    inner = donedata.first("content")
    if inner is not None:
        return value_of(content.content_of(chart, inner))
    return value_of(dict(content.parameters(chart, donedata)))


@dataclass(frozen=True, slots=True)
class Read:
    """``events`` are descriptors without a closing ``.*``: as in SCXML, a name matches all that begin with it."""

    events: tuple[str, ...]
    body: Transition | str


def read_transitions(chart: Chart, state: Element) -> tuple[dict[str, Any], list[Any], list[tuple[Element, Any]]]:
    """Return the transitions for ``on``, those for ``always``, and those that wait for timers of the state."""
    inner = {chart.survey.names[one] for one in states_below(chart, state)}
    found = [(element, _read_transition(chart, state, element, inner)) for element in state.all("transition")]
    timed = [(element, transition.body) for element, transition in found if content.is_part(element)]
    others = [transition for element, transition in found if not content.is_part(element)]
    waiting = [transition for transition in others if transition.events]
    return by_event(chart, state, waiting), [one.body for one in others if not one.events], timed


def _read_transition(chart: Chart, state: Element, element: Element, inner: set[str]) -> Read:
    """Read a transition. ``inner``: the names of the states inside the transition's own state."""
    body: Transition = {}
    targets = read_targets(chart, element, "target", element.get("target") or "")
    if targets:
        body["target"] = targets
        if _reenters(chart, state, element, inner):
            body["reenter"] = True
    guard, effects = chart.guard_and_effects(element)
    if effects:
        chart.warn(element, "what this changes is changed only when the transition is taken", "cond")
    if guard is not None:
        body["guard"] = guard
    actions = [*effects, *content.read(chart, element.children)]
    if actions:
        body["actions"] = single(actions)
    body |= more(chart, element, "description", "allow", "meta")
    short = list(body) == ["target"] and isinstance(body["target"], str)
    return Read(_descriptors(chart, element), body["target"] if short else body)


def _descriptors(chart: Chart, element: Element) -> tuple[str, ...]:
    found: list[str] = []
    for written in (element.get("event") or "").split():
        name = "*" if written in ("*", ".*") else written.removesuffix("*").removesuffix(".") or written
        if name != "*" and (why := limits.check_event_name(name)) is not None:
            chart.refuse(element, f"the event {written[:60]!r} {why}", "event")
        elif name not in found:
            found.append(_name_end(chart, name))
    return tuple(found)


def _name_end(chart: Chart, event: str) -> str:
    """Return the name of the event for the end of a state.

    SCXML uses the state's id; here it is the state's name, with characters that an event cannot have replaced.
    """
    id = event.removeprefix("done.state.")
    name = chart.survey.by_id.get(id, id)
    if id == event or name == id:
        return event
    return "done.state." + re.sub(r"[\s*\x00-\x1f\x7f-\x9f]+", "_", name)[: limits.MAX_INVOKE_ID]


def read_targets(chart: Chart, element: Element, attribute: str, ids: str) -> Any:
    """Return one target, or several as a list."""
    found = []
    for id in ids.split():
        if id in chart.survey.by_id:
            found.append(_write(chart, chart.survey.by_id[id]))
        else:
            chart.report.add("SB144", partial(element.locate, attribute), f'there is no state "{id[:80]}"')
    return single(found)


def _write(chart: Chart, name: str) -> str:
    """Write a target. If it is the machine itself, it needs a #."""
    return f"#{name}" if name == chart.survey.names.get(chart.survey.body) else write_target(name)


def write_target(name: str) -> str:
    """Write a state's name as a target, with # if it would be read as a path."""
    return f"#{name}" if "." in name or name.startswith("#") else name


def _reenters(chart: Chart, state: Element, element: Element, inner: set[str]) -> bool:
    """Return whether a transition leaves its own state although all its targets are in that state.

    False for any other transition.
    """
    targets = {chart.survey.by_id.get(id) for id in (element.get("target") or "").split()}
    # A history state anywhere may stand for the state itself, or for one inside.
    if state is chart.root or not targets <= inner | {chart.survey.names.get(state)} | chart.survey.histories:
        return False
    said = element.get("reenter", OURS)
    if said in ("true", "false"):
        return said == "true"
    # type="internal" counts for a compound state and targets properly inside it (3.5 of the recommendation)
    return element.get("type") != "internal" or state.name == "parallel" or not targets <= inner


def states_below(chart: Chart, state: Element) -> list[Element]:
    found = []
    for child in state.children:
        if child in chart.survey.names:
            found += [child, *states_below(chart, child)]
    return found


# -- order --------------------------------------------------------------------------------------------


def by_event(chart: Chart, state: Element, transitions: list[Read]) -> dict[str, Any]:
    """Return ``on``: the transitions of each descriptor.

    The first transition that matches and whose guard holds is taken, in document order. Two descriptors can match one
    event. If listing each transition only under its own descriptor would change the order, the narrower descriptor also
    gets the transitions of the wider ones.
    """
    places: dict[str, list[int]] = {}
    for place, transition in enumerate(transitions):
        for event in transition.events:
            places.setdefault(event, []).append(place)
    order = {event: index for index, event in enumerate(places)}
    if not all(_is_in_order(places, event, order) for event in places):
        places = _merge(places)
        if sum(map(len, places.values())) > MAX_ORDERED:
            message = f"more than {MAX_ORDERED} transitions to keep in order, for descriptors that match one event"
            chart.refuse(state, message, code="SB111")
            return {}
    return {event: single([transitions[place].body for place in found]) for event, found in places.items()}


def _list_covering(places: dict[str, list[int]], event: str) -> list[str]:
    """Return the descriptors that match an event of that name: itself, its prefixes, and *."""
    words = event.split(".")
    wider = {"*", *(".".join(words[:end]) for end in range(1, len(words) + 1))}
    return [name for name in wider if name in places]


def _is_in_order(places: dict[str, list[int]], event: str, order: dict[str, int]) -> bool:
    """Return whether an event's transitions are tried in document order when the descriptors are tried in theirs."""
    asked = [place for name in sorted(_list_covering(places, event), key=order.__getitem__) for place in places[name]]
    return list(dict.fromkeys(asked)) == sorted(set(asked))


def _merge(places: dict[str, list[int]]) -> dict[str, list[int]]:
    narrow_first = sorted(places, key=lambda event: (event == "*", -event.count(".")))
    return {
        event: sorted({place for name in _list_covering(places, event) for place in places[name]})
        for event in narrow_first
    }


def declare(chart: Chart, *, open_: bool) -> None:
    """Declare every variable as a data field.

    ``open_``: a parent may give any value to the variables at the top level.
    """
    top = set(at_the_top(chart))
    values = {
        element.get("id"): _read_constant(chart, element)
        for element in chart.survey.data
        if _is_early(chart, element, top)
    }
    for name, element in chart.survey.variables.items():
        if chart.fields.declare(name, values.get(name, UNSET), element.get("name", OURS) or ""):
            field = chart.fields.names[name]
            where = partial(element.locate, "id" if element.is_scxml("data") else "")
            chart.report.add("SB223", where, f"the variable {name[:60]} is called {field} here")
    for element in chart.survey.data:
        schema = parse_text(element.get("schema", OURS) or "")
        if isinstance(schema, dict) and element.get("id") in chart.fields.names:
            chart.fields.schemas[chart.fields.names[element.get("id") or ""]] = schema
    if open_:
        for name in top:
            chart.fields.receive(name, ANY)


def at_the_top(chart: Chart) -> list[str]:
    """Return the variables that a parent may set: those of the document's own <datamodel>."""
    return [
        id
        for model in chart.root.all("datamodel")
        for element in model.all("data")
        if (id := element.get("id")) in chart.survey.variables
    ]


def _is_early(chart: Chart, element: Element, top: set[str]) -> bool:
    return element.get("id") in chart.survey.variables and (not chart.late or element.get("id") in top)


def _read_constant(chart: Chart, element: Element) -> Any:
    """Return a first value that is a constant; UNSET if it must be calculated, or if there is none."""
    if element.get("src") is not None:
        return UNSET
    if element.get("expr") is not None:
        parsed = chart.parse(element, "expr")
        found = parsing.NOT_PLAIN if isinstance(parsed, SyntaxProblem) else parsing.plain(*parsed)
    else:
        found = EMPTY if element.children else chart.inline(element)
    return UNSET if found in (EMPTY, parsing.NOT_PLAIN, parsing.UNDEFINED) else found


def first_values(chart: Chart) -> list[Action]:
    """Return the actions that calculate first values before the first state is entered.

    Each has a block of its own, in document order.
    """
    top = set(at_the_top(chart))
    blocks = []
    for element in chart.survey.data:
        if _is_early(chart, element, top) and _read_constant(chart, element) is UNSET:
            action = _set(chart, element)
            if action is not None and element.get("id") in top:  # a value that was given at the start stays
                field = chart.fields.names[element.get("id") or ""]
                action = {"if": [{"guard": f"{field} == None", "do": [action]}]}
            blocks += [{"block": [action]}] if action is not None else []
    return blocks


def _set(chart: Chart, element: Element) -> Action | None:
    """Return the assignment of a first value."""
    name = element.get("id") or ""
    if element.get("expr") is not None:
        value, effects = chart.code_and_effects(element, "expr")
        if effects:
            chart.refuse_change(element, "expr")
    else:
        found = _from_file(chart, element) if element.get("src") is not None else chart.inline(element)
        if found is EMPTY:
            return None
        if not isinstance(found, Code):
            chart.fields.receive(name, code.literal(found).kinds)
            return {"set": {chart.fields.names[name]: value_of(found)}}
        value = found
    if value.is_none:
        return None
    chart.fields.receive(name, value.kinds)
    return {"set": {chart.fields.names[name]: value.text}}


def _from_file(chart: Chart, element: Element) -> Any:
    path = chart.library.path(chart, element, "src", element.get("src") or "")
    if path is not None and (why := chart.library.missing(chart, element, "src", path)):
        return code.fails(why)
    text = chart.library.text(chart, element, "src", path) if path is not None else None
    if text is None:
        return EMPTY
    if text.lstrip().startswith("<"):
        chart.refuse(element, "XML as data cannot be kept", "src", code="SB143")
        return EMPTY
    return parse_text(text)


def late_values(chart: Chart, state: Element) -> list[Action]:
    """Return what is done when a state is entered for the first time, with late binding."""
    if not chart.late or state is chart.root:
        return []
    own = [e for model in state.all("datamodel") for e in model.all("data") if e.get("id") in chart.survey.variables]
    actions = [action for element in own if (action := _set(chart, element)) is not None]
    if not actions:
        return []
    name = f"bound_{chart.survey.names[state]}"
    chart.fields.declare(name)
    flag = chart.fields.names[name]  # records whether the state's data is bound
    blocks: list[Action] = [{"block": [action]} for action in actions]
    return [{"if": [{"guard": f"{flag} == None", "do": [{"set": {flag: True}}, *blocks]}]}]
