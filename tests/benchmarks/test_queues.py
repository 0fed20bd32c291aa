"""The harness of the queue benchmark: what it measures with, and that our own contenders do what is measured."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from benchmarks import report
from benchmarks.queues import contenders, idle, installed, latency, million, mixed, processes, throughput, trial
from benchmarks.queues.__main__ import aims, merge_sections
from benchmarks.queues.contenders import Contender
from benchmarks.queues.ours import machine
from benchmarks.queues.peers.stamps import SLOW, Stamps
from benchmarks.queues.stage import Stage
from benchmarks.queues.worker import Stamped
from benchmarks.report import Row, Section
from machines.conf.server import Server

MS = 1_000_000  # ns


def stamped(*jobs):
    return Stamped(list(jobs), 0, 0)


def ours():
    return next(each for each in contenders.ours(()) if each.moves)


def test_stamps_are_written_when_the_last_job_starts(tmp_path):
    file = tmp_path / "stamps"
    stamps = Stamps(str(file), 20)
    for number in range(19):
        stamps.note(number)
    assert not file.exists()
    stamps.note(SLOW)
    found = Stamped.read(file)
    assert sorted(noted for _, noted in found.jobs) == sorted([SLOW, *range(19)])
    assert found.moments == sorted(found.moments)
    assert found.warm == 2
    assert found.cpu > 0


def test_a_stamp_that_is_no_slow_job_counts_as_fast():
    assert stamped((1, 0), (2, SLOW), (3, 77)).fast == [1, 3]


def test_a_pause_counts_from_the_start_of_the_slow_job():
    before = (0, 0), (900 * MS, 0)
    after = (1000 * MS, SLOW), (1040 * MS, 0), (1100 * MS, 0)
    assert mixed.longest_pause(stamped(*before, *after)) == 60.0


def test_fast_jobs_that_wait_for_the_slow_one_are_a_pause():
    assert mixed.longest_pause(stamped((0, 0), (10 * MS, SLOW), (2010 * MS, 0))) == 2000.0


def test_a_share_of_the_waits_is_one_that_was_measured():
    waits = [float(number) for number in range(100, 0, -1)]
    assert latency.at(waits, 0.50) == 51.0
    assert latency.at(waits, 0.99) == 100.0
    assert latency.at([3.0], 0.99) == 3.0


def test_both_ends_of_a_long_queue_are_measured_by_their_own_time():
    moments = [0, 10 * MS, 20 * MS, 520 * MS, 560 * MS, 600 * MS]
    assert million.ends(moments, 2) == (100.0, 25.0)


def test_our_figures_become_aims_and_those_of_the_peers_do_not():
    sections = [
        Section(throughput.TITLE, [Row("Huey", 1.0), Row("Signalbox", 1.0, {"the fastest peer": 0.5})]),
        Section(latency.TITLE, [Row("Huey: p50", 9.0), Row("Signalbox: p50", 1.5), Row("Signalbox: p99", 10.5)]),
        Section(idle.TITLE, [Row("Signalbox: CPU", 0.5), Row("Signalbox: commands sent", 5.5)]),
        Section(mixed.TITLE, [Row("Signalbox", 12.0)]),
        Section(million.TITLE, [Row("Signalbox: the last", 1.0, {"the first": 0.97}), Row("Signalbox: all", 1.0)]),
    ]
    verdicts = [str(aim).rpartition(": ")[2] for section in sections for aim in aims(section)]
    assert verdicts == ["MISSED", "reached", "MISSED", "reached", "MISSED", "reached", "reached"]


def test_every_pinned_peer_is_named_on_the_page_of_results():
    pinned = re.findall(r"^[a-z]+", installed.REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    node = json.loads((installed.PEERS / "package.json").read_text(encoding="utf-8"))["dependencies"]
    named = {line.split()[0] for line in installed.versions()}
    assert named >= {*pinned, *node}


def test_without_node_its_peer_is_missing_with_a_reason(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(installed.Missing, match="no node on PATH"):
        installed.node()


def test_the_page_of_another_benchmark_stays_as_it_is(tmp_path):
    before = report.RESULTS.read_text(encoding="utf-8")
    page = tmp_path / "page.md"
    report.write("Other", [], "Valkey", 1.0, path=page, command="make other", notes=["A note."])
    text = page.read_text(encoding="utf-8")
    assert "`make other`" in text
    assert "A note." in text.splitlines()
    assert report.RESULTS.read_text(encoding="utf-8") == before


def test_the_page_has_no_empty_columns_and_one_line_for_each_contender():
    assert report.render_table([Row("fire", 250.0, note="busy"), Row("get", 900.0)]) == [
        "|  | figure |  |", "| --- | ---: | --- |", "| fire | 250 /s | busy |", "| get | 900 /s |  |",
    ]  # fmt: skip
    grid = report.render_table([Row("a: one", 250.0), Row("a: four", 500.0, {"one": 2.0}), Row("b: one", 300.0)])
    assert grid[0] == "|  | one | four |"
    assert grid[2:] == ["| a | 250 /s | 500 /s, 2.00 x one |", "| b | 300 /s |  |"]


def test_the_parts_that_measure_one_worker_process_share_a_table():
    sections = [
        Section(throughput.TITLE, [Row("Huey", 1.0), Row("RQ", 2.0)], "CPU."),
        Section(processes.TITLE, [Row("Huey: 1 process", 1.0)]),
        Section(latency.TITLE, [Row("Huey: p50", 9.0, unit="ms")], "Jobs."),
    ]
    merged, other = merge_sections(sections)
    assert (other, merged.note) == (sections[1], "CPU. Jobs.")
    assert report.render_table(merged.rows)[2:] == ["| Huey | 1.0 /s | 9.0 ms |", "| RQ | 2.0 /s |  |"]


def test_the_page_lists_the_aims_that_were_missed(tmp_path):
    page = tmp_path / "page.md"
    aims = [report.Aim("fire", 1.0, 2.0), report.Aim("get", 3.0, 2.0)]
    report.write("Other", [Section("Calls", [], aims=aims)], "Valkey", 1.0, path=page, command="make other")
    assert page.read_text(encoding="utf-8").splitlines()[-5:] == [
        "1 of 2 reached.", "", "Missed:", "", "- get: 2.00, aim 3",
    ]  # fmt: skip


@pytest.fixture
def own_stage(tmp_path):
    """On a server of this test's own: the benchmark empties its server."""
    with Server(tmp_path / "server", persistent=False) as server:
        stage = Stage(server.url)
        yield stage
        stage.close()


