"""Markers of tests: which ones a test gets by its fixtures and its folder, and which are left out of a quick run.

``pytest --quick`` (``make test``) leaves the slow kinds out, and says at its end how many of each and how to run them;
``make test-all`` runs everything. A run in which every selected test is slow leaves nothing out:
``make test ARGS=tests/browser`` runs the tests of the browser.

In a run of several processes each of them starts with its share of the longest tests, so that none waits for the last
one of another at the end.
"""

from __future__ import annotations

import gc
import itertools
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

SLOW = {
    "faults": "real processes that are started, killed or cut off",
    "browser": "the real Chromium",
    "postgres": "a PostgreSQL server",
    "cluster": "a cluster of real servers",
    "second_redis": "Debian's Redis 7.0 beside the server of the run",
    "async_engine": "tests of Engine once more, with AsyncEngine",
    "hostile": "random, hostile and all possible input by the thousand",
    "matrix": "every address with every kind of account, every door with every rule",
    "packages": "a wheel and the site of docs that are built, and environments that the wheel is installed into",
}
FIXTURES = {
    "faults": {"start", "python", "demo", "service", "lasting_server", "own_stage", "apprise"},
    "browser": {"browser", "page", "chromium", "open_page"},
    "postgres": {"postgres_url"},
    "packages": {"wheel"},
    "cluster": {"nodes", "cluster"},
    "second_redis": {"other_redis_url"},
    "redis": {
        "redis_url", "other_redis_url", "own_server", "prefix", "site",
        "client", "admin_client", "async_client", "engine",
    },
}  # fmt: skip
"""Marker -> fixtures. A test that uses one of them gets the marker; one that gets none and states none is ``pure``."""
FOLDERS = {
    "faults": ("tests/faults/",),
    "hostile": (
        "tests/engine/definitions/checks/test_robustness.py",
        "tests/formats/test_hostile_texts.py",
        "tests/insight/test_oracle.py",
        "tests/security/fuzz/",
        "tests/security/permissions/test_permitted_properties.py",
        "tests/security/requests/test_bombs.py",
        "tests/security/requests/test_hostile.py",
        "tests/security/requests/test_injection.py",
        "tests/engine/interpreter/charts/test_reference.py",
        "tests/engine/interpreter/charts/test_sameness.py",
    ),
    "matrix": ("tests/security/matrix/",),
}
"""Marker -> folders and files whose tests all get it."""
KINDS = {*SLOW, *FIXTURES}
LONG = (
    "tests/installation/packages/test_versions.py",
    "tests/installation/packages/test_template.py",
    "tests/hosted/",
    "tests/cluster/",
    "tests/installation/settings/test_on_postgresql.py",
    "tests/installation/packages/test_extras.py",
    "tests/docs/test_site.py::test_the_site",
    "tests/deployment/test_recipe.py",
    "tests/browser/test_lost_connection.py",
    "tests/engine/interpreter/test_properties.py",
    "tests/worker/test_lease_helper.py",
    "tests/faults/test_batches.py",
    "tests/audit/test_chain_of_processes.py",
    "tests/engine/versions/migration/test_generated_pairs.py",
    "tests/approvals/test_version_rules.py",
    "tests/worker/execution/test_process.py::test_work_that_kills_its_worker_each_time_ends_dead",
    "tests/engine/versions/replay/test_replay_generated.py",
    "tests/security/fuzz/test_fuzz.py::test_nothing_breaks",
    "tests/worker/execution/test_process.py",
    "tests/browser/test_every_page.py::test_every_page",
    "tests/demo/test_demo.py",
    "tests/engine/compiled/test_agreement.py",
    "tests/integrations/binding/test_kills.py",
)
"""What takes longest, longest first: the start of the address of a test. A process runs its share of them first."""
TOGETHER = ("tests/hosted/", "tests/cluster/", "tests/deployment/test_recipe.py")
"""What starts servers for all of its tests: one process runs them, so that no other one starts these servers again."""
OUTPUT = "left_out"  # under which a worker process of pytest-xdist sends its counts
LEFT_OUT: pytest.StashKey[dict[str, int]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("signalbox")
    group.addoption("--quick", action="store_true", help=f"leave the slow tests out: {', '.join(SLOW)}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark all tests first, since ``-m`` selects by markers; leave the slow ones of the selected out."""
    for item in items:
        mark(item)
    result = yield
    if config.getoption("quick"):
        leave_out(config, items)
    if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
        spread_long(items, int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    return result


def pytest_collection() -> None:
    """Collect garbage not while tests are collected: each pass would read all that was found before."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect more rarely than Python does by itself, which takes a tenth of the time of tests of pages."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def mark(item: pytest.Item) -> None:
    """Add the markers that fixtures and folder call for; ``pure`` where no marker of a kind is there."""
    used = set(getattr(item, "fixturenames", ()))
    if callspec := getattr(item, "callspec", None):
        used -= set(callspec.params)  # a parameter that is called like a fixture is none
    found = [marker for marker, fixtures in FIXTURES.items() if used & fixtures]
    found += [marker for marker, folders in FOLDERS.items() if item.nodeid.startswith(folders)]
    for marker in found:
        item.add_marker(marker)
    if KINDS.isdisjoint(marker.name for marker in item.iter_markers()):
        item.add_marker("pure")


def spread_long(items: list[pytest.Item], processes: int) -> None:
    """Put a share of the longest tests at the start of each part, as ``--dist worksteal`` cuts parts to begin with."""
    found = {item: place for item in items if (place := place_among_long(item)) is not None}
    parts: dict[str, list[pytest.Item]] = {}
    for item in sorted(found, key=found.__getitem__):
        parts.setdefault(next((one for one in TOGETHER if item.nodeid.startswith(one)), item.nodeid), []).append(item)
    long = list(parts.values())
    rest = iter([item for item in items if item not in found])
    left, total = len(items), []
    for number in range(processes):
        size = left // (processes - number)
        share = [item for part in long[number::processes] for item in part]
        total += [*share, *itertools.islice(rest, max(0, size - len(share)))]
        left -= size
    items[:] = [*total, *rest]


def place_among_long(item: pytest.Item) -> int | None:
    """Where the test stands in LONG, if it does."""
    return next((place for place, start in enumerate(LONG) if item.nodeid.startswith(start)), None)


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the slow tests, unless all tests are."""
    slow = {item: kind for item in items if (kind := slow_kind(item))}
    if len(slow) == len(items):
        return
    config.stash[LEFT_OUT] = dict(Counter(slow.values()))
    config.hook.pytest_deselected(items=[*slow])
    items[:] = [item for item in items if item not in slow]


def slow_kind(item: pytest.Item) -> str:
    """The first kind that makes the test slow, or nothing."""
    names = {marker.name for marker in item.iter_markers()}
    return next((kind for kind in SLOW if kind in names), "")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts to the process that reports. Every worker process collects the same tests."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[OUTPUT] = session.config.stash.get(LEFT_OUT, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    found = getattr(node, "workeroutput", None) or {}
    if found.get(OUTPUT):
        node.config.stash[LEFT_OUT] = found[OUTPUT]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say on which further versions tests ran, and what did not run: by the reason that a test gave, and by the kind
    that a quick run leaves out."""
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name} {value}")
    reasons = Counter(reason(report) for report in terminalreporter.stats.get("skipped", ()))
    left_out = config.stash.get(LEFT_OUT, {})
    if not reasons and not left_out:
        return
    terminalreporter.section("not run")
    for words, count in reasons.most_common():
        terminalreporter.write_line(f"{count:6} skipped: {words}")
    for kind, count in left_out.items():
        terminalreporter.write_line(f"{count:6} {kind}: {SLOW[kind]}")
    if left_out:
        terminalreporter.write_line('`make test-all` runs everything; ARGS="-m browser" one kind of it.')


def reason(report: pytest.TestReport) -> str:
    """What a skipped test said, without its place."""
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return words.removeprefix("Skipped: ")
