"""The duty reads each step once, whatever ends it, and says what it could not read."""

from __future__ import annotations

import pytest

from machines.engine import UnknownMachine
from machines.insight import ingestion, places, questions
from machines.insight import store as module
from machines.insight.errors import StoreUnavailable
from machines.insight.ingestion import InsightDuty
from machines.insight.records import GAP, Search
from machines.insight.store import Store
from machines.instances.archive.store import get_archive
from machines.retention.duty import RetentionDuty
from tests.configuration import configure
from tests.retention.conftest import Restless

DEFINITION = {
    "id": "order", "initial": "New", "index": ["region", "email"], "history": 10,
    "context": {
        "type": "object",
        "properties": {
            "region": {"type": "string", "default": "eu"},
            "email": {"type": "string", "default": "ann@example.org", "sensitive": True},
        },
    },
    "states": {
        "New": {"on": {"pay": "Paid", "look": {"actions": {"set": {"region": "event.region"}}}}},
        "Paid": {"tags": ["busy"], "on": {"send": "Sent", "back": "New"}},
        "Sent": {"type": "final"},
    },
}  # fmt: skip
ALL = Search("order")


@pytest.fixture
def duty(engine, store, transactional_db) -> InsightDuty:
    engine.publish(DEFINITION)
    return InsightDuty(engine, store=store, share=Restless())


def run(duty: InsightDuty) -> None:
    """Have the duty read all. A pass leaves the current millisecond to the next one: this waits for its end."""
    begun = duty._engine.read_clock()
    while duty._engine.read_clock() <= begun:
        pass
    while duty.run_once():
        pass


def look_at_all(store: Store) -> None:
    """Have the next pass look at all instances."""
    store.append("order", store.manifest("order"), [], [], swept=0)


def read_steps(store: Store) -> list[tuple[str, int, str, str]]:
    return store.ask(
        "order",
        "SELECT i.instance, s.revision, s.source, s.target FROM {steps} s JOIN {instances} i USING (n) ORDER BY ALL",
    )  # fmt: skip


def test_each_step_is_a_fact_once(engine, duty, store):
    engine.create("order", "a", now=1_000)
    engine.fire("order", "a", "pay", actor="ann", now=11_000)
    run(duty)
    engine.fire("order", "a", "send", now=31_000)
    engine.create("order", "b")
    look_at_all(store)
    run(duty)
    run(duty)
    assert read_steps(store) == [
        ("a", 1, "", "New"), ("a", 2, "New", "Paid"), ("a", 3, "Paid", "Sent"), ("b", 1, "", "New"),
    ]  # fmt: skip
    found = questions.paths(ALL, store=store)
    assert {path.states: path.count for path in found.paths} == {("New", "Paid", "Sent"): 1, ("New",): 1}
    assert [one.stay.p50 for one in found.states if one.state == "Paid"] == [20_000]


def test_a_search_chooses_by_data_state_actor_and_tag(engine, duty, store):
    engine.create("order", "a", {"region": "us"})
    engine.create("order", "b")
    engine.fire("order", "b", "pay", actor="ann")
    run(duty)

    def ids(**terms):
        return questions.list_instances(Search("order", **terms), store=store).ids

    assert ids() == ("a", "b")
    assert ids(where=(("region", "us"),)) == ("a",)
    assert ids(state="Paid") == ids(actor="ann") == ids(tag="busy") == ("b",)
    assert ids(versions=(2,)) == ids(begin=4_000_000_000_000) == ()


def test_sensitive_fields_are_no_facts(engine, duty, store):
    engine.create("order", "a")
    run(duty)
    assert store.ask("order", "SELECT data FROM {instances}") == [('{"region": "eu"}',)]


@pytest.mark.parametrize("has_more", [True, False])
def test_a_field_that_becomes_sensitive_leaves_the_facts(engine, duty, store, has_more):
    engine.create("order", "a", {"region": "Kent"})
    run(duty)
    region = {"type": "string", "default": "eu", "sensitive": True}
    engine.publish(
        {**DEFINITION, "context": {"type": "object", "properties": {**DEFINITION["context"]["properties"],
                                                                     "region": region}}}
    )  # fmt: skip
    if has_more:
        engine.create("order", "b", {"region": "Kent"})
    run(InsightDuty(engine, store=store, share=Restless()))
    assert store.find("order", ["Kent", "region"]) == []
    assert store.manifest("order").count == 1 + has_more
    assert {path.name for path in store.folder("order").glob("*.parquet")} == store.manifest("order").files
    before = store.manifest("order").base
    run(duty)
    assert store.manifest("order").base == before


