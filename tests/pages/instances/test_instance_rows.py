"""Rows of a list of instances: every kind of column, and nothing of an instance as markup."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dashboard.instances.instance_list import CELLS, DATA, FIXED, Column, write_rows
from machines.engine import Instance

NOW = 1_700_000_000_000  # ms
HOSTILE = """<script>alert("1")</script> ../%2F & 'x' {id} {{ x }}"""
FIELD = Column(DATA + "note", "note", "data", numeric=False)


def make(id: str = "a", **more) -> Instance:
    given = {"revision": 1204, "version": 3, "entered": NOW - 200_000, "created": NOW - 9_000_000} | more
    return Instance(id, "activation", given.pop("leaves", ["Waiting"]), given.pop("data", {}), **given)


def write(*instances: Instance, columns=(*FIXED, FIELD), wrong=None, picks=True) -> str:
    return write_rows(instances, columns, wrong or {}, now=NOW, picks=picks)


def test_every_kind_of_column_is_drawn():
    assert {column.kind for column in (*FIXED, FIELD)} == set(CELLS)
    text = write(make(actor="sue", suspended=NOW, data={"note": 7}))
    for shown in (">3 min<", ">2 h 30 min<", ">1204<", ">3<", ">sue<", ">yes<", ">7<", "suspended</span>"):
        assert shown in text
    assert text.count("<td") == 2 + len(FIXED) + 1


@pytest.mark.parametrize("picks", [True, False])
def test_what_an_instance_holds_is_text(picks):
    one = make(HOSTILE, leaves=[HOSTILE, "Open"], actor=HOSTILE, data={"note": HOSTILE})
    text = write(one, wrong={HOSTILE: [SimpleNamespace(kind=HOSTILE)]}, picks=picks)
    assert "<script>" not in text
    assert text.count("&lt;script&gt;alert(&quot;1&quot;)") == (9 if picks else 7)
    assert ('name="pick"' in text) is picks


def test_errors_and_ends_are_marked():
    text = write(make("a", done=True), make("b"), wrong={"b": [SimpleNamespace(kind="")]})
    first, second = text.split("<tr ")[1:]
    assert 'class="state final"' in first
    assert "trouble" not in first
    assert 'class="state"' in second
    assert "✕ error" in second
