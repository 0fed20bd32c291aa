"""``manage.py insight`` prints what the questions answer."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from machines.insight.store import _open
from tests.configuration import configure
from tests.insight.test_questions import LOOPED, SHORT


@pytest.fixture
def call(settings, store):
    configure(settings, INSIGHT=store.folder(""))
    _open.cache_clear()

    def called(*words: str) -> str:
        out = io.StringIO()
        call_command("insight", *words, stdout=out)
        return out.getvalue()

    return called


def test_it_prints_paths(call, tell):
    tell({"a": SHORT, "b": LOOPED})
    assert call("paths", "order").splitlines() == [
        "2 instances, 8 steps",
        " 100.0%         2  New > Paid > Sent, 1 loops  p50 30 s, p95 1.42 min, p99 1.42 min",
    ]


def test_it_prints_a_funnel_and_durations(call, tell):
    tell({"a": SHORT, "b": [("New", 0), ("Paid", 10)]})
    assert call("funnel", "order", "New", "Sent", "--within", "60").splitlines()[1:] == [
        " 100.0%         2  New  ",
        "  50.0%         1  Sent  p50 30 s, p95 30 s, p99 30 s",
    ]
    assert call("durations", "order", "--where", "region=us").splitlines() == ["0 instances, 0 steps"]
    assert json.loads(call("durations", "order", "--format", "json"))["states"][0]["state"] == "New"


def test_a_wrong_question_or_no_folder_is_a_clear_error(call, tell, settings):
    tell({"a": SHORT})
    with pytest.raises(CommandError, match=r"each once \(SB692\)"):
        call("funnel", "order", "New", "New")
    with pytest.raises(CommandError, match=r"no name of a data field \(SB692\)"):
        call("paths", "order", "--where", 'a"b=x')
    configure(settings, INSIGHT=None)
    with pytest.raises(CommandError, match=r"insight is off: set .* \(SB690\)"):
        call("paths", "order")


@pytest.mark.parametrize("name", ["ordre", "../facts/order", "."])
def test_a_machine_without_facts_is_named(call, tell, tmp_path, name):
    tell({"a": SHORT})
    for words in (("paths", name), ("export", name, str(tmp_path / "a.xes"))):
        with pytest.raises(CommandError, match=r"no facts of .*; there are of order \(SB692\)"):
            call(*words)


def test_facts_leave_as_files_that_other_tools_read(call, tell, tmp_path):
    tell({"a": SHORT, "b": LOOPED})
    assert call("export", "order", str(tmp_path / "order.xes")) == "2 instances\n"
    assert call("export", "order", str(tmp_path / "order.parquet")) == "8 steps\n"
    with pytest.raises(CommandError, match="neither"):
        call("export", "order", str(tmp_path / "order.doc"))
    with pytest.raises(CommandError, match="no facts"):
        call("export", "ordre", str(tmp_path / "order.xes"))
    assert sorted(path.name for path in tmp_path.glob("*order*")) == ["order.parquet", "order.xes"]
    draft = json.loads(call("discover", str(tmp_path / "order.xes")))
    assert (draft["id"], sorted(draft["states"])) == ("order", ["Begin", "New", "Paid", "Sent"])
    with pytest.raises(CommandError, match="No such file"):
        call("discover", str(tmp_path / "none.csv"))
