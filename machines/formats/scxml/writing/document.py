"""Writes a whole document: its states, their transitions in the order in which they are tried, and actions."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from machines.engine.definitions.checks.references import Payloads
from machines.engine.definitions.findings import Finding, Path
from machines.engine.definitions.model import MISSING, Action, Case, Field, Invoke, Start, State, Transition, Value
from machines.engine.definitions.reading.document import list_embedded, read_document
from machines.engine.errors import DefinitionError
from machines.formats.scxml.elements import MACHINE, MACHINE_KEYS, OURS, SCXML
from machines.formats.text import single

from .javascript import Translator, literal
from .markup import Tag, Writing, compact, more, render

_FOR_PEOPLE = ("description", "tags", "sla", "meta")
INTERNAL = "#_internal"


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Return the definition as SCXML. Raises DefinitionError for a definition that has errors."""
    machine, report = read_document(definition)
    if machine is None or report.has_errors:
        raise DefinitionError(report.findings())
    writing = Writing(machine, report.document, type(report)())
    writing.report.document = report.document
    root = _machine(writing)
    return render(root), writing.report.findings()


def _machine(writing: Writing, short: str = "") -> Tag:
    machine, document = writing.machine, writing.document
    _embed(writing)
    attributes: dict[str, str | None] = {
        "xmlns": SCXML,
        "xmlns:sb": OURS,
        "version": "1.0",
        "datamodel": "ecmascript",
        "name": short or machine.id,
    }
    if not machine.raises_errors:
        attributes["sb:errors"] = "refuse"
        writing.add_once("SB224", (), "an action that fails refuses the step; SCXML raises error.execution and goes on")
    kept = {key: document[key] for key in MACHINE_KEYS if key in document}
    for key in kept:
        writing.ours((key,), f'"{key}" of a machine')
    root = Tag("scxml", attributes, more(kept))
    if machine.fields:
        root.children.append(
            Tag("datamodel", children=[_write_field(writing, field) for field in machine.fields.values()])
        )
    tops = [state for state in machine.states.values() if state.parent is None]
    if machine.root is None and (initial := write_initial(writing, root, machine.start)):
        root.children += initial
        message = "SCXML has no actions before the first state: <initial> stands where only Signalbox reads it"
        writing.add_once("SB224", ("initial",), message)
    root.children += [write_state(writing, state) for state in tops]
    for name in list_embedded(document):
        full = f"{machine.id}.{name}"
        if full in writing.embedded and full not in writing.used:
            writing.ours(("machines", name), "machine that is not written where it is invoked")
            root.children.append(Tag("sb:machine", {"name": name}, [writing.embedded[full]]))
    return root


def _write_field(writing: Writing, field: Field) -> Tag:
    id = writing.variables[field.name]
    attributes: dict[str, str | None] = {"id": id, "sb:name": None if id == field.name else field.name}
    if field.initial is not MISSING:
        attributes["expr"] = literal(field.initial)
    schema: dict[str, Any] = {}
    if "any" not in field.types:
        schema["type"] = single(list(field.types))
    if field.description:
        schema["description"] = field.description
    if schema:
        writing.ours(("context",), "types of data")
        attributes["sb:schema"] = compact(schema)
    return Tag("data", attributes)


def _embed(writing: Writing) -> None:
    """Embed the machines that this one contains, where it invokes them."""
    for name, inner in list_embedded(writing.document).items():
        full = f"{writing.machine.id}.{name}"
        machine, report = read_document(inner | {"id": full})
        if machine is None:
            continue
        inside = Writing(machine, report.document, type(report)())
        inside.report.document = report.document
        writing.embedded[full] = _machine(inside, name)
        writing.report.absorb(inside.report, ("machines", name))


def write_state(writing: Writing, state: State) -> Tag:
    if state.kind == "history":
        return _history(writing, state)
    tag = Tag({"parallel": "parallel", "final": "final"}.get(state.kind, "state"), _names(writing, state))
    if state.root:
        tag.attributes["sb:root"] = "true"
        message = "SCXML has no machine that does things itself: in the text, a state around all others does"
        writing.add_once("SB224", state.path, message)
    else:
        tag.children += more(_for_people(writing, state.path))
    if state.start and state.kind == "compound":
        tag.children += write_initial(writing, tag, state.start)
    tag.children += _behaviour(writing, state)
    tag.children += [write_state(writing, writing.machine.states[name]) for name in state.children]
    if state.output is not None and state.final:
        tag.children.append(Tag("donedata", children=write_data(writing, state.output, state.path)))
    return tag


