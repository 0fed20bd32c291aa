"""A log becomes a draft that can be published, or is refused with the line."""

from __future__ import annotations

import json

import pytest

from machines.engine.definitions import check
from machines.insight import discovery
from machines.insight.discovery import discover
from machines.insight.errors import BadLog
from tests.cases import for_each

HEAD = "case_id,activity,timestamp\n"


def write(*traces: str) -> str:
    lines = [f"c{n},{name},2026-01-01T00:00:{at:02}" for n, trace in enumerate(traces) for at, name in enumerate(trace)]
    return HEAD + "\n".join(lines)


def test_what_follows_often_enough_becomes_a_transition():
    found = discover(write(*["abc"] * 30, *["abd"] * 9, "acb"), "orders", least=0.05)
    states = found.definition["states"]
    assert states["Begin"]["on"] == {"a": "a"}
    assert states["b"]["on"] == {"c": "c", "d": "d"}
    assert (states["c"]["type"], states["d"]["type"]) == ("final", "final")
    assert (found.cases, found.events) == (40, 120)
    assert 0.95 < found.kept < 1
    assert [one for one in check(found.definition) if one.severity == "error"] == []


def test_an_activity_that_ends_some_cases_leads_to_an_end():
    states = discover(write("ab", "aba", "a")).definition["states"]
    assert states["a"]["on"] == {"b": "b", "end": "End"}
    assert states["End"] == {"type": "final"}


def test_names_become_names_that_states_may_have():
    found = discover(write(["Check & send", "Check / send", "End"]))
    assert list(found.definition["states"])[1:] == ["Check_send", "Check_send_2", "End_2"]
    assert [one for one in check(found.definition) if one.severity == "error"] == []


XES = """<?xml version="1.0"?>
<log xmlns="http://www.xes-standard.org/"><trace><string key="concept:name" value="c1"/>
<event><string key="concept:name" value="a"/><date key="time:timestamp" value="2026-01-01T00:00:00.000+01:00"/></event>
<event><string key="concept:name" value="b"/><date key="time:timestamp" value="2026-01-01T00:01:00.000+01:00"/></event>
</trace></log>"""
OCEL = {
    "objects": [{"id": "o1", "type": "order"}, {"id": "p1", "type": "person"}],
    "events": [
        {"id": "2", "type": "b", "time": "2026-01-01T00:01:00Z", "relationships": [{"objectId": "o1"}]},
        {"id": "1", "type": "a", "time": "2026-01-01T00:00:00Z",
         "relationships": [{"objectId": "o1"}, {"objectId": "p1"}]},
    ],
}  # fmt: skip


@for_each("text", [XES, json.dumps(OCEL), write("ab")])
def test_all_formats_give_the_same(text):
    states = discover(text).definition["states"]
    assert (states["a"]["on"], states["b"]["type"]) == ({"b": "b"}, "final")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (HEAD + "c,a,2026-01-02\nc,b,2026-01-01", 3, "before that of line 2"),
        (HEAD + "c,a,2026-01-02\n,b,2026-01-03", 3, "no id of its case"),
        (HEAD + "c,a,2026-01-02\nc,b", 3, "another number of columns"),
        (HEAD + 'c,a,2026-01-02\nc,"b', 3, "not CSV"),
        (HEAD + "c,a,yesterday", 2, "is no time"),
        ("a,b\n1,2", 1, "no column case:concept:name"),
        (XES[:300], 4, "half a file"),
        ('<!DOCTYPE log [<!ENTITY a "b">]><log/>', 1, "entities are refused"),
        ('{"objects": [\n{', 2, "half a file"),
        ('{"objects": []}', 0, "not OCEL"),
        (HEAD, 0, "no events"),
        ("<a>" * 9_999, 1, "more than 32 levels"),
        ('{"objects":' * 99_999, 0, "nested too deeply"),
        ('{"objects": ' + "9" * 5_000 + "}", 0, "a number"),
        (json.dumps(OCEL).replace('"b"', "5"), 0, "type, which is a text"),
        (json.dumps(OCEL).replace('"b"', '["x"]'), 0, "type, which is a text"),
        (json.dumps(OCEL).replace('"b"', r'"\ud800"'), 0, "a text makes no sense"),
        (json.dumps(OCEL).replace('"2026-01-01T00:01:00Z"', "5"), 0, "time, which is a text"),
    ],
)
def test_a_wrong_log_is_refused_with_the_line(text, line, message):
    with pytest.raises(BadLog, match=message) as caught:
        discover(text)
    assert (caught.value.line, caught.value.code) == (line, "SB693")


def test_a_log_of_too_many_names_is_refused(monkeypatch):
    with pytest.raises(BadLog, match="more than 200 names"):
        discover(HEAD + "".join(f"c,n{n},2026-01-01\n" for n in range(10_000)))
    monkeypatch.setattr(discovery, "MOST_EVENTS", 2)
    with pytest.raises(BadLog, match="more than 2 events"):
        discover(write("abc"))
