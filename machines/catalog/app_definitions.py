"""Definitions in the repository of a project: the folder ``statemachines/`` of each installed app."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.apps import apps

from machines.engine.definitions import InvokeOutline

from .builtin_machines import NAMES as BUILT_IN
from .definition_files import DefinitionFile, find_files, name_path, read_file

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
