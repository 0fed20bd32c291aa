"""Erasing reaches all facts of an instance, also those that are being written, and tells what it could not reach."""

from __future__ import annotations

import pytest

from machines.engine import UnknownInstance
from machines.insight import places
from machines.insight.errors import InsightOff
from machines.insight.ingestion import InsightDuty
from machines.insight.places import MANIFEST
from machines.insight.store import Store
from machines.retention import erasure
from machines.retention.duty import RetentionDuty
from tests.configuration import configure
from tests.retention.conftest import Restless

from .test_ingestion import DEFINITION, duty, read_steps, run  # noqa: F401  fixture


@pytest.fixture
def folder(engine, duty, store, settings):  # noqa: F811
    """The folder of the facts of the instances a and b."""
    configure(settings, INSIGHT=store.folder(""))
    engine.create("order", "a", {"region": "Ann of Kent", "email": "a@example.org"})
    engine.create("order", "b")
    run(duty)
    return store.folder("order")


def erase(engine, **what):
    return erasure.erase(engine, "order", **(what or {"id": "a"}), actor="ann", reason="asked for")


def test_erasing_leaves_no_fact_of_an_instance(engine, store, folder):
    assert erase(engine).removed["steps of insight"] == 1
    assert [step[0] for step in read_steps(store)] == ["b"]
    assert len(list(folder.glob("*.parquet"))) == 3


def test_erasing_begins_again_where_steps_were_added_meanwhile(store, folder, monkeypatch):
    real, calls = store._copy, list[str]()

    def copy(machine: str, kind: str, query: str) -> dict[str, int]:
        calls.append(kind)
        if len(calls) == 1:
            store.append("order", store.manifest("order"), [], [], swept=5)
        return real(machine, kind, query)

    monkeypatch.setattr(store, "_copy", copy)
    assert store.erase("order", ["a"]) == 1
    assert (store.manifest("order").swept, calls) == (5, ["steps", "shapes", "instances"] * 2)
    assert len(list(folder.glob("*.parquet"))) == 3


@pytest.mark.parametrize("what", [{"id": "a"}, {"where": ("region", "Ann of Kent")}])
def test_facts_of_an_instance_that_is_nowhere_else_go(engine, store, folder, what):
    engine.delete("order", "a", reason="no copy is kept")
    found = erase(engine, **what)
    assert (found.instances, found.left, found.removed["steps of insight"]) == (["a"], [], 1)
    assert [step[0] for step in read_steps(store)] == ["b"]
    with pytest.raises(UnknownInstance):
        erase(engine, id="a")


def test_an_instance_with_the_id_of_an_erased_one_stays(engine, duty, store, folder):  # noqa: F811
    engine.delete("order", "a", reason="no copy is kept")
    engine.create("order", "a", {"email": "another@example.org"})
    found = erase(engine, where=("region", "Ann of Kent"))
    assert (found.left, found.removed["steps of insight"]) == ([], 1)
    assert engine.get("order", "a").data["region"] == "eu"
    store.append("order", store.manifest("order"), [], [], swept=0)
    run(duty)
    assert [step[0] for step in read_steps(store)] == ["a", "b"]


def test_both_instances_of_an_id_go_also_the_archived_one(engine, duty, store, folder):  # noqa: F811
    engine.publish({**DEFINITION, "retain": "1s"})
    for event in ("pay", "send"):
        engine.fire("order", "b", event, now=engine.read_clock() - 60_000)
    retention = RetentionDuty(engine, share=Restless())
    while retention.run_once():
        pass
    engine.create("order", "b", {"email": "another@example.org"})
    store.append("order", store.manifest("order"), [], [], archived=0)  # the steps have times of a minute ago
    run(duty)
    assert [step[0] for step in read_steps(store)] == ["a", "b", "b", "b", "b"]
    found = erase(engine, id="b").removed
    assert [found[place] for place in ("instances in Redis", "archived instances", "steps of insight")] == [1, 1, 4]
    assert [step[0] for step in read_steps(store)] == ["a"]
    run(InsightDuty(engine, store=store, share=Restless()))
    assert [step[0] for step in read_steps(store)] == ["a"]


@pytest.mark.parametrize("is_first", [True, False])
def test_what_is_being_read_while_it_is_erased_is_not_added(engine, duty, store, folder, monkeypatch, is_first):  # noqa: F811
    if is_first:
        engine.create("order", "c", {"region": "Cid of Kent"})
    else:
        engine.publish({**DEFINITION, "id": "other"})
    machine, reader = ("order" if is_first else "other"), duty._reader
    if not is_first:
        engine.create("other", "c")
    real = reader.read

    def read(*given):
        found = list(real(*given))
        if any(one.id == "c" for one, _ in found):
            erasure.erase(engine, machine, id="c", actor="ann", reason="asked for")
        return iter(found)

    monkeypatch.setattr(reader, "read", read)
    run(duty)
    run(duty)
    assert store.find(machine, [], ["c"]) == []
    files = {path.name for path in store.folder(machine).glob("*.parquet")}
    assert files == store.manifest(machine).files


def test_files_that_no_manifest_names_go_at_once(engine, duty, store, folder, monkeypatch):  # noqa: F811
    engine.create("order", "c")

    def die(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_commit", die)
        with pytest.raises(KeyboardInterrupt):
            run(duty)
    assert len(list(folder.glob("*.parquet"))) == 5
    erase(engine, id="c")
    assert {path.name for path in folder.glob("*.parquet")} == store.manifest("order").files


def test_a_value_that_another_instance_holds_in_its_facts_is_told(engine, duty, store, folder):  # noqa: F811
    engine.publish({**DEFINITION, "id": "other"})
    engine.create("other", "x", {"region": "Ann of Kent"})
    run(duty)
    engine.delete("other", "x", reason="no copy is kept")
    assert erase(engine, where=("region", "Ann of Kent")).left == ["insight: other/x"]


@pytest.mark.parametrize("fault", ["off", "damaged", "full"])
def test_a_store_that_is_away_is_told_and_the_rest_goes(engine, store, folder, monkeypatch, fault):
    kept = (folder / MANIFEST).read_text()

    def fail(*_):
        raise OSError(28, "No space left on device")

    def refuse():
        raise InsightOff("DuckDB is missing")

    with monkeypatch.context() as patch:
        if fault == "off":
            patch.setattr(erasure, "get_store", refuse)
        elif fault == "full":
            patch.setattr(places, "_sync", fail)
        else:
            (folder / MANIFEST).write_text("{")
        found = erase(engine)
        assert found.removed["instances in Redis"] == 1
        assert found.left
        assert all(place.startswith("insight: ") for place in found.left)
    (folder / MANIFEST).write_text(kept)
    assert erase(engine).left == []
    assert [step[0] for step in read_steps(store)] == ["b"]
