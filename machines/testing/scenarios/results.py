"""Results of scenarios as text, and as JUnit XML for a CI server."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from machines.catalog.definition_files import name_path
from machines.catalog.editing import runs
from machines.engine import SignalboxError
from machines.testing.clock import read_duration

from .document import FAILED, Scenario, When, expand, find_target
from .runner import Result

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def format_result(result: Result) -> str:
    """Format a result: a line, and for a failure all that is known of it."""
    where = f"{name_path(result.file)}: " if result.file is not None else ""
    head = f"{'passed' if result.passed else 'FAILED'}  {where}{result.scenario.name}"
    if result.failure is None:
        return head
    path = find_link(result.scenario)
    lines = [*result.failure.text.splitlines(), *([f"try it: {path}"] if path else [])]
    return "\n".join([head, *(f"    {line}" for line in lines)])


def find_link(scenario: Scenario) -> str:
    """Return the path that opens a scenario in the simulator; empty for one that the simulator cannot play, such as one
    of several instances."""
    given = scenario.given
    whens = [*given.get("events", ()), *(step.when for step in scenario.steps if step.when is not None)]
    steps = [_convert(when, scenario.machine) for when in whens]
    if None in steps:
        return ""
    try:
        return runs.link(scenario.machine, None, steps, given.get("data"))
    except SignalboxError:  # it is too long, or not meant to make sense
        return ""


def _convert(when: When, machine: str) -> dict[str, Any] | None:
    """Convert what happens to an input of a simulation; None for what has none."""
    if "after" in when:
        return {"advance": read_duration(when["after"])}
    if find_target(when) not in ("", machine):
        return None
    if "failed" in when:
        failed = expand(when["failed"], "error")
        kind = {"kind": failed["kind"]} if "kind" in failed else {}
        return None if failed.get("retry") else {"job": when["job"], "failed": failed.get("error", FAILED)} | kind
    return {key: when[key] for key in ("job", "done", "event", "payload", "groups") if key in when}


def format_summary(results: Sequence[Result]) -> str:
    """Format how many scenarios passed and failed, and how long they took."""
    failed = sum(not result.passed for result in results)
    count = f"{len(results)} scenario{'' if len(results) == 1 else 's'}"
    return f"{count}: {len(results) - failed} passed, {failed} failed, in {sum(one.seconds for one in results):.1f} s"


def format_junit(results: Iterable[Result]) -> str:
    """Format results as JUnit XML: a suite for each file, a case for each scenario."""
    root = ElementTree.Element("testsuites", name="machine test")
    suites: dict[Path | None, list[Result]] = {}
    for result in results:
        suites.setdefault(result.file, []).append(result)
    for file, of_file in suites.items():
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_clean(name_path(file)) if file is not None else of_file[0].scenario.machine,
            tests=str(len(of_file)),
            failures=str(sum(not one.passed for one in of_file)),
            errors="0",
            skipped="0",
            time=f"{sum(one.seconds for one in of_file):.3f}",
        )
        for one in of_file:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=one.scenario.machine,
                name=_clean(one.scenario.name),
                time=f"{one.seconds:.3f}",
            )
            if one.failure is not None:
                failed = ElementTree.SubElement(case, "failure", message=_clean(one.failure.message))
                failed.text = _clean(one.failure.text)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """Replace characters that XML 1.0 cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
