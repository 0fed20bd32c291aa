"""What other parts of the product add to publishing. They register it when the app is ready."""

from __future__ import annotations

from collections.abc import Callable

from machines.engine import Engine
from machines.engine.definitions import CompiledDefinition, Finding

checks: list[Callable[[CompiledDefinition], list[Finding]]] = []
"""Find what does not fit in a definition beside what the engine finds."""
followers: list[Callable[[Engine, str], None]] = []
"""Called with the name of a machine that was published, or whose current version is another one."""


def find_more(compiled: CompiledDefinition) -> list[Finding]:
    return [finding for check in checks for finding in check(compiled)]


def follow(engine: Engine, machine: str) -> None:
    for follower in followers:
        follower(engine, machine)
