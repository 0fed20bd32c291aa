"""Every module of the patterns part is found, and its contenders do what they are measured for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks import patterns
from benchmarks.report import Row, text
from benchmarks.stage import Stage


@pytest.fixture
def stage(redis_url):
    stage = Stage(redis_url)
    stage.set_up()
    yield stage
    stage.clear()
    stage.engine.client.close()


@pytest.mark.redis
@pytest.mark.parametrize("name", patterns.NAMES)
def test_every_contender_runs_and_is_compared_with_the_recipe(stage, name, monkeypatch):
    monkeypatch.setattr("benchmarks.crowd.PROCESSES", 2)
    (section,) = patterns.Patterns(stage, 0.01, [name]).sections(1)
    assert len(section.rows) >= 2
    assert all(row.rate > 0 for row in section.rows)
    assert 0 < len([row for row in section.rows if not row.ratios]) < len(section.rows)
    assert section.aims
    assert section.title in text([section])


def module(**more):
    return SimpleNamespace(__name__="sample", PEER="by hand", **more)


ROWS = [Row("by hand", 10.0), Row("one", 20.0, {"by hand": 2.0}), Row("two", 5.0, {"by hand": 0.5})]


def test_none_may_be_slower_unless_the_module_says_otherwise():
    found = [str(aim).partition(": ")[2] for aim in patterns.aims(module(), "Pattern", ROWS)]
    assert [verdict.rpartition(": ")[2] for verdict in found] == ["reached", "MISSED"]
    (aim,) = patterns.aims(module(AIMS={"one": 2.5, "two": None}), "Pattern", ROWS)
    assert (aim.bound, aim.reached) == (2.5, 2.0)


def test_an_absolute_aim_is_about_operations_a_second():
    least, *_ = patterns.aims(module(LEAST={"two": 6}), "Pattern", ROWS)
    assert (least.bound, least.reached, str(least).endswith("MISSED")) == (6, 5.0, True)


def test_an_aim_for_what_does_not_run_stops_the_run():
    with pytest.raises(LookupError, match="no contender three"):
        patterns.aims(module(AIMS={"three": 2.0}), "Pattern", ROWS)
