"""The order of a bulk action, validated before any search."""

from __future__ import annotations

import inspect
import json
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any

from machines.access.transition_groups import Groups
from machines.engine import Engine, Permit, arguments, limits
from machines.engine.errors import BadInput

from .builtin_machine import BULK

WORK = ("retry", "skip", "cancel")
ACTIONS = ("fire", "force", "edit", "reset", *WORK, "suspend", "resume", "delete")
MAX_REASON = 900  # characters: what each history says has the bulk's id behind it
MAX_RATE = 10_000  # instances a second
OWN = frozenset(["self", "machine", "limit", "cursor", "newest", "now"])
FILTERS = frozenset(inspect.signature(Engine.find).parameters) - OWN
"""The terms of a filter: what ``Engine.find`` finds by."""


@dataclass(frozen=True, slots=True)
class Order:
    """``filter``: terms of ``Engine.find``; ``of``: the bulk whose failed instances are meant, in place of a filter.

    ``event`` and ``payload`` are for "fire", ``states`` for "force", ``changes`` for "edit" (None unsets), ``invoke``
    for the repairs of a job, with the ``result`` that "skip" goes on with. ``unchanged``: only instances nothing has
    happened to since they were frozen. ``rate``: instances a second at most, 0 for as fast as it goes. ``person``:
    whether a person ordered it, so that rules for people hold; ``groups``: theirs, None takes any transition.
    """

    machine: str
    action: str
    actor: str
    reason: str
    filter: dict[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    event: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    states: tuple[str, ...] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    invoke: str = ""
    result: Any = None
    unchanged: bool = False
    rate: int = 0
    of: str = ""
    groups: Groups = None
    person: bool = False

    def permit(self, second: str = "") -> Permit | None:
        """What the engine holds each step to; None for a program's order. ``second``: the person who approved it, if
        any. Orders of older releases do not say that a person gave them, but name their groups."""
        if not self.person and self.groups is None:
            return None
        permit = Permit(self.groups)
        return permit.approved(self.demanded, second) if second else permit

    @property
    def demanded(self) -> str:
        """The action, as definitions that ask a second person for it name it."""
        return f"fire:{self.event}" if self.action == "fire" else self.action

    @property
    def target(self) -> str:
        """The event, the states, the fields, or the invoke."""
        if self.action in ("fire", "edit"):
            return self.event or ", ".join(self.changes)
        return self.invoke if self.action in WORK else ", ".join(self.states)

    @property
    def asked(self) -> dict[str, Any]:
        """What the engine's repair of this name takes."""
        if self.action == "force":
            return {"state": list(self.states)}
        if self.action == "edit":
            return {"changes": self.changes}
        result = {"result": self.result} if self.action == "skip" else {}
        return {"invoke": self.invoke} | result if self.action in WORK else {}

    def check(self, engine: Engine) -> None:
        """Raises BadInput, BadPayload, UnknownMachine."""
        arguments.check_machine(self.machine)
        if self.machine == BULK:
            raise BadInput("a bulk action cannot run on bulk actions")
        if self.action not in ACTIONS:
            raise BadInput(f"a bulk can {', '.join(ACTIONS)}, not {self.action!r}")
        arguments.check_actor(self.actor)
        arguments.check_text("reason", arguments.require_reason(self.reason), MAX_REASON)
        arguments.check_between("rate", self.rate, 0, MAX_RATE)
        self._check_what(engine)
        if unknown := sorted(set(self.filter) - FILTERS):
            raise BadInput(f"unknown filter {', '.join(unknown)}; use {', '.join(sorted(FILTERS))}")
        engine.find(self.machine, **self.filter, limit=1)

    def _check_what(self, engine: Engine) -> None:
        if self.action == "fire":
            arguments.check_event(self.event)
            arguments.encode_fields("payload", self.payload, limits.MAX_PAYLOAD)
        elif self.action == "force":
            arguments.join_states(list(self.states))
        elif self.action == "edit":
            if not arguments.encode_fields("data", self.changes, limits.MAX_DATA):
                raise BadInput("no data field given")
        elif self.action in WORK and (why := limits.check_invoke_id(self.invoke)) is not None:
            raise BadInput(f"the invoke {why}", code="SB401")

    def facts(self) -> dict[str, Any]:
        """What everybody may see of it, as data of the instance: all but the payload."""
        names = ("machine", "action", "target", "filter", "reason", "actor", "rate", "unchanged", "of")
        return {name: getattr(self, name) for name in names}

    def encode(self) -> str:
        return json.dumps(
            asdict(self) | {"groups": None if self.groups is None else sorted(self.groups)}, separators=(",", ":")
        )

    @classmethod
    def decode(cls, text: str) -> Order:
        found = json.loads(text)
        groups = found.get("groups")
        found |= {"states": tuple(found["states"]), "groups": None if groups is None else frozenset(groups)}
        return cls(**found)
