"""Finds the machines that a definition sends to or invokes, as far as the definition tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from machines.engine.expressions import Node

from .model import Action, Machine, Value, flatten_actions
from .reading.document import read_sound_machine
from .report import Path, render

Kind = Literal["send", "invoke", "reply", "computed"]

_ADDRESS = "#_scxml_"


@dataclass(frozen=True, slots=True)
class Recipient:
    """A receiver. ``kind``: ``send`` or ``invoke`` of ``machine``; ``reply`` to the machine that sent the event, and
    ``computed`` for a name known only at run time: then ``machine`` is empty."""

    kind: Kind
    machine: str
    path: str


def find_recipients(definition: object) -> tuple[Recipient, ...]:
    """Find the receivers of a definition in document order, without the machine itself, its parent, its children and
    embedded machines. Definitions with errors are read as well."""
    machine = read_sound_machine(definition)
    return () if machine is None else find_machine_recipients(machine)


def find_machine_recipients(machine: Machine) -> tuple[Recipient, ...]:
    """Find the receivers of a machine that was read."""
    found = dict.fromkeys([*_sends(machine), *_invokes(machine)])
    return tuple(one for one in found if one.machine != machine.id)


def _sends(machine: Machine) -> Iterator[Recipient]:
    begun = () if machine.root else machine.start.actions
    for action in [*flatten_actions(begun), *(action for state in machine.states.values() for action in state.actions)]:
        if action.sending is not None and action.sending.to is not None:
            yield from _of_send(action, action.sending.to)


def _of_send(action: Action, to: Value) -> Iterator[Recipient]:
    for head in _heads(to.tree):
        if head is None or isinstance(head, _Reply):
            yield Recipient("computed" if head is None else "reply", "", render(action.path))
        elif head.startswith(_ADDRESS):
            name, slash, _ = head.removeprefix(_ADDRESS).partition("/")
            yield Recipient("send" if slash else "computed", name if slash else "", render(action.path))


def _invokes(machine: Machine) -> Iterator[Recipient]:
    for state in machine.states.values():
        for invoke in state.invokes:
            if invoke.computed is not None:
                yield from _of_computed(invoke.computed, invoke.path)
            elif invoke.is_machine:
                yield Recipient("invoke", invoke.machine, render((*invoke.path, "src")))


def _of_computed(value: Value, path: Path) -> Iterator[Recipient]:
    for head in _heads(value.tree):
        known = isinstance(head, str) and value.tree[0] in ("str", "if")
        kind: Kind = "invoke" if known else "computed"
        yield Recipient(kind, str(head) if known else "", render((*path, "src")))


class _Reply:
    """Stands for ``trigger.origin``, the sender of the event."""


def _heads(tree: Node) -> list[str | _Reply | None]:
    """Return what the text of an expression can begin with; None where nothing tells."""
    if tree[0] == "str":
        return [str(tree[1])]
    if tree[0] == "if":
        return [*_heads(tree[2]), *_heads(tree[3])]
    if tree[0] == "bin" and tree[1] == "+":
        return _heads(tree[2])
    if tree[0] == "obj":
        machine = next((part[1] for part in tree[1:] if part[0] == "machine"), None)
        return [f"{_ADDRESS}{machine[1]}/" if machine is not None and machine[0] == "str" else None]
    if tree == ["get", ["trigger"], ["str", "origin"]]:
        return [_Reply()]
    return [None]
