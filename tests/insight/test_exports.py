"""Files for other tools are whole, whatever instances and times there are."""

from __future__ import annotations

import io
from dataclasses import replace
from xml.etree import ElementTree

from machines.insight import exports
from machines.insight.facts import Case
from machines.insight.records import Search
from tests.insight.test_questions import SHORT


def export(store) -> list[tuple[str, list[str]]]:
    """Return the instances with their states, as another tool reads them."""
    output = io.StringIO()
    count = exports.write_xes(Search("order"), output, store=store)
    name = "{*}string[@key='concept:name']"
    found = [
        (trace.find(name).get("value"), [one.find(name).get("value") for one in trace.iterfind("{*}event")])
        for trace in ElementTree.fromstring(output.getvalue()).iterfind("{*}trace")
    ]
    assert count == len(found)
    return found


def test_instances_without_steps_end_no_file(store, tell, monkeypatch):
    monkeypatch.setattr(exports, "PART", 2)
    known = store.manifest("order")
    rows = [Case(n, f"empty{n}", 1, path=["…"], visited={"New": None}).row() for n in (1, 2, 3)]
    store.append("order", known, [], rows, number=4, marks={"0": 1})
    tell({"a": SHORT, "b": [("New", 0)]})
    store.append("order", store.manifest("order"), [], [replace(Case(9, "z", 1), path=["…"]).row()], number=10)
    tell({"c": SHORT})
    assert export(store) == [("a", ["New", "Paid", "Sent"]), ("b", ["New"]), ("c", ["New", "Paid", "Sent"])]


def test_times_and_texts_that_the_format_lacks_are_none(store, tell):
    tell({"a": [("Ne\x01w", 10**12)]})
    assert export(store) == [("a", ["New"])]