def _names(writing: Writing, state: State) -> dict[str, str | None]:
    id = writing.ids[state.name]
    if id == state.name:
        return {"id": id}
    if not state.root:
        writing.report.add("SB223", state.path, f"no id of SCXML: the state is called {id} in the text")
    return {"id": id, "sb:name": None if state.root else state.name}


def _for_people(writing: Writing, path: Path) -> dict[str, Any]:
    body = writing.at(path)
    found = {key: body[key] for key in _FOR_PEOPLE if key in body} if isinstance(body, dict) else {}
    if found:
        writing.ours(path, "descriptions, tags and service levels")
    return found


def write_initial(writing: Writing, tag: Tag, start: Start) -> list[Tag]:
    targets = " ".join(writing.ids[name] for name in start.targets)
    if not start.actions:
        tag.attributes["initial"] = targets
        return []
    return [Tag("initial", children=[Tag("transition", {"target": targets}, write_actions(writing, start.actions))])]


def _behaviour(writing: Writing, state: State) -> list[Tag]:
    found = write_block(writing, "onentry", state.entry)
    clocks = list(timers(writing, state))
    found += [Tag("onentry", children=[start]) for start, _ in clocks]
    found += write_block(writing, "onexit", state.exit)
    found += [Tag("onexit", children=[stop for _, stop in clocks])] if clocks else []
    found += [_invoke(writing, invoke) for invoke in state.invokes]
    return found + write_transitions(writing, state)


def _history(writing: Writing, state: State) -> Tag:
    tag = Tag("history", _names(writing, state) | {"type": "deep" if state.deep else "shallow"})
    tag.children += more(_for_people(writing, state.path))
    if state.start:
        targets = " ".join(writing.ids[name] for name in state.start.targets)
        tag.children.append(Tag("transition", {"target": targets}, write_actions(writing, state.start.actions)))
    return tag


def _invoke(writing: Writing, invoke: Invoke) -> Tag:
    if not invoke.is_machine or invoke.computed:
        return _own_invoke(writing, invoke)
    attributes: dict[str, str | None] = {"type": "scxml", "id": invoke.id}
    if invoke.idlocation:
        writing.ours(invoke.path, "id with a place for it")
        attributes["sb:idlocation"] = writing.variables.get(invoke.idlocation, invoke.idlocation)
    if invoke.autoforward:
        attributes["autoforward"] = "true"
    inside = _parameters(writing, invoke.input, invoke.path)
    if invoke.machine in writing.embedded:
        writing.used.add(invoke.machine)
        inside.append(Tag("content", children=[writing.embedded[invoke.machine]]))
    else:
        attributes["src"] = MACHINE + invoke.machine
        message = "the machine is published on its own: only Signalbox knows what src names"
        writing.add_once("SB222", invoke.path, message)
    if invoke.finalize:
        inside.insert(0, Tag("finalize", children=write_actions(writing, invoke.finalize)))
    return Tag("invoke", attributes, inside)


def _parameters(writing: Writing, value: Value | None, path: Path) -> list[Tag]:
    if value is None:
        return []
    return [Tag("param", {"name": key, "expr": script(writing, Value(item, ""), path)}) for key, item in value.tree[1:]]


def _own_invoke(writing: Writing, invoke: Invoke) -> Tag:
    """Write work for a handler, or an invoke of a machine whose name is calculated."""
    writing.ours(invoke.path, "work for handlers" if not invoke.is_machine else "calculated machine")
    body = {key: value for key, value in writing.at(invoke.path).items() if key not in ("onDone", "onError", "id")}
    return Tag("invoke", {"type": OURS, "id": invoke.id}, text=compact(body))


def write_transitions(writing: Writing, state: State) -> list[Tag]:
    payloads = Payloads(writing.machine)
    found = []
    for transition in state.all_transitions:
        writing.payload = payloads.of(transition)
        found.append(_transition(writing, state, transition))
    writing.payload = None
    return found


