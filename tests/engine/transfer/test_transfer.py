"""An exported machine is imported whole, once, into another prefix and number of partitions; no damaged file is."""

from __future__ import annotations

import gzip
import json

import pytest

from machines.engine import Engine
from machines.engine.transfer.importing import Import
from machines.engine.transfer.records import ChunkWriter, Damaged, read_chunks

from .worlds import describe, export, fill, order, read


@pytest.fixture
def other(redis_url, prefix):
    """An engine on other keys of the same server, whose new machines have five partitions."""
    engine = Engine.from_url(redis_url, prefix=f"{prefix}other:", partitions=5)
    yield engine
    engine.client.close()


def lines_of(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def test_everything_of_a_machine_arrives_in_another_number_of_partitions(engine, other, tmp_path):
    ids = fill(engine)
    before = describe(engine, ids)
    done = export(engine, tmp_path / "order.sb")
    assert (done.instances, done.jobs) == (12, 3)
    report = read(other, tmp_path / "order.sb", partitions=5)
    assert (report.problems, report.written, report.versions) == ([], 12 + 3 + 1, [1])
    assert describe(other, ids) == before
    assert describe(engine, ids) == before


def test_the_same_file_twice_writes_nothing_twice(engine, other, tmp_path):
    ids = fill(engine)
    export(engine, tmp_path / "f")
    read(other, tmp_path / "f")
    before = describe(other, ids)
    again = read(other, tmp_path / "f")
    assert (again.written, again.there, again.others) == (0, 16, 0)
    assert describe(other, ids) == before


def test_an_instance_that_moved_on_stays_and_one_with_the_same_id_is_named(engine, other, tmp_path):
    ids = fill(engine, 3)
    export(engine, tmp_path / "f")
    other.publish(order())
    stranger = other.create("order", ids[1])
    report = read(other, tmp_path / "f")
    assert report.others == 1
    assert f"instance {ids[1]}: revision 1 of an instance created at {stranger.created} ms is here" in report.problems
    assert other.get("order", ids[1]) == stranger
    moved = other.fire("order", ids[2], "note")
    assert read(other, tmp_path / "f").others == 1
    assert other.get("order", ids[2]).revision == moved.revision


def test_open_jobs_of_a_batch_are_refused_and_dead_ones_come_without_it(engine, other, tmp_path):
    ids = fill(engine, 1)
    engine.batch([{"machine": "order", "src": "mail"}] * 2, id="b")
    (dead,) = engine.take("order", "mail", "w")
    engine.fail(dead, "no", retry=False)
    export(engine, tmp_path / "f")
    report = read(other, tmp_path / "f")
    (problem,) = report.problems
    assert "belongs to the batch b, which does not move: let it end first" in problem
    (found,) = other.jobs("order", "mail", place="dead")
    assert found.batch == ""
    assert other.get("order", ids[0])


def test_machines_go_on_after_an_import(engine, other, tmp_path):
    ids = fill(engine)
    export(engine, tmp_path / "f")
    read(other, tmp_path / "f", partitions=4)
    waiting = [id for id in ids if other.get("order", id).jobs]
    for number in range(len(waiting)):
        (job,) = other.take("order", "charge", "w2", now=other.read_clock() + 1000 * number)
        other.complete(job, {"ok": True})
    paid = [id for id in ids if "Paid" in other.get("order", id).configuration or other.get("order", id).suspended]
    assert set(waiting) <= set(paid)
    (dead,) = [other.get("order", id) for id in ids if "Failed" in other.get("order", id).configuration]
    assert dead.id == ids[3]
    held = other.resume("order", ids[0], actor="ann", reason="on")
    assert "Failed" in held.configuration
    assert other.redrive("order", "charge", actor="ann", reason="again") == 0
    assert other.tick("order", now=4_000_000_000_000) > 0
    late = [id for id in ids if "Late" in other.get("order", id).configuration]
    assert len(late) == len([id for id in ids if not other.get("order", id).suspended])


@pytest.mark.parametrize("at", [0.2, 0.5, 0.99])
def test_a_cut_file_is_refused_with_where_and_nothing_is_written(engine, other, tmp_path, at):
    fill(engine)
    path = tmp_path / "f"
    export(engine, path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * at)])
    with pytest.raises(Damaged, match=r"chunk 1, at byte 0|no end") as caught:
        read(other, path)
    assert caught.value.code == "SB461"
    assert other.machines() == {}


def test_a_changed_byte_is_refused(engine, other, tmp_path):
    fill(engine)
    path = tmp_path / "f"
    export(engine, path)
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(bytes(text))
    with pytest.raises(Damaged, match="chunk 1"):
        read(other, path)
    assert other.machines() == {}


