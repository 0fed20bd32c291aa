"""Names that only the engine gives to events: definitions that give one are refused, in whatever format they come."""

from __future__ import annotations

import json
from typing import Any

from machines.catalog import submissions
from machines.engine.definitions import check
from tests.cases import for_each
from tests.engine.builders import machine

from .forging import RESERVED, TO_BANK


@for_each("forged", RESERVED)
@for_each(
    "action, path",
    [
        (lambda name: {"raise": name}, "raise"),
        (lambda name: {"raise": {"event": name, "data": {}}}, "raise.event"),
        (lambda name: {"raise": {"event": {"type": name}}}, "raise.event"),
        (lambda name: {"send": name}, "send"),
        (lambda name: {"send": {"event": name, "to": TO_BANK}}, "send.event"),
        (lambda name: {"send": {"event": {"type": name}}}, "send.event"),
        (lambda name: {"send": {"event": {"expr": repr(name)}}}, "send.event"),
        (lambda name: {"emit": {"type": name}}, "emit.type"),
        (lambda name: {"type": "raise", "params": name}, "params"),
    ],
)
def test_a_name_that_stands_in_a_definition_is_a_finding_with_its_place(action, path, forged):
    (found,) = [one for one in check(machine("m", {"A": {"entry": action(forged)}})) if one.is_error]
    assert (found.code, found.path.partition("entry.")[2]) == ("SB107", path)
    assert "is the engine's own" in found.message
    assert found.hint.startswith("write a name that does not begin")


@for_each("forged", RESERVED)
def test_a_payload_and_an_approval_of_such_an_event_are_findings_too(forged):
    found = check(machine("m", {"A": {}}, events={forged: {}}, approval=[f"fire:{forged}"]))
    assert sorted((one.code, one.path[:8]) for one in found if one.is_error) == [
        ("SB107", "approval"),
        ("SB107", f"events[{chr(34)}"),
    ]


def test_to_listen_stays_allowed():
    listening = machine("m", {"A": {"on": {"done.*": "B", "error.*": "B", "done.invoke.x.*": "B"}}, "B": {}})
    assert [one for one in check(listening) if one.is_error] == []


def test_to_listen_for_what_nothing_makes_is_a_warning():
    found = check(machine("m", {"A": {"on": {"after.lunch": "B", "error.card": "B"}}, "B": {"on": {"back": "A"}}}))
    assert [(one.code, one.path) for one in found] == [
        ("SB209", 'states.A.on["after.lunch"]'),
        ("SB209", 'states.A.on["error.card"]'),
    ]


SCXML = '<scxml xmlns="http://www.w3.org/2005/07/scxml" initial="A"><state id="A"><onentry>{}</onentry></state></scxml>'


def xstate(action: Any) -> str:
    return json.dumps({"id": "m", "initial": "A", "states": {"A": {"entry": action}}})


@for_each(
    "format, text",
    [
        ("json", json.dumps(machine("m", {"A": {"entry": {"raise": "done.invoke.x"}}}))),
        ("yaml", "id: m\ninitial: A\nstates:\n  A:\n    entry:\n      - send: error.card\n"),
        ("xstate", xstate({"type": "xstate.raise", "params": {"event": {"type": "done.invoke.x"}}})),
        ("xstate", xstate({"type": "xstate.sendTo", "params": {"to": "x", "event": {"type": "xstate.done.actor.x"}}})),
        ("xstate", xstate({"type": "xstate.emit", "params": {"event": {"type": "error.platform.x"}}})),
        ("xstate", xstate({"type": "xstate.raise", "params": {"event": "{{ () => ({type: 'after.x'}) }}"}})),
        ("xstate", xstate("error.card")),
        ("scxml", SCXML.format('<raise event="done.state.A"/>')),
        ("scxml", SCXML.format('<raise event="error.card"/>')),
        ("scxml", SCXML.format('<send event="done.invoke.x" target="#_parent"/>')),
        ("scxml", SCXML.format('<send eventexpr="\'done.invoke.x\'" target="#_parent"/>')),
        ("scxml", SCXML.format('<if cond="true"><send event="after.t1" delay="1s"/></if>')),
    ],
)
def test_every_reader_of_a_format_reports_it(format, text):
    found = submissions.read(text, format=format)
    assert [one.code for one in found.errors] == ["SB107"], found.findings
    assert found.errors[0].path
    assert "engine's own" in found.errors[0].message


def test_a_document_that_listens_is_read_as_before():
    text = SCXML.format("").replace("</state>", '<transition event="error done.invoke.x"/></state>')
    assert submissions.read(text, format="scxml").errors == []
