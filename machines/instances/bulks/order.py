"""The order of a bulk action, validated before any search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import lru_cache
from typing import Any

from machines.catalog import builtin_machines
from machines.conf.encryption.ciphers import SecretUnreadable, Unreadable, decrypt, encrypt, has_key, renew
from machines.engine import Engine, MigrationPlan, Permit, arguments, limits
from machines.engine.errors import BadInput
from machines.engine.search.filters import SearchTerms
from machines.people.mirrors import is_mirror
from machines.people.transition_groups import Groups

BULK = "bulk"
"""The machine whose instances are bulk actions."""
WORK = ("retry", "skip", "cancel")
MIGRATE = "migrate"
ACTIONS = ("fire", "force", "edit", "reset", *WORK, "suspend", "resume", "delete", MIGRATE)
MAX_REASON = 900  # characters: what each history says has the bulk's id behind it
MAX_RATE = 10_000  # instances a second
MAX_CHOSEN = 200  # instances chosen one by one: the list stands in the data of the bulk
IDS = "ids"
PURPOSE = "bulk.arguments"
ARGUMENTS: dict[str, Any] = {"payload": {}, "changes": {}, "result": None}
"""What an order stores encrypted, with what it is where there is nothing to hide."""
FILTERS = frozenset(SearchTerms.__annotations__)
"""The terms of a filter: what ``Engine.find`` finds by. In place of these, ``ids`` lists chosen instances."""


def encrypt_filter(engine: Engine, machine: str, filter: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter with the values of encrypted fields as ciphertexts. Raises BadInput."""
    where = {"where": engine.encrypt_terms(machine, filter["where"])} if filter.get("where") else {}
    return {**filter, **where}


@lru_cache(maxsize=16)
def _read_plan(text: str) -> MigrationPlan:
    """Read a plan; kept, since each batch of a migration and each look at its page needs it."""
    return MigrationPlan.from_dict(json.loads(text))