def test_a_missing_chunk_is_refused(tmp_path):
    path = tmp_path / "f"
    writer = ChunkWriter(path)
    for number in range(3):
        writer.add({"kind": "x", "number": number})
        writer.flush()
    writer.close()
    first, second, third = read_chunks(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: first.end] + whole[second.end :])
    with pytest.raises(Damaged, match="chunk 2 was expected") as caught:
        list(read_chunks(path))
    assert (caught.value.chunk, caught.value.offset) == (2, first.end)
    assert third.number == 3


def test_an_import_that_was_stopped_goes_on(engine, other, tmp_path, monkeypatch):
    from machines.engine.transfer import importing, records

    monkeypatch.setattr(records, "CHUNK_LINES", 4)
    monkeypatch.setattr(importing, "TOGETHER", 2)
    ids = fill(engine)
    export(engine, tmp_path / "f")

    def stop(done, total):
        if done > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Import(other.client, other.keys, tmp_path / "f").run(stop)
    report = read(other, tmp_path / "f")
    assert report.there > 0
    assert report.written > 0
    assert describe(other, ids) == describe(engine, ids)


def rewritten(path, change):
    """The file with its lines changed, and digests that fit."""
    lines = [line for line in lines_of(path) if line["kind"] != "chunk"]
    path.unlink()
    writer = ChunkWriter(path)
    for line in lines:
        change(line)
        writer.add(line)
    writer.close()
    return path


def put(record, name, value):
    at = record["hash"].index(name)
    record["hash"][at + 1] = value


TAMPERED = {
    "a state": (lambda r: put(r, "_state", "Nowhere"), "has no state"),
    "half a configuration": (lambda r: put(r, "_state", "Open"), "has no state"),
    "a number": (lambda r: put(r, "n", "many"), "n takes integer"),
    "a field": (lambda r: r["hash"].extend(["other", "1"]), "no data field 'other'"),
    "bookkeeping": (lambda r: r["hash"].extend(["_admin", "1"]), "no data field '_admin'"),
    "a field twice": (lambda r: r["hash"].extend(["n", "1"]), "twice"),
    "a revision": (lambda r: put(r, "_version", "-1"), "revision"),
    "JSON": (lambda r: put(r, "more", "{"), "not JSON"),
    "a version": (lambda r: put(r, "_def", "7:ab"), "version 7 is not published"),
    "timers": (lambda r: put(r, "_timers", '[["x",1,"e",1,"","",""]]'), "timers 1 has no id"),
    "a timer's state": (lambda r: put(r, "_timers", '[["1.1",1,"e",99,"","",""]]'), "no such state"),
    "history": (lambda r: r["history"].append("[]"), "is no step"),
    "held": (lambda r: r["held"].append('{"kind":"event"}'), "is no message"),
    "messages": (lambda r: r["messages"].extend(["event", "m", "i", "{}"]), "message 1 is none"),
    "an id": (lambda r: r.update(id="a\nb"), "control characters"),
    "a job": (lambda r: r["jobs"].append(["0-1", "1", "place", "ready", "queue", "a b"]), "0-1 has no queue"),
    "a job's field": (lambda r: r["jobs"].append(["0-1", "1", "token2", "x"]), "no field token2"),
    "a list": (lambda r: r.update(history="x"), "is a list"),
    "nothing": (lambda r: r.pop("hash"), "is a list"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_record_that_does_not_fit_the_definition_is_refused(engine, other, tmp_path, what):
    ids = fill(engine, 3)
    export(engine, tmp_path / "f")
    change, why = TAMPERED[what]
    rewritten(tmp_path / "f", lambda line: change(line) if line.get("id") == ids[1] else None)
    report = read(other, tmp_path / "f")
    assert report.others == 1
    assert why in report.problems[0]
    assert sum(other.counts("order").values()) == 4  # two instances in two regions each


def test_a_definition_with_errors_is_refused(engine, other, tmp_path):
    fill(engine, 1)
    export(engine, tmp_path / "f")

    def damage(line):
        if line["kind"] == "version":
            line["source"]["states"]["Held"]["on"]["go"] = "Nowhere"

    rewritten(tmp_path / "f", damage)
    with pytest.raises(Exception, match="Nowhere"):
        read(other, tmp_path / "f")
    assert other.machines() == {}


def test_a_later_version_of_the_machine_stays_current(engine, other, tmp_path):
    fill(engine, 2)
    export(engine, tmp_path / "f")
    other.publish(order())
    other.publish({**order(), "description": "newer"})
    report = read(other, tmp_path / "f")
    assert (other.machines()["order"], report.versions) == (2, [])


def test_a_file_that_is_none_is_refused(other, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(b'{"kind":"header"}\n'))
    with pytest.raises(Damaged, match="chunk 1"):
        read(other, path)
    writer = ChunkWriter(tmp_path / "g")
    writer.add({"kind": "header", "name": "signalbox machine", "format": 99})
    writer.close()
    with pytest.raises(Damaged, match="format is 99; this release reads format 1"):
        read(other, tmp_path / "g")
