"""Reads <invoke>: another document, which runs as a separate instance while the state is active."""

import re
from typing import Any

from machines.engine import limits
from machines.formats.javascript import code
from machines.formats.javascript.code import STRING, Code
from machines.formats.javascript.scope import Action
from machines.formats.scxml.elements import MACHINE, OURS, Element, parse

from . import content
from .chart import Chart, object_of

TYPES = ("scxml", "http://www.w3.org/TR/scxml/", "http://www.w3.org/TR/scxml")
_SIMPLE = re.compile(r"\w+|'[^'\\]*'")  # an expression that cannot fail


def read_invokes(chart: Chart, state: Element) -> list[Any]:
    found = []
    for number, element in enumerate(state.all("invoke"), start=1):
        if element.get("type") == OURS:
            found.append(_handler(chart, element))
            continue
        invoke = _read(chart, state, element, number)
        if invoke is not None:
            found.append(invoke)
    return found


def _handler(chart: Chart, element: Element) -> Action:
    """Read work for a handler, which SCXML does not have, as JSON."""
    written = object_of(element)
    if written is None:
        chart.refuse(element, "an invoke of ours holds one JSON object")
        return {"src": "unknown"}
    return ({"id": id} if (id := element.get("id")) else {}) | written


def _read(chart: Chart, state: Element, element: Element, number: int) -> Action | None:
    content.both(chart, element, "type", "src", "id")
    type = element.get("type")
    if type is not None and type not in TYPES:
        message = f"{type[:60]} cannot be invoked"
        chart.warn(element, f"this fails whenever it runs: {message}", "type")
        return {"src": {"expr": code.fails(message).text}, "id": _id(chart, state, element, number)}
    source, names = _source(chart, element, element.get("id") or _state_id(chart, state))
    if source is None:
        return None
    if element.get("typeexpr") is not None:
        source = _check_type(chart, element, source)
    invoke: Action = {"src": source, "id": _id(chart, state, element, number)}
    given = _input(chart, element, names, invoke)
    if given:
        invoke["input"] = given
    if element.get("autoforward") == "true":
        invoke["autoforward"] = True
    finalize = element.first("finalize")
    if finalize is not None:
        actions = content.read(chart, finalize.children) or _take_back(chart, element)
        if actions:
            invoke["finalize"] = actions
    if element.get("idlocation") is not None:
        try:
            invoke["idlocation"] = content.id_location(chart, element)
        except content.Wrong as why:
            chart.refuse(element, str(why), "idlocation")
    if location := element.get("idlocation", OURS):
        invoke["idlocation"] = chart.fields.names.get(location, location)
    return invoke


def _state_id(chart: Chart, state: Element) -> str:
    return re.sub(r"[\s*]+", "_", state.get("id") or chart.survey.names.get(state, "machine"))


def _id(chart: Chart, state: Element, element: Element, number: int) -> str:
    """Return the id of an invoke. The default is ``state.number`` (6.4.1 of the recommendation)."""
    id = element.get("id") or f"{_state_id(chart, state)}.{number}"
    if (why := limits.check_invoke_id(id)) is not None:
        chart.refuse(element, f"the id {id[:60]!r} {why}", "id")
    return id


def _check_type(chart: Chart, element: Element, source: Any) -> Any:
    """Return a source that fails at run time if the calculated type is not one of ours."""
    asked = chart.code(element, "typeexpr")
    name = Code(source["expr"], code.CHOICE) if isinstance(source, dict) else _full_name(source)
    known = Code(f"{asked.at(code.SUM)} in {list(TYPES)!r}", code.COMPARISON)
    return {"expr": code.choose(known, name, code.fails("this cannot be invoked")).text}


def _full_name(source: str) -> Code:
    return Code(f"instance.machine + '.{source.removeprefix('machine:')}'", code.SUM, STRING)