def test_steps_that_stay_in_their_state_are_found_by_a_look_at_all(engine, duty, store):
    engine.create("order", "a", now=1_000)
    run(duty)
    engine.fire("order", "a", "look", {"region": "us"})
    run(duty)
    assert len(read_steps(store)) == 1
    look_at_all(store)
    run(duty)
    assert read_steps(store)[-1] == ("a", 2, "New", "New")


def test_a_step_that_comes_while_histories_are_read_has_its_data_in_the_next_pass(engine, duty, store, monkeypatch):
    engine.create("order", "a", now=1_000)
    reader = duty._reader
    real = reader.read

    def read(*given):
        monkeypatch.setattr(reader, "read", real)
        engine.fire("order", "a", "look", {"region": "us"})
        return real(*given)

    monkeypatch.setattr(reader, "read", read)
    run(duty)
    look_at_all(store)
    run(duty)
    assert [step[1] for step in read_steps(store)] == [1, 2]
    assert store.ask("order", "SELECT data, revision FROM {instances}") == [('{"region": "us"}', 2)]


def test_trimmed_steps_are_counted_as_lost(engine, duty, store):
    engine.create("order", "a")
    for _ in range(60):
        engine.fire("order", "a", "pay")
        engine.fire("order", "a", "back")
    run(duty)
    extent = questions.paths(ALL, store=store).extent
    assert (extent.steps + extent.lost, extent.lost > 0) == (121, True)
    assert store.manifest("order").lost == extent.lost
    assert questions.paths(ALL, store=store).paths[0].states[0] == GAP


def test_what_retention_took_away_comes_from_the_archive(engine, duty, store):
    engine.publish({**DEFINITION, "retain": "1s"})
    engine.create("order", "a", now=1_000)
    engine.fire("order", "a", "pay", now=2_000)
    engine.fire("order", "a", "send", now=3_000)
    retention = RetentionDuty(engine, share=Restless())
    while retention.run_once():
        pass
    assert get_archive().find("order", "a") is not None
    run(duty)
    run(duty)
    assert [step[1] for step in read_steps(store)] == [1, 2, 3]


@pytest.mark.parametrize("archive", ["setting", "definition"])
def test_what_is_not_archived_stays_until_it_was_read(engine, duty, store, settings, archive):
    configure(settings, INSIGHT=store.folder(""), ARCHIVE="none" if archive == "setting" else "sql")
    engine.publish({**DEFINITION, "retain": {"finished": "1s", "archive": archive == "setting"}})
    now = engine.read_clock()
    for id, age in (("a", 600_000), ("b", 4_000_000)):
        engine.create("order", id, now=now - age)
        engine.fire("order", id, "pay", now=now - age)
        engine.fire("order", id, "send", now=now - age)
    retention = RetentionDuty(engine, share=Restless())
    retention.run_once()
    assert engine.counts("order")["Sent"] == 1  # b waited for an hour
    run(duty)
    retention.run_once()
    assert engine.counts("order")["Sent"] == 0
    assert [step[:2] for step in read_steps(store)] == [("a", 1), ("a", 2), ("a", 3)]


def test_an_id_that_is_used_again_is_another_instance(engine, duty, store):
    engine.create("order", "a", now=1_000)
    run(duty)
    engine.delete("order", "a", reason="again")
    engine.create("order", "a")
    run(duty)
    assert questions.paths(ALL, store=store).extent.instances == 2


@pytest.mark.parametrize("moment", ["files", "manifest"])
def test_a_kill_between_files_and_manifest_loses_and_doubles_nothing(engine, duty, store, monkeypatch, moment):
    run(duty)
    for number in range(5):
        engine.create("order", f"i{number}")

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_commit", die) if moment == "files" else patch.setattr(places, "_sync", die)
        with pytest.raises(KeyboardInterrupt):
            run(duty)
    run(InsightDuty(engine, store=store, share=Restless()))
    assert len(read_steps(store)) == len(set(read_steps(store))) == 5


