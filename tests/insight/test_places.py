"""Facts in a database, of which each host has copies. Once more on PostgreSQL by
``tests/installation/settings/test_on_postgresql.py``."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from machines.insight import places, questions
from machines.insight.errors import BadSearch, InsightOff, StoreUnavailable
from machines.insight.places import DatabasePlace
from machines.insight.records import Search
from machines.insight.store import GRACE, Store, get_store, open_store
from machines.models import InsightManifest, InsightPart
from machines.retention import erasure
from tests.configuration import configure

from .test_ingestion import duty, look_at_all, read_steps, run  # noqa: F401  fixture
from .test_questions import LOOPED, SHORT

ALL = Search("order")
REFUSE = {"sqlite": "PRAGMA query_only = on", "postgresql": "SET default_transaction_read_only = on"}
ALLOW = {"sqlite": "PRAGMA query_only = off", "postgresql": "SET default_transaction_read_only = off"}


@pytest.fixture
def open_host(tmp_path, transactional_db, monkeypatch):
    monkeypatch.setattr(places, "PART", 500)  # bytes: a file has several parts
    return lambda name: Store(DatabasePlace("default", tmp_path / name))


@pytest.fixture
def store(open_host) -> Store:
    return open_host("here")


@pytest.fixture
def other(open_host) -> Store:
    return open_host("there")


def count(store: Store) -> int:
    return store.ask("order", "SELECT count(DISTINCT n) FROM {steps} JOIN {instances} USING (n)")[0][0]


def list_stored() -> set[str]:
    return set(InsightPart.objects.values_list("name", flat=True))


def list_copies(store: Store) -> set[str]:
    return {path.name for path in store.folder("order").glob("*.parquet")}


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def test_each_host_answers_the_same_and_fetches_a_file_once(store, other, tell, monkeypatch):
    tell({"a": SHORT, "b": LOOPED})
    assert InsightPart.objects.count() > len(list_stored()) == 3
    assert questions.paths(ALL, store=other) == questions.paths(ALL, store=store)
    assert list_copies(other) == list_copies(store) == list_stored()
    assert other.machines() == ["order"]
    assert {path.stat().st_mode & 0o777 for path in other.folder("order").iterdir()} == {0o600}
    monkeypatch.setattr(other._place, "_fetch", None)
    assert questions.funnel(ALL, ["New", "Sent"], store=other).stages[1].instances == 2


def test_of_two_writers_one_adds(store, other, tell):
    tell({"a": SHORT})
    known, behind = store.manifest("order"), other.manifest("order")
    store.append("order", known, [], [], swept=1)
    row = other.ask("order", "SELECT * FROM {instances}")
    with pytest.raises(StoreUnavailable, match="another process changed"):
        other.append("order", behind, [], row)
    assert count(other) == 1
    assert list_copies(other) | store.manifest("order").files == list_stored()
    with pytest.raises(StoreUnavailable, match="another process changed"):
        other.append("order", type(known)(), [], [])


def test_a_kill_in_a_commit_changes_nothing(store, other, tell, monkeypatch):
    tell({"a": SHORT})
    before, stored = store.manifest("order"), list_stored()
    create = type(store._place._parts).create

    def die(rows, **values):
        if values["number"]:
            raise KeyboardInterrupt
        return create(rows, **values)

    with monkeypatch.context() as patch:
        patch.setattr(type(store._place._parts), "create", die)
        with pytest.raises(KeyboardInterrupt):
            tell({"b": SHORT})
    assert (other.manifest("order"), list_stored(), count(other)) == (before, stored, 1)
    tell({"b": SHORT})
    assert count(other) == 2


@pytest.mark.parametrize("damage", ["half", "other", "gone"])
@pytest.mark.parametrize("is_open", [True, False])
def test_a_damaged_copy_is_fetched_anew(store, other, open_host, tell, damage, is_open):
    tell({"a": SHORT})
    assert count(other) == 1
    for path in other.folder("order").glob("*.parquet"):
        whole = path.read_bytes()
        path.unlink()
        if damage != "gone":
            path.write_bytes(whole[: len(whole) // 2] if damage == "half" else bytes(len(whole)))
    assert count(other if is_open else open_host("there")) == 1


def test_a_damaged_row_is_told_and_is_no_copy(store, other, tell):
    tell({"a": SHORT})
    InsightPart.objects.filter(number=1).update(body=b"other")
    with pytest.raises(StoreUnavailable, match="in the database default is damaged"):
        count(other)
    assert not list_copies(other) & set(store.manifest("order").steps)


def test_a_fetch_goes_on_where_an_earlier_one_ended(store, other, tell, monkeypatch):
    tell({"a": SHORT})
    with monkeypatch.context() as patch:
        patch.setattr(places, "LONGEST", 0.0)
        with pytest.raises(StoreUnavailable, match="takes too long to send"):
            count(other)
    InsightPart.objects.filter(number=0).update(body=b"not asked for again")
    for path in store.folder("order").glob("*.parquet"):
        draft = other.folder("order") / path.with_suffix(".tmp").name
        if not draft.exists():
            draft.write_bytes(path.read_bytes())  # of a process that ended before it renamed it
    assert count(other) == 1


def test_waiting_for_a_lock_ends(store, other, tell, monkeypatch):
    tell({"a": SHORT})
    monkeypatch.setattr(places, "LONGEST", 0.0)
    other.folder("order").mkdir(parents=True)
    with places._locking(other.folder("order") / "lock"), pytest.raises(StoreUnavailable, match="locked by another"):
        count(other)


def test_facts_without_files_are_searched_on_any_host(store, other):
    store.append("order", store.manifest("order"), [], [], swept=1)
    assert other.find("order", ["ann"]) == []
    assert other.erase("order", ["a"]) == 0


def test_a_host_without_copies_exports(store, other, tell, tmp_path):
    tell({"a": SHORT})
    assert other.copy("order", tmp_path / "order.parquet") == len(SHORT)


@pytest.mark.parametrize("change", [
    lambda store: store.erase("order", ["a"]),
    lambda store: store.hide("order", store.manifest("order"), ["email"]),
    lambda store: Store(store.folder("elsewhere")).adopt("order", store),
])  # fmt: skip
def test_a_host_that_cannot_write_copies_says_so(store, other, tell, change):
    tell({"a": SHORT})
    other.folder("").mkdir()
    other.folder("order").write_text("no folder")
    with pytest.raises(StoreUnavailable, match="order"):
        change(other)


@pytest.mark.parametrize("text", ["{", '{"format": 9}', "[]"])
def test_a_foreign_manifest_is_a_clear_error(store, tell, text):
    tell({"a": SHORT})
    InsightManifest.objects.update(text=text)
    with pytest.raises(StoreUnavailable, match="damaged|format 9"):
        count(store)


@pytest.mark.parametrize("kind", ["steps", "shapes", "base", "deltas", "old"])
def test_a_manifest_that_names_a_file_elsewhere_writes_none(store, other, tell, tmp_path, kind):
    tell({"a": SHORT})
    manifest = json.loads(InsightManifest.objects.get().text)
    body, path = b"x", "../../evil.parquet"
    manifest[kind][path] = 1
    InsightManifest.objects.update(text=json.dumps(manifest))
    InsightPart.objects.create(machine="order", name=path, number=0, digest=places._digest(body), body=body)
    with pytest.raises(StoreUnavailable, match="evil.parquet' is no name of a file of facts"):
        other.find("order", ["a"])
    with pytest.raises(StoreUnavailable, match="no name of a file"):
        Store(tmp_path / "folder").adopt("order", other)
    assert not list(tmp_path.rglob("evil.parquet"))


def test_a_machine_whose_name_is_a_path_is_refused(store, other, tell, tmp_path):
    tell({"a": SHORT})
    for model in (InsightManifest, InsightPart):
        model.objects.update(machine="../../evil")
    for ask in (lambda: other.find("../../evil", ["a"]), lambda: Store(tmp_path / "f").adopt("../../evil", other)):
        with pytest.raises(StoreUnavailable, match="the name of the machine"):
            ask()
    assert not (tmp_path.parent / "evil").exists()


def test_a_database_that_takes_no_rows_answers_on(store, tell):
    tell({"a": SHORT})
    execute(REFUSE[connection.vendor])
    try:
        with pytest.raises(StoreUnavailable, match="the database default: .*read"):
            tell({"b": SHORT})
        assert count(store) == 1
    finally:
        execute(ALLOW[connection.vendor])
    tell({"b": SHORT})
    assert count(store) == 2


def test_an_alias_of_no_database_is_a_clear_error(settings):
    configure(settings, INSIGHT="database:facts")
    with pytest.raises(InsightOff, match="DATABASES has no 'facts'"):
        get_store()


def test_files_that_were_merged_go_and_so_do_their_copies(store, other, tell):
    for number in range(8):
        tell({f"i{number}": SHORT})
        count(other)
    first = list_copies(other)
    merged = store.compact("order")
    assert merged.old.keys() <= list_stored()
    done = store.compact("order", now=time.time() + GRACE + 1)
    assert list_stored() == done.files == {*merged.files} - {*merged.old}
    for path in other.folder("order").iterdir():
        os.utime(path, (0, 0))
    assert count(other) == 8
    assert list_copies(other) == done.files != first


def test_copies_that_were_not_read_for_a_day_go(store, other, tell):
    tell({"a": SHORT})
    unused = other.folder("forgotten")
    unused.mkdir(parents=True)
    os.utime(unused, (0, 0))
    assert count(other) == 1
    assert not unused.exists()


def test_erasing_removes_the_rows_and_the_copies_here(engine, duty, store, settings):  # noqa: F811
    configure(settings, INSIGHT="database:default", HOME=store.folder(""))
    for id in "ab":
        engine.create("order", id, {"email": f"{id}@example.org"})
    reading = get_store()
    run(type(duty)(engine, share=duty._reader._share))
    before = list_stored()
    assert erasure.erase(engine, "order", id="a", actor="ann", reason="asked for").left == []
    assert [step[0] for step in read_steps(reading)] == ["b"]
    assert not before & {*reading.manifest("order").steps, *reading.manifest("order").base}
    assert list_stored() == list_copies(reading) == reading.manifest("order").files


def test_facts_move_between_a_folder_and_a_database(engine, duty, store, settings, tmp_path):  # noqa: F811
    engine.create("order", "a")
    run(duty)
    folder, said = tmp_path / "moved", io.StringIO()
    configure(settings, INSIGHT=str(folder), HOME=store.folder(""))
    call_command("insight", "adopt", "database:default", stdout=said)
    assert said.getvalue() == "order: 1 steps\n"
    moved = get_store()
    assert read_steps(moved) == read_steps(store)
    engine.fire("order", "a", "pay")
    run(type(duty)(engine, share=duty._reader._share))
    assert [step[1] for step in read_steps(moved)] == [1, 2]
    for model in (InsightManifest, InsightPart):
        model.objects.all().delete()
    configure(settings, INSIGHT="database:default")
    call_command("insight", "adopt", str(folder), stdout=said)
    assert read_steps(get_store()) == read_steps(moved)
    with pytest.raises(BadSearch, match="there are facts of order already"):
        get_store().adopt("order", moved)


def test_what_an_interrupted_adoption_left_is_copied_by_the_next(store, tell, settings, tmp_path):
    tell({"a": SHORT})
    target, said = Store(tmp_path / "copied"), io.StringIO()
    target.adopt("order", store)
    store.append("refund", store.manifest("refund"), [], [], swept=1)
    configure(settings, INSIGHT=str(tmp_path / "copied"), HOME=store.folder(""))
    with pytest.raises(CommandError, match="there are facts of order already"):
        call_command("insight", "adopt", "database:default", stdout=said)
    assert (said.getvalue(), target.machines()) == ("refund: 0 steps\n", ["order", "refund"])


def test_of_two_adoptions_at_once_one_adds_and_the_other_removes_nothing(store, tell, tmp_path, monkeypatch):
    tell({"a": SHORT})
    target, other = Store(tmp_path / "copied"), Store(tmp_path / "copied")
    commit = target._commit

    def commit_late(*given):
        other.adopt("order", store)
        return commit(*given)

    monkeypatch.setattr(target, "_commit", commit_late)
    with pytest.raises(StoreUnavailable, match="another process"):
        target.adopt("order", store)
    assert read_steps(other) == read_steps(store)


@pytest.mark.parametrize(("place", "message"), [
    ("/nowhere", "/nowhere has no facts"), ("databse:default", "no facts"), ("database:", "write database:ALIAS"),
])  # fmt: skip
def test_a_place_without_facts_is_a_clear_error(settings, tmp_path, place, message):
    configure(settings, INSIGHT=str(tmp_path))
    with pytest.raises(CommandError, match=message):
        call_command("insight", "adopt", place)


def test_a_store_is_opened_once():
    assert open_store("database:default") is open_store("database:default")
    assert open_store(Path("/x")) is not open_store(Path("/y"))
