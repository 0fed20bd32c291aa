"""``manage.py machine inspect``: every key of an instance, its size, and what it says."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from machines.engine import Engine
from machines.management import stored_keys
from tests.engine.builders import NOW, errand

LONG = "a line\nand another"


def inspect(*words: str) -> str:
    out = io.StringIO()
    call_command("machine", "inspect", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def busy(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """One that waits for a job."""
    monkeypatch.setattr(stored_keys, "get_engine", lambda: engine)
    engine.publish(errand() | {"context": {"note": LONG}})
    engine.create("errand", "a", now=NOW)
    engine.fire("errand", "a", "start", actor="ann", reason="it is time", now=NOW + 1000)
    return engine


def test_the_history_is_readable(busy: Engine) -> None:
    lines = inspect("errand", "a").splitlines()
    at = next(n for n, line in enumerate(lines) if ":h:a: list" in line)
    assert lines[at + 1] == (
        '  1  2023-11-14T22:13:20.000+00:00  (create)  -> Idle  changes={"note": "a line\\nand another"}'
    )
    assert lines[at + 2] == (
        '  2  2023-11-14T22:13:21.000+00:00  start  -> Busy  transitions=["t1"]  actor=ann  reason=it is time'
    )


def test_fields_times_and_the_index_are_named(busy: Engine) -> None:
    text = inspect("errand", "a")
    partition = busy.keys.partition("errand")
    size = busy.client.memory_usage(partition.instance("a"))
    assert text.startswith(f"{partition.instance('a')}: hash (listpack), {size} bytes\n")
    assert "  _entered  1700000001000  (2023-11-14T22:13:21.000+00:00)\n" in text
    assert f"{partition.state('Busy')}: since 2023-11-14T22:13:21.000+00:00\n" in text
    assert f"{partition.job('0-1')}: hash" in text


def test_the_sum_is_that_of_its_keys(busy: Engine) -> None:
    found = json.loads(inspect("errand", "a", "--json"))
    partition = busy.keys.partition("errand")
    assert [key["name"] for key in found] == [partition.instance("a"), partition.history("a"), partition.job("0-1")]
    assert inspect("errand", "a").splitlines()[-1] == f"{sum(key['bytes'] for key in found)} bytes in 3 keys of its own"
    assert found[0]["content"]["note"] == LONG
    assert [step["event"] for step in found[1]["content"]] == ["(create)", "start"]


def test_a_missing_place_in_the_index_is_told(busy: Engine) -> None:
    key = busy.keys.partition("errand").state("Busy")
    busy.client.zrem(key, "a")
    assert f"{key}: is missing\n" in inspect("errand", "a")


@pytest.mark.parametrize(("words", "code"), [(("errand", "b"), "SB421"), (("none", "a"), "SB420")])
def test_what_is_not_there_is_named(busy: Engine, words: tuple[str, str], code: str) -> None:
    with pytest.raises(CommandError, match=code):
        inspect(*words)