def test_a_store_that_is_away_is_reported_once_and_the_duty_goes_on(engine, duty, store, caplog):
    engine.create("order", "a")
    store.folder("order").parent.write_text("a file stands where the folder should be")
    run(duty)
    run(duty)
    assert len([record for record in caplog.records if "goes on by itself" in record.message]) == 1
    store.folder("order").parent.unlink()
    run(duty)
    assert len(read_steps(store)) == 1


def test_a_damaged_manifest_stops_no_other_machine(engine, duty, store, caplog):
    engine.publish({**DEFINITION, "id": "other"})
    for machine in ("order", "other"):
        engine.create(machine, "a")
    run(duty)
    for machine in ("order", "other"):
        engine.create(machine, "b")
    for machine in ("order", "other"):
        kept = (store.folder(machine) / "manifest.json").read_text()
        (store.folder(machine) / "manifest.json").write_text(f'{{"format": {module.FORMAT}, "marks": [1]}}')
        run(duty)
        (store.folder(machine) / "manifest.json").write_text(kept)
    assert [store.manifest(machine).count for machine in ("order", "other")] == [2, 2]
    assert "is damaged" in caplog.text


def test_what_was_deleted_waits_nowhere(engine, duty, store):
    for id in ("a", "b"):
        engine.create("order", id, now=1_000)
    run(duty)
    engine.delete("order", "a", reason="no copy is kept")
    engine.create("order", "a", now=2_000)
    look_at_all(store)
    run(duty)
    (waiting,) = questions.bottlenecks(ALL, store=store).states
    (late,) = questions.service_levels(ALL, {"New": 0}, store=store).levels
    (found,) = questions.paths(ALL, store=store).states
    assert (waiting.waiting, late.late, found.here, found.instances) == (2, 2, 2, 3)
    for _ in range(2):
        look_at_all(store)
        run(duty)
    assert store.ask("order", "SELECT instance, ended FROM {instances} ORDER BY n") == [
        ("a", None), ("b", False), ("a", False),
    ]  # fmt: skip
    assert sum(store.manifest("order").deltas.values()) == 4


def test_an_archive_is_added_in_few_commits(engine, duty, store, monkeypatch):
    engine.publish({**DEFINITION, "retain": "1s"})
    for number in range(20):
        engine.create("order", f"i{number:02}", now=1_000 + number)
        engine.fire("order", f"i{number:02}", "pay", now=2_000)
        engine.fire("order", f"i{number:02}", "send", now=3_000 + number)
    retention = RetentionDuty(engine, share=Restless())
    while retention.run_once():
        pass
    assert len(list(get_archive().walk("order"))) == 20
    monkeypatch.setattr(ingestion, "PAGE", 2)
    real, appended = store.append, list[str]()

    def append(machine, known, steps, *given, **changes):
        appended.extend([machine] if steps else [])
        return real(machine, known, steps, *given, **changes)

    monkeypatch.setattr(store, "append", append)
    run(duty)
    assert store.manifest("order").count == 60
    assert (len(store.manifest("order").steps), appended) == (1, ["order"])


def test_a_pass_over_the_archive_that_is_killed_begins_again_and_adds_each_once(engine, duty, store, monkeypatch):
    engine.publish({**DEFINITION, "retain": "1s"})
    for number in range(6):
        engine.create("order", f"i{number}", now=1_000 + number)
        engine.fire("order", f"i{number}", "pay", now=2_000)
        engine.fire("order", f"i{number}", "send", now=3_000 + number)
    retention = RetentionDuty(engine, share=Restless())
    while retention.run_once():
        pass
    for name in ("PAGE", "BATCH"):
        monkeypatch.setattr(ingestion, name, 2)
    real = store.append

    def append(machine, known, steps, *given, **changes):
        if known.count == 6:
            raise KeyboardInterrupt
        return real(machine, known, steps, *given, **changes)

    with monkeypatch.context() as patch:
        patch.setattr(store, "append", append)
        with pytest.raises(KeyboardInterrupt):
            run(duty)
    assert (store.manifest("order").count, store.manifest("order").archived) == (6, 0)
    run(InsightDuty(engine, store=store, share=Restless()))
    assert len(read_steps(store)) == len(set(read_steps(store))) == 18
    assert store.manifest("order").archived > 0


