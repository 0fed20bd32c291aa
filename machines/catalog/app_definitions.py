"""Definitions in the repository of a project: the folder ``statemachines/`` of each installed app."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from django.apps import apps

from .definition_files import DefinitionFile, find_files, read_file

FOLDER = "statemachines"


def list_folders(label: str | None = None) -> list[tuple[str, Path]]:
    """List the label and the folder of each installed app that has one, in the order of INSTALLED_APPS; of one app with
    ``label``. Raises LookupError for an unknown label."""
    configs = [apps.get_app_config(label)] if label is not None else list(apps.get_app_configs())
    folders = [(config.label, Path(config.path) / FOLDER) for config in configs]
    return [(name, folder) for name, folder in folders if folder.is_dir()]


def read_files(label: str | None = None) -> list[DefinitionFile]:
    """Read and check every file of the apps' folders."""
    return [read_file(path) for _, folder in list_folders(label) for path in find_files(folder)]


def find_duplicates(files: list[DefinitionFile]) -> dict[str, list[DefinitionFile]]:
    """Return name -> files, of the machines that stand in several files."""
    named: defaultdict[str, list[DefinitionFile]] = defaultdict(list)
    for file in files:
        if file.name:
            named[file.name].append(file)
    return {name: found for name, found in named.items() if len(found) > 1}
