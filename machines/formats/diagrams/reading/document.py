"""Reads a whole diagram: its name, its states, its arrows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from machines.engine.definitions.findings import Finding
from machines.formats.messages import machine_name
from machines.formats.report import Report
from machines.formats.text import stem

from . import forks, lines
from .chart import Builder
from .definition import Definition
from .statements import parse

NAMELESS = "machine"
_HEAD = re.compile(r"^\s*(?:```+\s*\w+\s*)?stateDiagram", re.MULTILINE)


def read(text: str, base: str | Path | None = None) -> tuple[Any, list[Finding]]:
    """Return the definition and all findings. Next to an error, the definition is a draft to continue from."""
    report = Report()
    source = lines.read(text, report)
    chart = Builder(report).build(parse(source, report))
    broken = any(one.is_error for one in report.findings)
    if not broken and not _HEAD.search(text):
        report.add("SB131", "", "no state diagram of Mermaid", "the first line is: stateDiagram-v2")
    elif not broken and not chart.root.children:
        report.add("SB131", "", "no states in this Mermaid diagram", "write: [*] --> first")
    found = report.findings
    if not chart.root.children or any(one.code in ("SB111", "SB131") for one in found):
        return None, found
    forks.resolve(chart, report)
    name = machine_name(source.title) or stem(base)
    if not name:
        report.add("SB223", "id", "the diagram has no title", f"it is {NAMELESS!r} until you name it")
    return Definition(chart, report).build(name or NAMELESS), report.findings