def _source(chart: Chart, element: Element, stem: str) -> tuple[Any, list[str] | None]:
    """Return ``src`` of the invoke and the names of its possible machines; None for a machine outside the document."""
    inner = element.first("content")
    if inner is not None and (element.get("src") is not None or element.get("srcexpr") is not None):
        chart.refuse(inner, '<content> and "src" exclude each other')
    if inner is not None:
        return _from_content(chart, inner, stem)
    if (element.get("src") or "").startswith(MACHINE):
        return f"machine:{(element.get('src') or '').removeprefix(MACHINE)}", None
    if element.get("src") is not None:
        return _from_file(chart, element, element.get("src") or "")
    if element.get("srcexpr") is not None:
        return _embed_all(chart, element)
    chart.refuse(element, "nothing to invoke: write <content>, or src")
    return None, []


def _from_file(chart: Chart, element: Element, named: str) -> tuple[Any, list[str] | None]:
    path = chart.library.path(chart, element, "src", named)
    if path is not None and (why := chart.library.missing(chart, element, "src", path)):
        return {"expr": code.fails(why).text}, []
    return _name_embedded(chart.library.embed_file(chart, element, "src", named))


def _name_embedded(name: str | None) -> tuple[Any, list[str] | None]:
    return (None, []) if name is None else (f"machine:{name}", [name])


def _from_content(chart: Chart, inner: Element, stem: str) -> tuple[Any, list[str] | None]:
    if inner.get("expr") is not None:
        # The value can be the name of a document that was assigned to a variable.
        return {"expr": chart.code(inner, "expr").text}, list(chart.library.machines)
    document = inner.first("scxml")
    if document is None and inner.text.lstrip().startswith("<"):
        found = parse(inner.text.strip())
        document = found if isinstance(found, Element) and found.is_scxml("scxml") else None
    if document is None:
        chart.refuse(inner, "only an SCXML document can be invoked")
        return None, []
    return _name_embedded(chart.library.embed(chart, document, stem))


def _embed_all(chart: Chart, element: Element) -> tuple[Any, list[str] | None]:
    """Embed every file that a text of the document names. Which of them is invoked is decided at run time."""
    asked = chart.code(element, "srcexpr")
    names: dict[str, str] = {}
    for written in chart.survey.files:
        name = chart.library.embed_file(chart, element, "srcexpr", written)
        if name is not None:
            names[written] = name
    source = code.fails("no such document was brought along")
    if not names:
        chart.warn(element, "this fails whenever it runs: no file is named that could be invoked", "srcexpr")
        return {"expr": code.call("item", Code(f"[{asked.text}, {source.text}]"), code.number(0)).text}, []
    for written, name in names.items():
        source = code.choose(code.compare(asked, "==", code.text(written)), _full_name(name), source)
    return {"expr": source.text}, list(names.values())


def _input(chart: Chart, element: Element, names: list[str] | None, invoke: Action) -> dict[str, str]:
    """Return the parameters that the child declares. The others are dropped, but an error in one ends the invoke."""
    if names is None:
        return {name: value.text for name, value in content.parameters(chart, element).items()}
    known: dict[str, str] = {}
    for name in names:
        known |= chart.library.inputs(name)
    found = content.parameters(chart, element)
    others = [value for name, value in found.items() if name not in known and not _SIMPLE.fullmatch(value.text)]
    if others:
        source = invoke["src"]
        name = source["expr"] if isinstance(source, dict) else _full_name(source).text
        invoke["src"] = {"expr": f"item([{', '.join([name, *(value.text for value in others)])}], 0)"}
    return {known[name]: value.text for name, value in found.items() if name in known}


def _take_back(chart: Chart, element: Element) -> list[Action]:
    """Return the assignments of an empty <finalize>: each returned value is stored where its parameter came from."""
    places = {name: name for name in (element.get("namelist") or "").split()}
    for param in element.all("param"):
        if param.get("location") is not None:
            places[param.get("name") or ""] = param.get("location") or ""
    found = []
    for name, location in places.items():
        target = Element(element.source, element.space, "assign", element.start, {("", "location"): location})
        value = code.member(Code("event"), name)
        action = chart.location(target, "location", value)
        found.append({"if": [{"guard": f"has(event, {name!r})", "do": [action]}]})
    return found
