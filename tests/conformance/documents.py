"""Small SCXML documents of our own, for the tests of the runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VERDICTS = '<final id="pass"/><final id="fail"/>'
SWITCH = """<state id="off"><transition event="flip" target="on"/></state>
<state id="on"><transition event="flip" target="off"/></state>"""
LAMP = """<state id="off"><transition event="press" target="on"/></state>
<state id="on"><onentry><send event="dim" delay="10s"/></onentry><transition event="dim" target="dimmed"/></state>
<state id="dimmed"><onentry><send event="out" delay="5s"/></onentry><transition event="out" target="off"/></state>"""
TWO = """<parallel id="both"><state id="left"><state id="l1"><transition event="go" target="l2"/></state>
<state id="l2"/></state><state id="right"/></parallel>"""
PATIENT = f"""<state id="wait"><onentry><send event="late" delay="100s"/><send event="soon" delay="1s"/></onentry>
<transition event="soon" target="more"/><transition event="late" target="fail"/></state>
<state id="more"><transition event="late" target="pass"/></state>{VERDICTS}"""
PARENT = f"""<state id="asking"><invoke type="scxml" src="file:helper.scxml"/>
<transition event="hello" target="pass"/><transition event="*" target="fail"/></state>{VERDICTS}"""
HELPER = """<final id="final"><onentry><send event="hello" target="#_parent"/></onentry></final>"""
WRONG = f"""<state id="start"><transition target="middle"/></state>
<state id="middle"><transition target="fail"/></state>{VERDICTS}"""
STUCK = f'<state id="start"><transition event="never" target="pass"/></state>{VERDICTS}'
RESTLESS = f"""<state id="start"><invoke type="scxml" id="wall"><content><scxml version="1.0">
<state id="s"><onentry><send event="ball" target="#_parent"/></onentry>
<transition event="ball"><send event="ball" target="#_parent"/></transition></state></scxml></content></invoke>
<transition event="ball"><send event="ball" target="#_wall"/></transition>
<transition event="never" target="pass"/></state>{VERDICTS}"""
READ_BY_PEOPLE = '<state id="start"><transition target="final"/></state><final id="final"/>'
HTTP = f"""<state id="start"><onentry>
<send event="x" target="http://localhost/" type="http://www.w3.org/TR/scxml/#BasicHTTPEventProcessor"/></onentry>
<transition event="x" target="pass"/></state>{VERDICTS}"""


def scxml(body: str) -> str:
    return f'<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" datamodel="ecmascript">{body}</scxml>'


def write(folder: Path, name: str, body: str, initial: str = "", *events: dict[str, Any]) -> None:
    """``X.scxml``, and beside it ``X.json`` when ``initial`` is given: state names separated by blanks."""
    path = folder / f"{name}.scxml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(scxml(body), encoding="utf-8")
    if initial:
        script = {"initialConfiguration": initial.split(), "events": list(events)}
        path.with_suffix(".json").write_text(json.dumps(script), encoding="utf-8")


def event(name: str, expected: str, after: int = 0) -> dict[str, Any]:
    return {"event": {"name": name}, "nextConfiguration": expected.split()} | ({"after": after} if after else {})