def test_definitions_are_read_once_while_nothing_is_published(engine, duty, store, monkeypatch):
    run(duty)
    calls = list[str]()
    real = engine.definition
    monkeypatch.setattr(engine, "definition", lambda *given: calls.append(given[0]) or real(*given))
    run(duty)
    assert calls == []
    engine.publish({**DEFINITION, "description": "second"})
    run(duty)
    assert calls == ["order"]


def test_small_files_are_merged_while_a_long_pass_goes_on(engine, duty, store, monkeypatch):
    monkeypatch.setattr(ingestion, "MOST_STEPS", 1)
    real, most = store.append, list[int]()

    def append(machine, known, *given, **changes):
        most.append(len(known.deltas))
        return real(machine, known, *given, **changes)

    monkeypatch.setattr(store, "append", append)
    for number in range(30):
        engine.create("order", f"i{number:02}")
    run(duty)
    assert (store.manifest("order").count, max(most) < module.FAN) == (30, True)


def test_a_damaged_or_foreign_file_is_a_clear_error(engine, duty, store):
    engine.create("order", "a")
    run(duty)
    file = next(store.folder("order").glob("steps-*.parquet"))
    kept = file.read_bytes()
    file.write_bytes(b"PAR1 no parquet")
    with pytest.raises(StoreUnavailable, match="cannot be read") as caught:
        questions.paths(ALL, store=store)
    assert caught.value.code == "SB691"
    file.write_bytes(kept)
    (store.folder("order") / "manifest.json").write_text('{"format": 9}')
    with pytest.raises(StoreUnavailable, match="of format 9"):
        questions.paths(ALL, store=store)


def test_small_files_are_merged_and_readers_of_an_older_manifest_go_on(engine, duty, store):
    before = None
    for number in range(20):
        engine.create("order", f"i{number:02}")
        run(duty)
        before = before or store.manifest("order")
    after = store.manifest("order")
    assert len(after.steps) < 10
    assert after.count == 20
    assert store.ask("order", "SELECT count(*) FROM {steps}", manifest=before) == [(1,)]
    assert store.ask("order", "SELECT count(*), count(DISTINCT n) FROM {instances}") == [(20, 20)]
    store.compact("order", now=4e9)
    assert len(list(store.folder("order").glob("*.parquet"))) == len(after.files - {*after.old})


def test_a_full_disk_loses_nothing(engine, duty, store, monkeypatch, caplog):
    run(duty)
    engine.create("order", "a")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(places, "_sync", fail)
        run(duty)
    assert "No space left on device" in caplog.text
    assert store.manifest("order").count == 0
    run(duty)
    assert len(read_steps(store)) == 1


def test_two_writers_add_a_step_once(engine, duty, store):
    known = store.manifest("order")
    engine.create("order", "a")
    run(duty)
    with pytest.raises(StoreUnavailable, match="another process changed"):
        store.append("order", known, [], [], swept=1)
    assert len(read_steps(store)) == 1


def test_states_of_regions_are_whole_configurations(engine, store, duty):
    region = {"initial": "Open", "states": {"Open": {"on": {"shut": "Shut"}}, "Shut": {"type": "final"}}}
    other = {"initial": "Dark", "states": {"Dark": {"on": {"light": "Lit"}}, "Lit": {"type": "final"}}}
    engine.publish({"id": "room", "initial": "All", "states": {"All": {"type": "parallel", "states": {
        "Door": region, "Lamp": other}}}})  # fmt: skip
    engine.create("room", "a")
    engine.fire("room", "a", "light")
    run(duty)
    found = questions.paths(Search("room"), store=store)
    assert found.paths[0].states == ("Open, Dark", "Open, Lit")
    assert (found.extent.instances, found.extent.steps, found.extent.has_regions) == (1, 2, True)
    figures = {one.state: (one.instances, one.entries, one.here) for one in found.leaves}
    assert figures == {"Open": (1, 1, 1), "Dark": (1, 1, 0), "Lit": (1, 1, 1)}
    for state, total in {"Open": 1, "Open, Lit": 1, "Shut": 0}.items():
        assert questions.list_instances(Search("room"), state=state, store=store).total == total


def test_a_step_counts_for_the_version_that_took_it(engine, duty, store):
    engine.create("order", "a", now=1_000)
    engine.publish({**DEFINITION, "description": "second"})
    plan = engine.plan("order", 2)
    assert engine.migrate(plan).moved == 1
    engine.fire("order", "a", "pay")
    run(duty)
    assert store.ask("order", "SELECT version FROM {steps} ORDER BY revision") == [(1,), (2,), (2,)]


