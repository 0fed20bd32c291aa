"""Schedules that are declared: in the module ``schedules`` of an app, or in the definition of a machine.

::

    from machines.schedules import declare       # orders/schedules.py

    declare({"name": "nightly-report", "when": {"cron": "30 2 * * *"}, "zone": "Europe/Zurich",
             "what": {"do": "enqueue", "machine": "report", "src": "make_report"}})

Workers make them when they start; of two releases the worker that started last decides. A schedule that its module or
the current definition no longer declares is removed.
"""

import logging
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from machines.audit.redaction import find_named
from machines.catalog import submissions
from machines.engine import Engine
from machines.engine.definitions import CompiledDefinition, make_finding
from machines.engine.definitions import Finding as DefinitionFinding
from machines.engine.errors import EngineUnavailable, SignalboxError

from . import document as documents
from . import targets
from .errors import Finding, InvalidSchedule
from .schedules import Schedules

log = logging.getLogger(__name__)

MODULE = "schedules"
_declared: dict[str, tuple[str, Mapping[str, Any]]] = {}


@dataclass(slots=True)
class SyncReport:
    """Names of schedules: made or changed, left as they were, removed; and those that were refused, with the error."""

    put: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: dict[str, SignalboxError] = field(default_factory=dict)


def declare(document: Mapping[str, Any]) -> None:
    """Declare a schedule; the module that calls this is its source. Raises InvalidSchedule, also for a name that
    another module of this process declares."""
    schedule = documents.read(document)
    module = str(sys._getframe(1).f_globals.get("__name__", ""))
    other, _ = _declared.get(schedule.name, (module, {}))
    if other != module:
        raise InvalidSchedule(schedule.name, [Finding("name", f"is declared in {other} already", "another name")])
    _declared[schedule.name] = (module, document)


def discover() -> dict[str, list[Mapping[str, Any]]]:
    """Import the modules ``schedules`` of the installed apps; return each module with what it declares."""
    from django.apps import apps
    from django.utils.module_loading import autodiscover_modules

    autodiscover_modules(MODULE)
    named = (f"{config.name}.{MODULE}" for config in apps.get_app_configs())
    found: dict[str, list[Mapping[str, Any]]] = {module: [] for module in named if module in sys.modules}
    for module, document in _declared.values():
        found.setdefault(module, []).append(document)
    return found


def source_of(machine: str) -> str:
    """Return the source of the schedules of a machine's definition."""
    return f"the definition of {machine}"


def list_defined(machine: str, definition: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the schedules of a definition: each is called ``<machine>.<name>``, and acts on that machine."""
    return [
        {**given, "name": f"{machine}.{given['name']}", "what": {**given["what"], "machine": machine}}
        for given in definition.get("schedules") or []
    ]


def check_defined(compiled: CompiledDefinition) -> list[DefinitionFinding]:
    """Find what does not fit in the schedules of a sound definition, before it is published."""
    if any(finding.is_error for finding in compiled.findings) or not compiled.source.get("schedules"):
        return []
    machine, found = str(compiled.source["id"]), []
    for number, document in enumerate(list_defined(machine, compiled.source)):
        own = compiled.source["schedules"][number]["what"].get("machine", machine)
        findings = [Finding("what.machine", f"is {own!r}", f"leave it out: it is {machine}")] if own != machine else []
        try:
            schedule = documents.read(document)
            findings += [*targets.check_reserved(schedule), *targets.check_event(schedule, compiled.outline)]
        except InvalidSchedule as error:
            findings += error.findings
        found += _find_readable(compiled, number)
        found += [
            make_finding("SB126", f"schedules[{number}].{one.path}".rstrip("."), one.message, one.hint)
            for one in findings
        ]
    return found


def _find_readable(compiled: CompiledDefinition, number: int) -> list[DefinitionFinding]:
    """Find the values of encrypted fields that a schedule of a definition would keep readable."""
    encrypted = compiled.program.get("sensitive", {}).get("encrypted", {})
    what = compiled.source["schedules"][number]["what"]
    hint = "make the schedule on its page or in a module of an app: there it is stored encrypted"
    return [
        make_finding(
            "SB128", f"schedules[{number}].what.{part}", f"the encrypted field {field!r} stands readable here", hint
        )
        for part, given in what.items()
        for field in sorted(encrypted)
        if any(value is not None for value in find_named(given, frozenset({field})))
    ]


def connect() -> None:
    """Have publishing check and make the schedules of definitions."""
    for listed, function in ((submissions.checks, check_defined), (submissions.followers, sync_definition)):
        if function not in listed:
            listed.append(function)


def sync_definition(engine: Engine, machine: str) -> None:
    """Make the schedules of a machine's current version. What is refused is logged. Raises EngineUnavailable."""
    report = sync(engine, list_defined(machine, engine.definition(machine)), source_of(machine))
    for error in report.refused.values():
        log.error("%s", error)


def sync(engine: Engine, declared: Iterable[Mapping[str, Any]], source: str) -> SyncReport:
    """Make the schedules of a source what is declared. One that does not fit is left as it was. Raises
    EngineUnavailable."""
    schedules, report = Schedules(engine), SyncReport()
    before = {row.name: row.revision for row in schedules.find(partial=False) if row.source == source}
    names = set()
    for document in declared:
        name = str(document.get("name"))
        names.add(name)
        try:
            row = schedules.put(document, source=source, reason=f"declared in {source}")
        except EngineUnavailable:
            raise
        except SignalboxError as error:
            report.refused[name] = error
            continue
        (report.unchanged if before.get(name) == row.revision else report.put).append(name)
    for name in sorted(set(before) - names):
        schedules.remove(name, source=source, reason=f"no longer declared in {source}")
        report.removed.append(name)
    return report


def sync_code(engine: Engine) -> SyncReport:
    """Make the schedules of the apps. Raises EngineUnavailable, and what importing their modules raises."""
    report = SyncReport()
    for module, declared in discover().items():
        one = sync(engine, declared, module)
        report.put += one.put
        report.unchanged += one.unchanged
        report.removed += one.removed
        report.refused |= one.refused
    return report


class Declarations:
    """A duty of a worker: makes the schedules of the apps when the worker has started, and sends no command afterwards.
    Those that were refused, as where a machine is not published yet, are tried again."""

    AGAIN = 60.0  # seconds
    DONE = 86400.0

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._done = False
        self._logged: set[str] = set()

    def run_once(self) -> bool:
        """Make them; there is never more to do at once: False."""
        if not self._done:
            report = sync_code(self._engine)
            self._done = not report.refused
            for name in (*report.put, *report.removed):
                log.info("schedule %s: %s", name, "removed" if name in report.removed else "made as it is declared")
            for error in report.refused.values():
                if str(error) not in self._logged:
                    log.error("%s", error)
                    self._logged.add(str(error))
        return False

    def pause(self) -> float:
        return self.DONE if self._done else self.AGAIN
