"""Plays one case on the engine: publish, create, fire, with a clock of its own.

The clock stands still while steps follow each other, and moves on only when a case waits or when nothing is left to
do at this moment: then it goes to the next thing that is due. So a case of ten seconds takes no time, and two things
that are due at different moments never happen in the wrong order on a slow machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from machines.engine import DefinitionError, Engine, Instance, Refused, SignalboxError
from machines.engine.definitions.findings import Finding
from machines.formats import load

from . import waivers
from .result import Result, Status
from .suite import FAIL, Case, Names

LONGEST = 120_000  # ms a document may take to its verdict, by its own clock
ROUNDS = 20  # ticks at one moment, each of many messages: more is a document that never rests
TRAIL = 12  # states of a failed case that its reason shows
ID = "case"


class Failed(Exception):
    """The case is decided against us; the text says how."""


def play(case: Case, engine: Engine) -> Result:
    """The engine must be on a prefix of its own: everything it finds there belongs to the case."""
    started = time.monotonic()
    status, reason = _verdict(case, engine)
    return Result(case, status, reason, time.monotonic() - started)


def _verdict(case: Case, engine: Engine) -> tuple[Status, str]:
    if case.problem:
        return Status.FAILED, case.problem
    try:
        _Play(case, engine).run()
    except DefinitionError as error:
        return _refused(error.findings)
    except Failed as failed:
        return Status.FAILED, str(failed)
    except SignalboxError as error:
        return Status.FAILED, _line(f"{error.code} {type(error).__name__}: {error}")
    except Exception as error:  # whatever it is, the other cases are still played
        return Status.FAILED, _line(f"{type(error).__name__}: {error}")
    return Status.PASSED, ""


def _refused(findings: Iterable[Finding]) -> tuple[Status, str]:
    errors = [finding for finding in findings if finding.is_error]
    waiver = waivers.reason(errors)
    if waiver:
        return Status.WAIVED, waiver
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return Status.FAILED, _line(f"refused: {errors[0]}{more}")


def _line(text: str) -> str:
    return " ".join(text.split())[:400]


class _Play:
    def __init__(self, case: Case, engine: Engine) -> None:
        self.case = case
        self.engine = engine
        self.now = self.start = int(time.time() * 1000)
        self.due: int | None = None  # ms of the next deadline of any instance
        self.machine = ""

    def run(self) -> None:
        document = self.case.document
        definition = load(document.read_bytes(), format="scxml", base=document.parent)
        self.machine = self.engine.publish(definition).name
        self.engine.create(self.machine, ID, now=self.now)
        self._settle()
        if self.case.initial is None:
            self._until_verdict()
        else:
            self._steps(self.case.initial)

    def _steps(self, initial: Names) -> None:
        self._expect(initial, "at the start")
        for number, step in enumerate(self.case.steps, 1):
            if step.after:
                self._wait(step.after)
            self._fire(step.event, step.data)
            self._settle()
            self._expect(step.expected, f"after event {number} ({step.event})")

    def _fire(self, event: str, data: object) -> None:
        """An event nobody takes is thrown away; what fails inside a step is a failure of the case."""
        try:
            self.engine.fire(self.machine, ID, event, data, now=self.now)
        except Refused as refused:
            if refused.explanation.why == "error":
                raise Failed(f"{event} is refused: {refused.explanation.error}") from None

    def _expect(self, expected: Names, when: str) -> None:
        actual = frozenset(self._instance().configuration)
        if actual != expected:
            raise Failed(f"{when}: in {_shown(actual)}, expected {_shown(expected)}")

    def _until_verdict(self) -> None:
        while True:
            active = set(self._instance().configuration)
            if self.case.end in active:
                return
            if FAIL in active:
                raise Failed(f"ends in fail: {self._trail()}")
            if self.due is None:
                raise Failed(f"stays in {_shown(active)} with nothing left to happen: {self._trail()}")
            if self.due > self.start + LONGEST:
                raise Failed(f"no verdict within {LONGEST // 1000} s: {self._trail()}")
            self._move(self.due)

    def _wait(self, pause: int) -> None:
        end = self.now + pause
        while self.due is not None and self.due <= end:
            self._move(self.due)
        self.now = end

    def _move(self, due: int) -> None:
        """To the next moment, which is later than this one even when something due now is stuck."""
        self.now = max(due, self.now + 1)
        self._settle()

    def _settle(self) -> None:
        """Fire and deliver all that is due at this moment, and learn when the next is."""
        for _ in range(ROUNDS):
            moved = [self.engine.advance(machine, now=self.now) for machine in self.engine.machines()]
            self.due = min((due for _, due in moved if due is not None), default=None)
            if not any(count for count, _ in moved):
                return
        raise Failed(f"still busy after {ROUNDS} rounds at one moment: {self._trail()}")

    def _instance(self) -> Instance:
        return self.engine.get(self.machine, ID)

    def _trail(self) -> str:
        """The events it took and the states they led to, as its history has them."""
        steps = reversed(self.engine.history(self.machine, ID, limit=TRAIL))
        return " → ".join(f"{step.event} → {'+'.join(step.configuration)}" for step in steps)


def _shown(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no state"
