"""Files with definitions: which files of a folder are read, and what they hold, with lines for findings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from machines import formats
from machines.engine.definitions import CompiledDefinition, Finding, make_finding, render
from machines.engine.errors import DefinitionError
from machines.formats.text import describe_unreadable
from machines.formats.yaml_nodes import LOADER

from . import submissions
from .submissions import Submission

KEPT = 256  # compiled files in memory
_MAKER = re.compile(r"\b(?:createMachine|Machine)\s*\(")
_LINE = re.compile(r"line (\d+), column (\d+)")
IGNORED = ("__pycache__", "node_modules", "tests")
# Formats whose findings have paths into the file, if it is JSON or YAML.
WITH_LINES = ("json", "yaml", "xstate", "sm")


@dataclass(frozen=True, slots=True)
class DefinitionFile:
    """A file, and what it holds. ``text`` is empty where it could not be read."""

    path: Path
    submission: Submission
    text: str = ""

    @property
    def name(self) -> str:
        """Return the name of its machine; empty where there is none."""
        name = (self.submission.definition or {}).get("id")
        return name if isinstance(name, str) else ""

    def describe(self, finding: Finding) -> str:
        """Return a finding with the file, and the line that it is about where that is known."""
        if at := _LINE.fullmatch(finding.path):
            hint = f"; {finding.hint}" if finding.hint else ""
            return f"{name_path(self.path)}:{at[1]}:{at[2]}: {finding.code} {finding.message}{hint}"
        line = find_line(self.text, finding.path) if self.submission.format in WITH_LINES else None
        where = name_path(self.path) if line is None else f"{name_path(self.path)}:{line}"
        return f"{where}: {finding}"


def name_path(path: Path) -> str:
    """Return a path as messages name it: relative to the working folder where it is below that."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def find_files(folder: Path) -> list[Path]:
    """List the files of a folder, and of those below it, whose ending names a format of definitions that can be read.
    Left out are diagrams, names that begin with ``_`` or ``.`` (parts that other files include), and folders named
    ``tests``, which hold scenarios."""
    return sorted(_walk(folder))


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(("_", ".")) or path.name in IGNORED:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        elif formats.format_of(path.name, "") in formats.READERS.keys() - formats.DIAGRAMS:
            yield path


def read_file(path: Path) -> DefinitionFile:
    """Read and check one file; never raises. A file that cannot be opened has a finding that says why."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        return DefinitionFile(path, Submission(None, (describe_unreadable(error),)))
    text = raw.decode(errors="replace")
    submission = submissions.read(raw, name=path.name, base=path)
    return DefinitionFile(path, _mention_others(submission, text), text)


def _mention_others(submission: Submission, text: str) -> Submission:
    """Say that a file holds more machines than the one that is read."""
    makers = len(_MAKER.findall(text)) if submission.format == "xstate" else 0
    if makers > 1:
        message = f"the script makes {makers} machines, and the first one is read"
        more = make_finding("SB212", "", message, "give each machine a file of its own")
        return replace(submission, findings=(*submission.findings, more))
    if submission.definition is None and text.lstrip("\ufeff \t\r\n").startswith("["):
        hint = "a file holds one machine: give each a file of its own"
        return replace(submission, findings=tuple(replace(found, hint=hint) for found in submission.findings))
    return submission


def compile_file(path: Path) -> CompiledDefinition:
    """Return the compiled definition of a file, from memory where the file is the same as before. Raises
    DefinitionError, whose note names the file and lines, FileNotFoundError."""
    status = path.stat()
    return _compile(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=KEPT)
def _compile(path: Path, changed: int, size: int) -> CompiledDefinition:
    file = read_file(path)
    if file.submission.compiled is None:
        error = DefinitionError(list(file.submission.findings))
        error.add_note("\n".join(file.describe(finding) for finding in file.submission.errors))
        raise error
    return file.submission.compiled


def find_line(text: str, path: str) -> int | None:
    """Return the line of a text in JSON or YAML that a finding's path leads to, or that of the nearest value around it;
    None where the text is neither, or the path names a line itself."""
    if not path or path.startswith("line "):
        return None
    lines = list_lines(text)
    found = [where for where in lines if path == where or path.startswith((f"{where}.", f"{where}["))]
    return lines[max(found, key=len)] if found else None


def list_lines(text: str) -> dict[str, int]:
    """Return the line of each value of a text in JSON or YAML by its path; empty where the text is neither."""
    try:
        root = yaml.compose(text, Loader=LOADER)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return dict(_list_lines(root, ()))


def _list_lines(node: Any, path: tuple[Any, ...]) -> Iterator[tuple[str, int]]:
    """List the path of each value below a node with its line, from 1; of a member that of its key."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, getattr(key, "value", ""))
            yield render(inner), key.start_mark.line + 1
            yield from _list_lines(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield render((*path, index)), value.start_mark.line + 1
            yield from _list_lines(value, (*path, index))
