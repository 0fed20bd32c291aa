"""Finds the handlers and queues that a definition names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .model import Machine, flatten_actions
from .report import Path


@dataclass(frozen=True, slots=True)
class WorkName:
    """The name of a handler or a queue, and where it stands."""

    name: str
    path: Path


def find_work_names(machine: Machine) -> tuple[WorkName, ...]:
    """Find the names in document order, without those of embedded machines."""
    return tuple(dict.fromkeys([*_list_enqueues(machine), *_list_invokes(machine), *_list_limits(machine)]))


def _list_enqueues(machine: Machine) -> Iterator[WorkName]:
    begun = () if machine.root else machine.start.actions
    for action in [*flatten_actions(begun), *(action for state in machine.states.values() for action in state.actions)]:
        if action.verb == "enqueue":
            yield from _list_names(action.src, action.name, action.path)


def _list_invokes(machine: Machine) -> Iterator[WorkName]:
    for state in machine.states.values():
        for invoke in state.invokes:
            if not invoke.is_machine:
                yield from _list_names(invoke.src, invoke.queue, invoke.path)


def _list_limits(machine: Machine) -> Iterator[WorkName]:
    for name in machine.limits:
        yield WorkName(name, ("queues", name))


def _list_names(src: str, queue: str, path: Path) -> Iterator[WorkName]:
    yield WorkName(src, (*path, "src"))
    if queue != src:
        yield WorkName(queue, (*path, "queue"))
