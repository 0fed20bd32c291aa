"""``make test`` leaves slow kinds of tests out, and says what and how to run it; ``make test-all`` runs everything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import selection
from tests.cases import for_each
from tests.installation.processes import ROOT

pytestmark = pytest.mark.faults
SAMPLES = """
import pytest

def test_plain(): pass

@pytest.mark.skip(reason="no moon tonight")
def test_skipped(): pass

@pytest.mark.browser
def test_browser(): pass

@pytest.mark.cluster
@pytest.mark.parametrize("number", [1, 2])
def test_cluster(number): pass
"""
OF_THIS_RUN = ("PYTEST_ADDOPTS", "PYTEST_XDIST")
TO_RUN_THEM = '`make test-all` runs everything; ARGS="-m browser" one kind of it.'


@pytest.fixture
def run(tmp_path: Path):
    """Runs the samples with these options; gives back what pytest wrote."""
    (tmp_path / "test_samples.py").write_text(SAMPLES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    pure\n    browser\n    cluster\n")

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "pytest", "-p", "tests.selection", "-p", "no:django", "-p", "no:cacheprovider"]
        env = {name: value for name, value in os.environ.items() if not name.startswith(OF_THIS_RUN)}
        env["PYTHONPATH"] = str(ROOT)
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, env=env, capture_output=True, text=True, check=True, timeout=200
        )
        return done.stdout

    return run


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_quick_run_says_what_did_not_run_and_how_to_run_it(run, processes):
    written = run("--quick", "-n", processes)
    assert "1 passed, 1 skipped" in written
    assert "     1 skipped: no moon tonight" in written
    assert "     1 browser: the real Chromium" in written
    assert "     2 cluster: a cluster of real servers" in written
    assert TO_RUN_THEM in written


def test_a_whole_run_leaves_nothing_out(run):
    written = run()
    assert "4 passed, 1 skipped" in written
    assert TO_RUN_THEM not in written


def test_where_only_slow_tests_are_asked_for_they_run(run):
    assert "1 passed" in run("--quick", "-m", "browser")


def test_every_slow_kind_is_a_marker(pytestconfig):
    known = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert set(selection.SLOW) <= known


@for_each("place", [place for places in selection.FOLDERS.values() for place in places])
def test_every_folder_of_a_slow_kind_is_there(place):
    assert (ROOT / place).exists()


@for_each("start", selection.LONG)
def test_every_long_test_is_there(start):
    path, _, name = start.partition("::")
    place = ROOT / path
    assert place.is_dir() or f"def {name}" in place.read_text(encoding="utf-8")


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_each_process_starts_with_its_share_of_the_longest(processes):
    class Test(NamedTuple):
        nodeid: str

    short = [Test(f"tests/engine/test_many.py::test_{number}") for number in range(43)]
    first, second = [one for one in selection.LONG if one not in selection.TOGETHER][:2]
    long = [Test(f"{second}[{number}]") for number in range(4)] + [Test(f"{first}::test_a")]
    tests = short + long
    selection.spread_long(tests, processes)
    starts = [len(tests) * number // processes for number in range(processes)]
    assert tests[0] == long[-1]
    assert {tests[start] for start in starts} <= set(long)
    assert [test for test in tests if test in short] == short
    assert len(tests) == len({*short, *long})


def test_tests_that_share_servers_stay_in_one_process():
    class Test(NamedTuple):
        nodeid: str

    together = [Test(f"{selection.TOGETHER[-1]}::test_{number}") for number in range(4)]
    others = [Test(f"{selection.LONG[-1]}::test_{number}") for number in range(4)]
    short = [Test(f"tests/engine/test_many.py::test_{number}") for number in range(40)]
    tests = [*short, *others, *together]
    selection.spread_long(tests, 2)
    assert tests[:4] == together
    assert tests[24] in others


def test_no_assertion_measures_time():
    """A machine that does other things as well takes longer. A deadline for what hangs is no measurement."""
    measured = re.compile(r"assert\b.*(monotonic|perf_counter|process_time|loop\.time)\(\) - |slowlog_get")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in (ROOT / "tests").rglob("*.py")
        if path.parent.name != "fuzz" and path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if measured.search(line)
    ]
    assert found == []