def _transition(writing: Writing, state: State, transition: Transition) -> Tag:
    attributes: dict[str, str | None] = {}
    if transition.events:
        attributes["event"] = " ".join(_write_descriptor(writing, event) for event in transition.events)
    if transition.guard:
        attributes["cond"] = guard(writing, transition)
    attributes |= _target(writing, state, transition)
    if transition.cause == "after":
        attributes["sb:after"] = "true"
    found = writing.at(transition.path)
    said = found if isinstance(found, dict) else {}
    described = {key: said[key] for key in ("description", "allow", "meta") if key in said}
    if described:
        writing.ours(transition.path, "descriptions and groups")
    return Tag("transition", attributes, [*more(described), *write_actions(writing, transition.actions)])


def _write_descriptor(writing: Writing, event: str) -> str:
    base = event.removesuffix(".*")
    return event if base not in writing.events else writing.events[base] + event[len(base) :]


def _target(writing: Writing, state: State, transition: Transition) -> dict[str, str | None]:
    """Write the target of a transition.

    SCXML leaves a state whose transition leads to itself or inside it, unless its type is internal.
    """
    targets, machine = transition.targets, writing.machine
    if not targets:
        return {}
    if targets == (state.name,) and state.kind == "atomic" and not transition.reenter:
        return {}  # the state is not left: the transition only has actions
    found: dict[str, str | None] = {"target": " ".join(writing.ids[name] for name in targets)}
    histories = [name for name in targets if machine.states[name].kind == "history"]
    if transition.reenter or not all(name in histories or machine.contains(state.name, name) for name in targets):
        return found
    if not histories and state.kind == "compound" and state.name not in targets:
        return found | {"type": "internal"}
    message = "SCXML always leaves a state that a transition leads to"
    writing.add_once("SB224", transition.path, f"{message}; sb:reenter says otherwise, which only Signalbox reads")
    return found | {"sb:reenter": "false"}


def timers(writing: Writing, state: State) -> Iterator[tuple[Tag, Tag]]:
    """Yield the send that starts each timer of a state, and the cancel that ends it."""
    for transition in state.transitions:
        if transition.delay is not None:
            message = "SCXML has no timers of states: in the text, an event that anyone may send stands for each"
            writing.add_once("SB224", transition.path, message)
            name = writing.events[transition.events[0]]
            attributes: dict[str, str | None] = {"event": name, "id": name}
            attributes |= delay(writing, transition.delay, transition.path) | {"sb:after": "true"}
            yield Tag("send", attributes), Tag("cancel", {"sendid": name, "sb:after": "true"})


def write_actions(writing: Writing, actions: Iterable[Action]) -> list[Tag]:
    return [tag for action in actions for tag in _WRITERS[action.verb](writing, action)]


def write_block(writing: Writing, name: str, actions: tuple[Action, ...]) -> list[Tag]:
    """Write <onentry> or <onexit>: several of them if all actions are blocks."""
    if not actions:
        return []
    if all(action.verb == "block" for action in actions):
        return [Tag(name, children=write_actions(writing, action.cases[0].actions)) for action in actions]
    return [Tag(name, children=write_actions(writing, actions))]


def script(writing: Writing, value: Value, path: Path) -> str:
    return Translator(writing, path).text(value.tree)


def _set(writing: Writing, action: Action) -> list[Tag]:
    assert action.value is not None
    location = writing.variables.get(action.name, action.name)
    return [Tag("assign", {"location": location, "expr": script(writing, action.value, action.path)})]


def _own(writing: Writing, action: Action) -> list[Tag]:
    """Write an action that SCXML does not have."""
    writing.ours(action.path, f"action {action.verb}")
    named: Any = writing.at(action.path)
    if action.verb in ("unset", "append"):
        field = writing.variables.get(action.name, action.name)
        named = field if action.verb == "unset" else {field: named}
    return [Tag("sb:action", text=compact({action.verb: named}))]


def _raise(writing: Writing, action: Action) -> list[Tag]:
    if action.sending is not None:
        return _send(writing, action)
    if action.value is None and not action.computed:
        return [Tag("raise", {"event": action.name})]
    data = write_data(writing, action.value, action.path)
    return [Tag("send", _event_attributes(writing, action) | {"target": INTERNAL}, data)]


def _event_attributes(writing: Writing, action: Action) -> dict[str, str | None]:
    if action.computed:
        return {"eventexpr": script(writing, action.computed, action.path)}
    return {"event": action.name}