@dataclass(frozen=True, slots=True)
class Order:
    """``filter``: terms of ``Engine.find``; ``of``: the bulk whose failed instances are meant, in place of a filter.

    ``event`` and ``payload`` are for "fire", ``states`` for "force", ``changes`` for "edit" (None unsets), ``invoke``
    for the repairs of a job, with the ``result`` that "skip" goes on with. ``unchanged``: only instances nothing has
    happened to since they were frozen. ``rate``: instances a second at most, 0 for as fast as it goes. ``person``:
    whether a person ordered it, so that rules for people hold; ``groups``: theirs, None takes any transition. ``plan``:
    for "migrate", the plan as ``MigrationPlan.as_dict`` returns it. ``unattended``: it runs once it is previewed,
    without a person who lets it, as a schedule has it; ``unreadable``: the key of payload, changes and result is gone.
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
    plan: dict[str, Any] = field(default_factory=dict)
    unattended: bool = False
    unreadable: bool = False

    def permit(self, second: str = "") -> Permit | None:
        """Return what the engine holds each step to; None for a program's order. ``second``: the person who approved
        it, if any."""
        if not self.person:
            return None
        permit = Permit(self.groups)
        return permit.approve(self.demanded, second) if second else permit

    @property
    def demanded(self) -> str:
        """The action, as definitions that ask a second person for it name it."""
        return f"fire:{self.event}" if self.action == "fire" else self.action

    @property
    def target(self) -> str:
        """The event, the states, the fields, the invoke, or the version."""
        if self.action == MIGRATE:
            plan = self.migration
            return f"to version {plan.to} by plan {plan.id}"
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

    @property
    def migration(self) -> MigrationPlan:
        """The plan of the order. Raises PlanError."""
        return _read_plan(json.dumps(self.plan))

    @property
    def has_arguments(self) -> bool:
        return any(getattr(self, name) != nothing for name, nothing in ARGUMENTS.items())

    def demand_readable(self) -> None:
        """Raise SecretUnreadable where the key of what it takes is gone."""
        if self.unreadable:
            raise SecretUnreadable(f"what a bulk action on {self.machine} takes")

    def check(self, engine: Engine) -> None:
        """Raise BadInput, BadPayload, UnknownMachine, SecretUnreadable."""
        self.demand_readable()
        arguments.check_machine(self.machine)
        if self.action not in ACTIONS:
            raise BadInput(f"a bulk can {', '.join(ACTIONS)}, not {self.action!r}")
        if self.machine == BULK or (self.machine in builtin_machines.NAMES and self.action != MIGRATE):
            raise BadInput(f"a bulk action cannot {self.action} instances of {self.machine}, a machine of the product")
        if is_mirror(self.machine) and self.action != "fire":
            raise BadInput(
                f"{self.action} cannot change instances of {self.machine}, which follow their rows: use fire"
            )
        arguments.check_actor(self.actor)
        arguments.check_text("reason", arguments.require_reason(self.reason), MAX_REASON)
        arguments.check_between("rate", self.rate, 0, MAX_RATE)
        self._check_what(engine)
        if IDS in self.filter:
            self._check_chosen()
            return
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
        elif self.action == MIGRATE:
            self._check_plan(engine)
        elif self.action in WORK and (why := limits.check_invoke_id(self.invoke)) is not None:
            raise BadInput(f"the invoke {why}", code="SB401")

    def _check_chosen(self) -> None:
        """Check a list of chosen instances. Those that are gone later are left out."""
        chosen = self.filter[IDS]
        if set(self.filter) != {IDS}:
            raise BadInput("chosen instances and a filter exclude each other: use ids alone")
        if not isinstance(chosen, list | tuple) or not 1 <= len(chosen) <= MAX_CHOSEN:
            raise BadInput(f"ids is a list of 1 to {MAX_CHOSEN} instances; for more, use a filter")
        for id in chosen:
            arguments.check_instance(id)
        if len(set(chosen)) != len(chosen):
            raise BadInput("ids names an instance twice; name each once")

    def _check_plan(self, engine: Engine) -> None:
        plan = self.migration
        if plan.machine != self.machine:
            raise BadInput(f"the plan is for the machine {plan.machine!r}, not for {self.machine!r}", code="SB600")
        if self.unchanged:
            raise BadInput("a migration decides by what each instance is when it is moved: leave out unchanged")
        engine.check_plan(plan)

    def facts(self) -> dict[str, Any]:
        """Return what everybody may see of it, as data of the instance: all but the payload."""
        names = ("machine", "action", "target", "filter", "reason", "actor", "rate", "unchanged", "of")
        return {name: getattr(self, name) for name in names}

    def encode(self) -> str:
        """Encode it, with its arguments encrypted where there is a key: an event may carry what only few may see."""
        found = asdict(self) | {"groups": None if self.groups is None else sorted(self.groups)}
        del found["unreadable"]
        if self.has_arguments and has_key():
            given = {name: found.pop(name) for name in ARGUMENTS}
            found["arguments"] = encrypt(json.dumps(given), PURPOSE)
        return json.dumps(found, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> Order:
        found = json.loads(text)
        given = decrypt(found.pop("arguments", "{}"), PURPOSE)
        found |= {"unreadable": True} if isinstance(given, Unreadable) else json.loads(given)
        groups = found.get("groups")
        found |= {"states": tuple(found["states"]), "groups": None if groups is None else frozenset(groups)}
        return cls(**found)


def renew_order(text: str) -> str | None:
    """Return an encoded order with its arguments as the current key encrypts them; None where no key fits."""
    stored = json.loads(text).get("arguments")
    if stored is None:
        order = Order.decode(text)  # of the release before, or of a program without a key
        return order.encode() if order.has_arguments else text
    new = renew(stored, PURPOSE)
    return new and text.replace(stored, new)
