"""Scenario files as tests of pytest: a module for each file, an item for each scenario."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from machines.testing import fixtures
from machines.testing.django_binding import list_app_folders
from machines.testing.fixtures import find_server

from . import files
from .document import Scenario, ScenarioFile
from .runner import Definitions, Failure, open_sandbox, run_scenario


class ScenarioFailed(Exception):
    """Carries how a scenario failed to the report of pytest."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ScenarioModule(pytest.File):
    """A scenario file."""

    def collect(self) -> Iterator[ScenarioItem]:
        folders = [*self.config.getini("signalbox_definitions"), *list_app_folders()]
        more = [path for folder in folders if Path(folder).is_dir() for path in files.list_definitions(Path(folder))]
        found = files.collect([self.path], more)
        if found.problems:
            raise self.CollectError("\n".join(found.problems))
        for file in found.files:
            for scenario in file.scenarios:
                yield ScenarioItem.from_parent(
                    self, name=scenario.name, file=file, scenario=scenario, definitions=found.definitions
                )


class ScenarioItem(pytest.Item):
    """One scenario."""

    def __init__(self, *, file: ScenarioFile, scenario: Scenario, definitions: Definitions, **options: Any) -> None:
        super().__init__(**options)
        self._file, self._scenario, self._definitions = file, scenario, definitions

    def runtest(self) -> None:
        url = find_server(self.config.getini("signalbox_url"))
        with open_sandbox(url, self._definitions, self._file.machine) as sandbox:
            failure = run_scenario(sandbox, self._scenario, self._definitions[self._file.machine].outline)
            if self.config.getoption("--signalbox-coverage"):
                fixtures.note(self.config, sandbox.kit)
        if failure is not None:
            raise ScenarioFailed(failure)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, ScenarioFailed):
            failure = excinfo.value.failure
            return f"{self.path}:{failure.line}: scenario {self.name}\n{failure.text}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, max(0, self._scenario.line - 1), f"scenario {self.name}"