def test_steps_of_a_version_that_is_gone_are_facts_without_its_tags(engine, duty, store, monkeypatch):
    for id in "ab":
        engine.create("order", id)
        engine.fire("order", id, "pay")
    engine.publish({**DEFINITION, "history": 20})
    engine.create("order", "c")
    engine.fire("order", "c", "pay")
    find = type(engine).definition

    def forget(engine, machine, version=None):
        if version == 1:
            raise UnknownMachine(machine)
        return find(engine, machine, version)

    monkeypatch.setattr(type(engine), "definition", forget)
    run(duty)
    assert len(read_steps(store)) == 6
    assert questions.list_instances(Search("order", tag="busy"), store=store).ids == ("c",)


def test_steps_of_jobs_name_queue_and_handler(engine, duty, store):
    sending = {"invoke": {"src": "send", "queue": "post", "onDone": "Sent"}}
    engine.publish({"id": "mail", "initial": "Sending", "states": {"Sending": sending, "Sent": {"type": "final"}}})
    engine.create("mail", "a")
    (job,) = engine.take("mail", "post", "w1")
    engine.complete(job)
    run(duty)
    (row,) = questions.people(Search("mail"), "queue", store=store).rows
    assert (row.name, row.steps, row.failed) == ("post", 1, 0)
    assert questions.people(Search("mail"), "handler", store=store).rows[0].name == "send"


@pytest.mark.parametrize("is_together", [True, False])
def test_jobs_tell_how_long_they_waited_ran_and_were_retried(engine, duty, store, is_together):
    sending = {"invoke": {"src": "send", "queue": "post", "onDone": "Sent", "onError": "Lost"}}
    states = {"Sending": sending, "Sent": {"type": "final"}, "Lost": {}}
    engine.publish({"id": "mail", "initial": "Sending", "states": states})
    for id in ("a", "b", "c"):
        engine.create("mail", id, now=1_000)
    lost, first, second = engine.take("mail", "post", "w1", count=3, now=3_000)
    engine.fail(lost, "no", retry=False, now=3_500)
    engine.fail(first, "no", now=4_000, delay=5)
    (again,) = engine.take("mail", "post", "w2", now=60_000)
    if is_together:
        engine.complete_many([(again, None), (second, None)], now=61_000)
    else:
        engine.complete(second, now=61_000)
        engine.complete(again, {"sent": 1}, now=61_000)
    run(duty)

    def describe(by):
        rows = questions.people(Search("mail"), by, store=store).rows
        return {
            one.name: (one.steps, one.failed, one.queued.total, one.running.total, one.retried.total) for one in rows
        }

    assert describe("worker") == {"w1": (2, 1, 4_000, 500 + 58_000, 0), "w2": (1, 0, 2_000, 1_000, 57_000)}
    assert describe("attempt") == {"1": (2, 1, 4_000, 58_500, 0), "2": (1, 0, 2_000, 1_000, 57_000)}
    assert describe("queue") == {"post": (3, 1, 6_000, 59_500, 57_000)}
    assert questions.people(Search("mail"), "queue", store=store).rows[0].retried.count == 1
    assert questions.list_instances(Search("mail"), measure=("attempt", "2"), store=store).total == 1
    assert questions.list_instances(Search("mail"), measure=("attempt", "two"), store=store).total == 0
    assert questions.people(Search("mail"), store=store).rows == ()  # a job is no person


def test_times_of_a_job_that_no_worker_held_are_unknown(engine, duty, store):
    states = {"Sending": {"invoke": {"id": "job", "src": "send", "queue": "post", "onError": "Lost"}}, "Lost": {}}
    engine.publish({"id": "mail", "initial": "Sending", "states": states})
    engine.create("mail", "a")
    (job,) = engine.jobs("mail", "post")
    engine.withdraw("mail", job.id, actor="ann", reason="no need")
    run(duty)
    for by in ("worker", "attempt"):
        (row,) = questions.people(Search("mail"), by, store=store).rows
        assert (row.name, row.steps, row.failed) == ("", 1, 1)
        assert row.queued.count == row.running.count == row.retried.count == 0