@pytest.mark.redis
def test_what_our_worker_does_is_counted_and_every_instance_moves(own_stage):
    contender = ours()
    own_stage.clear(contender)
    own_stage.produce(contender, "many", 20)
    assert own_stage.open(contender) == 20
    with own_stage.worker(contender, 20) as worker:
        found = worker.stamps()
        own_stage.wait_finished(contender, 20)
        assert worker.cpu() > 0
    assert len(found.jobs) == 20


@pytest.mark.redis
def test_a_job_carries_the_moment_it_was_sent(own_stage):
    contender = ours()
    own_stage.clear(contender)
    with own_stage.worker(contender, 2) as worker:
        own_stage.produce(contender, "paced", 2, 1)
        found = worker.stamps()
    assert all(0 < started - sent < 60e9 for started, sent in found.jobs)


@pytest.mark.redis
def test_the_slow_job_is_the_one_that_says_so(own_stage):
    contender = ours()
    own_stage.clear(contender)
    own_stage.produce(contender, "mixed", 10, 0.01)
    with own_stage.worker(contender, 11) as worker:
        found = worker.stamps()
    assert [noted for _, noted in found.jobs].count(SLOW) == 1
    assert len(found.fast) == 10


@pytest.mark.redis
def test_an_instance_that_did_not_move_stops_the_run(own_stage):
    contender = ours()
    own_stage.clear(contender)
    with pytest.raises(RuntimeError, match="0 of 1 instances have moved"):
        own_stage.wait_finished(contender, 1)


@pytest.mark.redis
def test_clearing_leaves_only_the_machine(own_stage):
    contender = ours()
    own_stage.clear(contender)
    own_stage.produce(contender, "many", 3)
    own_stage.clear(contender)
    assert own_stage.open(contender) == 0
    assert own_stage.client.keys(f"{machine.PREFIX}*:i:*") == []


@pytest.mark.redis
def test_commands_sent_leave_out_what_functions_run(own_stage):
    contender = ours()
    own_stage.clear(contender)
    with idle.Sent(own_stage.url) as sent:
        own_stage.client.ping()
        own_stage.client.fcall("sb_create", 1, f"{machine.PREFIX}{{{machine.NAME}:0}}", "one")
        own_stage.client.echo("last")
        sent.wait(3)
    assert sent.count == 3


@pytest.mark.redis
def test_a_worker_that_cannot_start_is_an_error_with_its_own_words(own_stage):
    broken = Contender("broken", 1, ("sh", "-c", "echo no such thing; exit 3"), (), contenders.ROOT, ())
    with own_stage.worker(broken, 1) as worker, pytest.raises(RuntimeError, match="no such thing"):
        worker.stamps()


@pytest.mark.redis
def test_a_peer_that_does_not_work_here_is_left_out_with_its_own_words(own_stage):
    words = ("sh", "-c", "echo no such broker; exit 3")
    broken = Contender("Peer", 1, words, ("true",), contenders.ROOT, ())
    found, missing = trial.trial(own_stage, [broken])
    assert found == []
    assert missing[0].startswith("Peer left out: ")
    assert "no such broker" in missing[0]


@pytest.mark.redis
def test_our_own_worker_is_never_left_out(own_stage):
    broken = replace(ours(), work=("sh", "-c", "exit 3"))
    with pytest.raises(RuntimeError, match="did not do all its jobs"):
        trial.trial(own_stage, [broken])


@pytest.mark.redis
def test_a_long_queue_is_taken_from_before_it_is_worked_off(own_stage):
    section = million.measure(own_stage, [ours()], 2000)
    assert [row.title.rpartition(": ")[2] for row in section.rows] == [
        "the first 100",
        "the last 100",
        "all",
        "a take of 100 with 1,000 waiting",
        "a take of 100 with 2,000 waiting",
    ]
    assert all(row.rate > 0 for row in section.rows)
    assert list(section.rows[-1].ratios) == ["with 1,000 waiting"]


@pytest.mark.redis
def test_several_processes_work_off_one_queue(own_stage):
    section = processes.measure(own_stage, [ours()], 0.02, 1)
    one, four = section.rows
    assert [one.title.rpartition(": ")[2], four.title.rpartition(": ")[2]] == ["1 process", "4 processes"]
    assert list(four.ratios) == ["one process"]
    assert one.rate > 0
    assert four.rate > 0
