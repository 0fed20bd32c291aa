"""Runs scenarios, each on keys of its own, in virtual time."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from machines.conf.testing_keys import remove_keys
from machines.engine import SignalboxError
from machines.engine.definitions import CompiledDefinition, Outline
from machines.testing.clock import Clock, ClockedEngine
from machines.testing.kit import Signalbox

from .document import Scenario, ScenarioFile, Step
from .expectations import explain, find_problems
from .sandbox import Happened, Impossible, Sandbox

Definitions = Mapping[str, CompiledDefinition]
Finish = Callable[[Signalbox], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """How a scenario failed. ``message``: the first line; ``text``: all, with the explanation and the history."""

    message: str
    text: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """How a scenario ended. ``failure``: None where it passed; ``seconds``: how long it took."""

    file: Path | None
    scenario: Scenario
    failure: Failure | None
    seconds: float

    @property
    def passed(self) -> bool:
        return self.failure is None


def run_files(
    url: str, files: Iterable[ScenarioFile], definitions: Definitions, finish: Finish | None = None
) -> Iterator[Result]:
    """Run the scenarios of files, one after the other. ``finish`` is called after each, before its keys are removed.
    Raises KeyError for a machine without a definition."""
    for file in files:
        for scenario in file.scenarios:
            begun = time.perf_counter()
            with open_sandbox(url, definitions, file.machine) as sandbox:
                failure = run_scenario(sandbox, scenario, definitions[file.machine].outline)
                if finish is not None:
                    finish(sandbox.kit)
            yield Result(file.path, scenario, failure, time.perf_counter() - begun)


@contextlib.contextmanager
def open_sandbox(url: str, definitions: Definitions, machine: str) -> Iterator[Sandbox]:
    """Publish a machine, and those that it talks to, on keys that are removed afterwards."""
    prefix = f"t{secrets.token_hex(6)}:"
    engine = ClockedEngine.at(Clock(), url, prefix=prefix)
    try:
        for name in list_involved(definitions, machine):
            engine.publish(definitions[name])
        yield Sandbox(Signalbox(engine, url, [Path.cwd()]))
    finally:
        engine.client.close()
        remove_keys(url, prefix)


def list_involved(definitions: Definitions, machine: str) -> list[str]:
    """List a machine and those that it sends to or invokes, directly or not, as far as definitions are given."""
    found: dict[str, None] = {}
    waiting = [machine]
    while waiting:
        name = waiting.pop()
        if name not in found and name in definitions:
            found[name] = None
            waiting += [one.machine for one in definitions[name].recipients if one.machine]
    return list(found)


def run_scenario(sandbox: Sandbox, scenario: Scenario, outline: Outline) -> Failure | None:
    """Run one scenario; return how it failed, or None."""
    try:
        happened = sandbox.start(scenario.machine, scenario.given)
    except (SignalboxError, Impossible, AssertionError) as error:
        code = f"{error.code} " if isinstance(error, SignalboxError) else ""
        message = f"the start that is given does not succeed: {code}{error}"
        return Failure(message.splitlines()[0], message, scenario.line)
    for number, step in enumerate(scenario.steps, 1):
        if failure := _run_step(sandbox, step, number, happened, outline):
            return failure
    return None


def _run_step(sandbox: Sandbox, step: Step, number: int, happened: Happened, outline: Outline) -> Failure | None:
    what = f"step {number}" + (f" (line {step.line})" if step.line else "")
    what += f", {step.when}" if step.when is not None else ""
    try:
        if step.when is not None:
            latest = sandbox.perform(step.when)
            happened.error, happened.transitions, happened.sent = latest.error, latest.transitions, latest.sent
        problems = find_problems(sandbox, step.then, happened, outline)
    except (Impossible, AssertionError, SignalboxError) as error:
        problems = [str(error)]
    if not problems:
        return None
    message = f"{what}: {problems[0].splitlines()[0]}"
    lines = [f"{what}: {problems[0]}", *(f"  and {one}" for one in problems[1:]), *explain(happened)]
    lines.append(sandbox.kit.describe(sandbox.machine, sandbox.id))
    return Failure(message, "\n".join(lines), step.line)