def write_data(writing: Writing, value: Value | None, path: Path) -> list[Tag]:
    """Write parameters for an object, else <content>."""
    if value is None:
        return []
    translator, tree = Translator(writing, path), value.tree
    if tree[0] == "obj" and len(tree) > 1 and all(key for key, _ in tree[1:]):
        return [Tag("param", {"name": key, "expr": translator.text(item)}) for key, item in tree[1:]]
    return [Tag("content", {"expr": translator.text(tree)})]


def _send(writing: Writing, action: Action) -> list[Tag]:
    sending = action.sending
    assert sending is not None
    attributes = _event_attributes(writing, action)
    if sending.to is not None:
        attributes |= _literal_or_not(writing, "target", sending.to, action.path)
    if sending.type is not None:
        attributes |= _literal_or_not(writing, "type", sending.type, action.path)
    if sending.id:
        attributes["id"] = sending.id
    elif sending.computed:
        writing.ours(action.path, "calculated id of a send")
        return [Tag("sb:action", text=compact({action.verb: writing.at(action.path[:-1])}))]
    if sending.idlocation:
        attributes["idlocation"] = writing.variables.get(sending.idlocation, sending.idlocation)
    attributes |= delay(writing, sending.delay, action.path)
    return [Tag("send", attributes, write_data(writing, action.value, action.path))]


def _literal_or_not(writing: Writing, name: str, value: Value, path: Path) -> dict[str, str | None]:
    tree = value.tree
    if tree[0] == "str":
        return {name: tree[1]}
    if tree[0] == "obj":  # a machine and an id
        parts = dict(tree[1:])
        machine = parts["machine"][1]
        id = Translator(writing, path).value(parts["id"]).at(6)
        return {f"{name}expr": f"'#_scxml_{machine}/' + {id}"}
    return {f"{name}expr": script(writing, value, path)}


def delay(writing: Writing, value: Value | None, path: Path) -> dict[str, str | None]:
    if value is None:
        return {}
    if value.tree[0] == "num":
        return {"delay": f"{value.tree[1]}ms"}
    if Translator(writing, path).types(value.tree) != frozenset({"string"}):
        message = "a calculated delay is a number of ms here; SCXML wants a text with a unit"
        writing.add_once("SB224", value.parts[0][0] if value.parts else path, message)
    return {"delayexpr": script(writing, value, path)}


def _cancel(writing: Writing, action: Action) -> list[Tag]:
    if action.computed:
        return [Tag("cancel", {"sendidexpr": script(writing, action.computed, action.path)})]
    return [Tag("cancel", {"sendid": action.name})]


def _log(writing: Writing, action: Action) -> list[Tag]:
    assert action.value is not None
    tree, translator = action.value.tree, Translator(writing, action.path)
    if tree[0] == "obj" and [key for key, _ in tree[1:]] == ["label", "value"] and tree[1][1][0] == "str":
        return [Tag("log", {"label": tree[1][1][1], "expr": translator.text(tree[2][1])})]
    return [Tag("log", {"expr": translator.text(tree)})]


def guard(writing: Writing, case: Case | Transition) -> str | None:
    if case.guard is None:
        return None
    return Translator(writing, case.guard.path).condition(case.guard.expression.tree).text


def _if(writing: Writing, action: Action) -> list[Tag]:
    first, *others = action.cases
    children = write_actions(writing, first.actions)
    for case in others:
        condition = guard(writing, case)
        children.append(Tag("else") if condition is None else Tag("elseif", {"cond": condition}))
        children += write_actions(writing, case.actions)
    return [Tag("if", {"cond": guard(writing, first) or "true"}, children)]


def _foreach(writing: Writing, action: Action) -> list[Tag]:
    assert action.value is not None
    attributes: dict[str, str | None] = {
        "array": script(writing, action.value, action.path),
        "item": writing.variables.get(action.name, action.name),
    }
    if action.index:
        attributes["index"] = writing.variables.get(action.index, action.index)
    return [Tag("foreach", attributes, write_actions(writing, action.cases[0].actions))]


def _block(writing: Writing, action: Action) -> list[Tag]:
    writing.ours(action.path, "block inside a block")
    return [Tag("sb:block", children=write_actions(writing, action.cases[0].actions))]


_WRITERS: dict[str, Callable[[Writing, Action], list[Tag]]] = {
    **dict.fromkeys(("unset", "append", "enqueue", "emit"), _own),
    "set": _set,
    "raise": _raise,
    "send": _send,
    "cancel": _cancel,
    "log": _log,
    "if": _if,
    "foreach": _foreach,
    "block": _block,
}
