"""Small SCXML documents, and what they come to on the real engine."""

from __future__ import annotations

from itertools import count
from typing import Any
from xml.sax.saxutils import quoteattr

from machines.engine import Engine, Instance
from machines.engine.definitions import check
from machines.formats import dump, load, read

_numbers = count(1)


def document(body: str, data: str = "", attributes: str = "") -> str:
    """A document with these states; ``data`` is what stands in its <datamodel>."""
    name = "" if "name=" in attributes else f'name="doc{next(_numbers)}"'
    model = f"<datamodel>{data}</datamodel>" if data else ""
    return (
        f'<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" datamodel="ecmascript" {name} {attributes}>'
        f"{model}{body}</scxml>"
    )


def definition(body: str, data: str = "", attributes: str = "") -> dict[str, Any]:
    return load(document(body, data, attributes), "scxml")


def findings(body: str, data: str = "", attributes: str = "") -> list[str]:
    """``SB144 line 1, column 20: ...`` of everything found while reading."""
    return [str(found) for found in read(document(body, data, attributes), "scxml")[1]]


def back(found: dict[str, Any]) -> dict[str, Any]:
    """What is read from what was written."""
    return load(dump(found, "scxml")[0], "scxml")


def data(**variables: str) -> str:
    """<data> elements: ``data(x="1 + 1")``."""
    return "".join(f"<data id={quoteattr(name)} expr={quoteattr(text)}/>" for name, text in variables.items())


def expression(text: str, **variables: str) -> str:
    """What an expression of ECMAScript is called here."""
    body = f'<state id="a"><transition event="go"><log expr={quoteattr(text)}/></transition></state>'
    found = definition(body, data(**variables))
    return str(found["states"]["a"]["on"]["go"]["actions"]["log"])


def started(engine: Engine, found: dict[str, Any], **values: Any) -> Instance:
    """The first instance of a machine just published."""
    assert [str(one) for one in check(found) if one.is_error] == []
    machine = engine.publish(found)
    return engine.create(machine.name, "x", **({"data": values} if values else {}))


def run(engine: Engine, body: str, model: str = "", *events: str, **payload: Any) -> Instance:
    """An instance after these events; the payload comes with each."""
    instance = started(engine, definition(body, model))
    for event in events:
        instance = engine.fire(instance.machine, instance.id, event, payload)
    return instance


def evaluate(engine: Engine, text: str, payload: dict[str, Any] | None = None, **variables: str) -> Any:
    """What an expression of ECMAScript is worth."""
    body = f'<state id="a"><transition event="go"><assign location="out" expr={quoteattr(text)}/></transition></state>'
    return run(engine, body, data(**variables) + '<data id="out"/>', "go", **(payload or {})).data.get("out")


def after_script(engine: Engine, script: str, **variables: str) -> dict[str, Any]:
    """The data after a script has run."""
    body = f'<state id="a"><transition event="go"><script><![CDATA[{script}]]></script></transition></state>'
    return run(engine, body, data(**variables), "go").data
