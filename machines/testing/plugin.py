"""The pytest plugin ``signalbox``: options and fixtures.

Every pytest run of an environment with Signalbox imports this module, so it imports pytest alone; what the fixtures
need is imported when a test asks for one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .kit import Signalbox


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "signalbox_url", "URL of a Redis or Valkey that runs, in place of a server for each test run", default=""
    )
    group = parser.getgroup("signalbox")
    group.addoption(
        "--signalbox-coverage",
        metavar="FILE",
        help="write which transitions and guards the tests covered, for `machine test --coverage --add FILE`",
    )
    parser.addini(
        "signalbox_definitions",
        "folders with definitions that every test with the fixture `signalbox` finds published",
        type="paths",
        default=[],
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect scenario files: those in the folder ``tests`` of a folder of definitions, and those that are named."""
    if file_path.suffix not in (".yaml", ".yml") or file_path.name.startswith(("_", ".")):
        return None
    folders = {folder.resolve() for folder in parent.config.getini("signalbox_definitions")}
    around = [each.parent for each in file_path.parents if each.name == "tests"]
    beside = any(each.name == "statemachines" or each.resolve() in folders for each in around)
    if not beside and not parent.session.isinitpath(file_path):
        return None
    from .scenarios.files import is_scenario_text

    if not is_scenario_text(file_path):
        return None
    from .scenarios.pytest_items import ScenarioModule

    return ScenarioModule.from_parent(parent, path=file_path)


@pytest.fixture(scope="session")
def signalbox_url(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of the server of this run, of each process of pytest-xdist its own: a Valkey that lives as long as
    the run, or the server that SIGNALBOX_TEST_URL or the option ``signalbox_url`` names."""
    from .fixtures import serve

    with serve(pytestconfig.getini("signalbox_url"), lambda: tmp_path_factory.mktemp("signalbox")) as url:
        yield url


@pytest.fixture
def signalbox(request: pytest.FixtureRequest, signalbox_url: str) -> Iterator[Signalbox]:
    """Yield an engine on keys of this test alone, with a clock that the test moves. See docs/testing.md."""
    from .kit import open_kit

    folders = request.config.getini("signalbox_definitions")
    with open_kit(signalbox_url, folders=folders, base=request.path.parent, root=request.config.rootpath) as kit:
        yield kit
        if request.config.getoption("--signalbox-coverage"):
            from .fixtures import note

            note(request.config, kit)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Say of a row's state why it is not what a test without the fixture expects."""
    bound = sys.modules.get("machines.integrations.binding.bound_state")
    state = next((one for one in (left, right) if bound is not None and isinstance(one, bound.BoundState)), None)
    if state is None:
        return None
    from .assertions import explain_waiting

    lines = explain_waiting(state)
    return [f"{left!r} {op} {right!r}", *lines] if lines else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--signalbox-coverage"):
        from .fixtures import write

        write(session.config)


def pytest_testnodedown(node: Any) -> None:
    """Take over what a process of pytest-xdist covered."""
    if node.config.getoption("--signalbox-coverage"):
        from .fixtures import take_over

        take_over(node.config, getattr(node, "workeroutput", {}))


pytest_testnodedown = pytest.hookimpl(optionalhook=True)(pytest_testnodedown)
