"""The actor of an action: a person or one of their tokens, with source and permissions."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from django.db.models import QuerySet
from django.http import HttpRequest

from machines.audit.entries import REFUSED, AuditRecord, record, record_action, source_of, warn_operator
from machines.conf import conf

from . import permissions
from .errors import Forbidden, SignInNeeded
from .sign_in_times import read_confirmed


class Scopes(Protocol):
    """What a token reaches at most."""

    def covers(self, right: str, machine: str = "") -> bool: ...

    def scope(self, right: str) -> permissions.Scope: ...


@dataclass(frozen=True, slots=True)
class Actor:
    """``user``: a Django user, or the name of a trusted caller without an account (the command line).

    ``source``: the door and the address, as the audit says it. ``scopes``: of a token; None reaches all that its owner
    does. ``unwritten`` is called where an entry of the audit could not be written. ``granted``: rights, each with its
    machine, that were asked for and held; an actor lives for one request, so they are not asked for again.
    ``confirmed``: when a person with a browser last proved who they are; None for actors without one.
    """

    user: Any
    source: str = ""
    scopes: Scopes | None = None
    unwritten: Callable[[], None] | None = field(default=None, compare=False, repr=False)
    granted: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False, repr=False)
    confirmed: float | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, request: HttpRequest, scopes: Scopes | None = None) -> Actor:
        """Return who sent a request, with the rights that its view has asked for already."""
        held: Actor | None = getattr(request, "actor", None)
        if scopes is None and held is not None and held.user == request.user:
            return held
        confirmed = read_confirmed(request) if conf.FRESH_SIGN_IN else None
        return cls(request.user, source_of(request), scopes, lambda: warn_operator(request), confirmed=confirmed)

    @classmethod
    def console(cls) -> Actor:
        """Return the actor of the command line."""
        try:
            name = getpass.getuser()
        except (OSError, KeyError):  # an account without a name, as containers have
            name = "unknown"
        return cls(name, "command line")

    @property
    def name(self) -> str:
        return self.user if isinstance(self.user, str) else str(self.user.get_username())

    @property
    def id(self) -> str:
        """Of the account; "" for an actor without one."""
        return "" if isinstance(self.user, str) or self.user.pk is None else str(self.user.pk)

    @property
    def door(self) -> str:
        """Of ``source``: page, admin, api, or what it says in place of one."""
        return self.source.partition(" ")[0]

    @property
    def address(self) -> str:
        """Of ``source``: the client's, "" where there is none."""
        return self.source.partition(" ")[2].partition(" ")[0]

    @property
    def is_person(self) -> bool:
        """Whether rules for people hold."""
        return not isinstance(self.user, str)

    def may(self, right: str, machine: str = "") -> bool:
        """Tell whether the person holds the right (on a machine, or globally), and the token with it."""
        if not self.is_person or (right, machine) in self.granted:
            return True
        covered = self.scopes is None or self.scopes.covers(right, machine)
        return covered and permissions.allows(self.user, right, machine)

    def scope(self, right: str = "view") -> permissions.Scope:
        """Return the machines on which they hold it, and ``view`` with it."""
        if not self.is_person:
            return permissions.EVERYTHING
        held = permissions.scope_of(self.user, right)
        return held if self.scopes is None else held & self.scopes.scope(right) & self.scopes.scope("view")

    def anywhere(self, right: str) -> bool:
        """Tell whether they hold it on any machine."""
        return bool(self.scope(right))

    def demand(self, right: str, machine: str = "", *, action: str = "", **about: str) -> Actor:
        """Return the same actor, with the right ``granted``. Raises Forbidden. With an audit ``action`` that is
        recorded as a refusal, ``about`` as ``records`` takes it; inside a block of ``records`` it is by itself."""
        if self.may(right, machine):
            return self.holding(right, machine)
        error = Forbidden(right, machine)
        if action:
            record(
                self.user, action, machine=machine, source=self.source, outcome=REFUSED,
                detail={"error": error.message, "code": error.code}, **about,
            )  # fmt: skip
        raise error

    def find_row(
        self, rows: QuerySet[Any], id: int, right: str, noun: str, *, action: str = "", target: str = ""
    ) -> Any:
        """Return the row of a primary key, for who holds the right on its machine. Raises Forbidden, also for one that
        does not exist where the right is not held on every machine: which rows there are, and of which machine, is not
        theirs to know. Else DoesNotExist. ``action``, ``target``: of the audit entry of a refusal."""
        found = rows.filter(pk=id).first()
        try:
            self.demand(right, found.machine if found else "", action=action, target=target or f"{noun} {id}")
        except Forbidden:
            raise Forbidden(right) from None
        if found is None:
            raise rows.model.DoesNotExist(f"{noun.capitalize()} {id} not found.")
        return found

    def demand_discreetly(self, machine: str, *rights: str) -> None:
        """Raise Forbidden for the first right that is missing on a machine. Only accounts that may see the machine
        learn its name."""
        for right in rights:
            if not self.may(right, machine):
                raise Forbidden(right, machine if self.may("view", machine) else "")

    def holding(self, right: str, machine: str = "") -> Actor:
        """Return the same actor, who was asked for this right and holds it; and ``view`` with it, as with any right."""
        return replace(self, granted=self.granted | {(right, machine), ("view", machine)})

    @contextmanager
    def records(
        self, action: str, *, refusals: tuple[type[Exception], ...] = (), **about: str
    ) -> Iterator[AuditRecord]:
        """Write one audit entry for the block, with its outcome: see ``machines.audit.entries``."""
        with record_action(
            self.user, action, source=self.source, unwritten=self.unwritten, refusals=refusals, **about
        ) as entry:
            self._demand_fresh_sign_in(action)
            yield entry

    def _demand_fresh_sign_in(self, action: str) -> None:
        """Raise SignInNeeded where the action asks for a sign-in of the last minutes. A token can have none."""
        if action not in conf.FRESH_SIGN_IN or (self.confirmed is None and self.scopes is None):
            return
        if self.scopes is not None or time.time() - (self.confirmed or 0) > conf.FRESH_MINUTES * 60:
            raise SignInNeeded(action, conf.FRESH_MINUTES, token=self.scopes is not None)
