"""Files with definitions: which files of a folder are read, and what they hold, with lines for findings; and those
in the repository of a project: the folder ``statemachines/`` of each installed app."""

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from machines import formats
from machines.engine.definitions import CompiledDefinition, Finding, InvokeOutline, make_finding
from machines.engine.errors import DefinitionError
from machines.formats.text import describe_unreadable

from . import submissions
from .builtin_machines import NAMES as BUILT_IN
from .editing.places import read_places
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
        return self.submission.name

    def describe(self, finding: Finding) -> str:
        """Return a finding with the file, and the line that it is about where that is known."""
        if at := _LINE.fullmatch(finding.path):
            hint = f"; {finding.hint}" if finding.hint else ""
            return f"{name_path(self.path)}:{at[1]}:{at[2]}: {finding.code} {finding.message}{hint}"
        has_lines = self.submission.format in WITH_LINES
        line = read_places(self.text, "yaml").find_line(finding.path) if has_lines else 0
        return f"{name_path(self.path)}{f':{line}' if line else ''}: {finding}"


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


FOLDER = "statemachines"


@dataclass(frozen=True, slots=True)
class AppFile:
    """A file of an app. ``label``: the app's; ``name``: the path as notes of versions keep it, the same on every
    machine: ``shop/statemachines/order.yaml``."""

    label: str
    name: str
    file: DefinitionFile


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A machine that stands in several files, or in one and inside another one, or that comes with the product."""

    machine: str
    files: tuple[AppFile, ...]

    def __str__(self) -> str:
        where = " and ".join(name_path(one.file.path) for one in self.files)
        if len(self.files) == 1:
            return f"the machine {self.machine!r} comes with Signalbox, and {where} defines another one; rename it"
        return f"the machine {self.machine!r} stands in {where}; rename one of them, or remove a file"


@dataclass(frozen=True, slots=True)
class MissingHandler:
    """An invoke whose handler is not registered. ``nearest``: a registered name like it, or empty."""

    file: AppFile
    machine: str
    state: str
    src: str
    nearest: str

    def __str__(self) -> str:
        hint = f'; did you mean "{self.nearest}"?' if self.nearest else ""
        where = name_path(self.file.file.path)
        return f'{where}: state {self.state} of {self.machine} invokes "{self.src}", and no app has that handler{hint}'


def list_folders(label: str | None = None) -> list[tuple[str, Path]]:
    """List the label and the folder of each installed app that has one, in the order of INSTALLED_APPS; of one app with
    ``label``. Raises LookupError for an unknown label."""
    from django.apps import apps  # files are read without Django, too

    configs = [apps.get_app_config(label)] if label is not None else list(apps.get_app_configs())
    folders = [(config.label, Path(config.path) / FOLDER) for config in configs]
    return [(name, folder) for name, folder in folders if folder.is_dir()]


def read_files(label: str | None = None) -> list[AppFile]:
    """Read and check every file of the apps' folders; never raises but for an unknown label."""
    return [
        AppFile(name, path.relative_to(folder.parent.parent).as_posix(), read_file(path))
        for name, folder in list_folders(label)
        for path in find_files(folder)
    ]


def find_duplicates(files: Iterable[AppFile]) -> list[Duplicate]:
    """List the machines that stand in several places, also where one is embedded in another machine or comes with the
    product."""
    named: defaultdict[str, dict[Path, AppFile]] = defaultdict(dict)
    for one in files:
        compiled = one.file.submission.compiled
        for name in (one.file.name, *(compiled.along if compiled is not None else ())):
            if name:
                named[name][one.file.path] = one
    return [
        Duplicate(name, tuple(found.values()))
        for name, found in sorted(named.items())
        if len(found) > 1 or name in BUILT_IN
    ]


def has_jobs(one: AppFile) -> bool:
    """Tell whether a definition invokes handlers."""
    return any(True for _ in _list_invokes(one.file))


def find_missing_handlers(files: Iterable[AppFile], known: Iterable[str]) -> list[MissingHandler]:
    """List the invokes of handlers that are not among the ``known`` names."""
    names = set(known)
    found = []
    for one in files:
        for machine, state, invoke in _list_invokes(one.file):
            if invoke.src not in names:
                nearest = difflib.get_close_matches(invoke.src, sorted(names), 1)
                found.append(MissingHandler(one, machine, state, invoke.src, nearest[0] if nearest else ""))
    return found


def _list_invokes(file: DefinitionFile) -> Iterator[tuple[str, str, InvokeOutline]]:
    """List machine, state and invoke, of those invokes that are work for a handler."""
    compiled = file.submission.compiled
    for each in () if compiled is None else (compiled, *compiled.along.values()):
        for state in each.outline.states:
            for invoke in state.invokes:
                if invoke.src and not invoke.machine:
                    yield str(each.source["id"]), state.name, invoke


def sort_by_dependency(files: Iterable[AppFile]) -> list[AppFile]:
    """Sort files so that a machine comes after those that it sends to or invokes, as far as there is no circle; else by
    name."""
    named = {one.file.name: one for one in sorted(files, key=lambda one: one.file.name)}
    done: dict[str, AppFile] = {}
    open_names: set[str] = set()

    def visit(name: str) -> None:
        if name in done or name in open_names or name not in named:
            return
        open_names.add(name)
        compiled = named[name].file.submission.compiled
        for recipient in compiled.recipients if compiled is not None else ():
            visit(recipient.machine)
        done[name] = named[name]

    for name in named:
        visit(name)
    return list(done.values())
