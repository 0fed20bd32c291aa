"""Coverage of machines by a run of pytest: added up over tests and processes, and written to a file at the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from machines.catalog.coverage import Collector, read

from .kit import Signalbox

KEY = pytest.StashKey[Collector]()
OUTPUT = "signalbox_coverage"  # what a process of pytest-xdist hands to the one that started it


def note(config: pytest.Config, kit: Signalbox) -> None:
    """Add what one test did, before its keys are removed."""
    config.stash.setdefault(KEY, Collector()).note_kit(kit)


def take_over(config: pytest.Config, output: Mapping[str, Any]) -> None:
    """Add what another process covered."""
    if OUTPUT in output:
        config.stash.setdefault(KEY, Collector()).add(read(output[OUTPUT]))


def write(config: pytest.Config) -> None:
    """Write the file; in a process of pytest-xdist, hand over to the one that started it."""
    text = config.stash.setdefault(KEY, Collector()).write()
    if hasattr(config, "workeroutput"):
        config.workeroutput[OUTPUT] = text
    else:
        Path(config.getoption("--signalbox-coverage")).write_text(text, encoding="utf-8")
