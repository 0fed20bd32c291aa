"""The files of the store: what they can hold, who may read them, and what happens to those that are not its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from machines.insight import questions
from machines.insight import store as module
from machines.insight.errors import BadSearch, StoreUnavailable
from machines.insight.places import MANIFEST
from machines.insight.records import Search
from machines.insight.store import FORMAT, Store


@pytest.mark.parametrize("actor", ["a\rb", "a\r\nb", "a\nb", 'a"b,c', "\r", ""])
def test_any_actor_is_kept_as_it_is(store, tell, actor):
    tell({"a": [("New", 0), ("Paid", 5)]}, actor=actor)
    assert store.ask("order", "SELECT actor, waited FROM {steps} ORDER BY revision") == [(actor, None), (actor, 5_000)]


def test_each_process_has_temporary_files_of_its_own(tmp_path):
    stores = [Store(tmp_path), Store(tmp_path)]
    folders = [Path(one.ask("order", "SELECT current_setting('temp_directory')")[0][0]) for one in stores]
    assert folders[0] != folders[1]
    assert all(folder.is_dir() and tmp_path not in folder.parents for folder in folders)
    stores.clear()
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize(
    "held",
    [
        {"marks": [1]}, {"steps": None}, {"steps": {"a": "b"}}, {"generation": "1"},
        {"lost": None}, {"drifts": {"a": 1}}, {"hidden": 5}, {"hidden": [5]},
    ],
)  # fmt: skip
def test_a_manifest_of_another_shape_is_a_damaged_one(store, held):
    store.folder("order").mkdir(parents=True)
    (store.folder("order") / MANIFEST).write_text(json.dumps({"format": FORMAT, **held}))
    with pytest.raises(StoreUnavailable, match="is damaged"):
        questions.bottlenecks(Search("order"), store=store)


def test_files_of_others_stay(store, tell):
    tell({"a": [("New", 0)]})
    others = [store.folder("order") / name for name in ("mine.parquet", "steps-2024.parquet", "a.tmp")]
    forgotten = [store.folder("order") / f"{kind}-0123456789ab.{end}"
                 for kind, end in (("steps", "parquet"), ("copy", "tmp"))]  # fmt: skip
    for path in [*others, *forgotten]:
        path.touch()
        os.utime(path, (0, 0))
    for number in range(8):
        tell({f"b{number}": [("New", 0)]})
    store.compact("order")
    assert all(path.exists() for path in others)
    assert not any(path.exists() for path in forgotten)


def test_facts_are_for_their_owner_alone(store, tell):
    tell({"a": [("New", 0)]})
    files = list(store.folder("order").iterdir())
    assert len(files) == 5
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_a_copy_that_takes_too_long_ends_and_leaves_no_draft(store, tell, monkeypatch, tmp_path):
    tell({"a": [("New", 0)]})
    before = set(store.folder("order").iterdir())

    def answer(*_, longest: float, **__):
        raise BadSearch(f"more than {longest}")

    monkeypatch.setattr(store, "ask", answer)
    with pytest.raises(BadSearch, match=str(module.LONGEST_COPY)):
        store.copy("order", tmp_path / "copy.parquet")
    assert set(store.folder("order").iterdir()) == before
