"""The kinds of people and programs that come to the site, with what each of them holds: one axis of the matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.utils import timezone
from guardian.shortcuts import assign_perm

from machines.catalog.publishing import adopt
from machines.models import Token
from machines.people import tokens
from machines.people.permissions import RIGHTS, ROLES

HERE = ("activation", "new_device", "door")
"""The machines that the addresses of the matrix are about."""
ELSEWHERE = ("payment",)
"""One that no address is about."""
ALL = tuple(RIGHTS)
ACCOUNTS = ("auth.view_user", "auth.change_user", "auth.view_group", "auth.change_group")
TOKENS = ("machines.view_token", "machines.revoke_token")


@dataclass(frozen=True, slots=True)
class Shown:
    """The token or the session that a program shows in place of a login."""

    scopes: tuple[str, ...] = ALL
    machines: tuple[str, ...] = ()
    state: str = "active"  # active, expired, revoked, forged, session


@dataclass(frozen=True, slots=True)
class Kind:
    """``rights`` are held globally, or on the machines in ``on`` one by one; ``permissions``: others, of Django."""

    name: str
    rights: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    grouped: bool = False
    staff: bool = False
    superuser: bool = False
    permissions: tuple[str, ...] = ()
    active: bool = True
    anonymous: bool = False
    shown: Shown | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def known(self) -> bool:
        """Whether the pages take this visitor for somebody. A token opens no page."""
        return self.active and not self.anonymous and self.shown is None

    @property
    def known_to_api(self) -> bool:
        shows = self.shown is None or self.shown.state in ("active", "session")
        return self.active and not self.anonymous and shows

    def holds(self, right: str, of: str, machines: tuple[str, ...] = HERE) -> bool:
        """``of``: ``machine`` for what is of one machine among ``machines``, ``some`` for what is of any that the
        visitor may see, ``all`` for what takes the right on every machine."""
        return self._has(right, of, machines) and self._has("view", of, machines)

    def covers(self, other: Kind) -> bool:
        """Whether it is known as the other one is, and holds all that the other one holds."""
        if self is other or self._sort != other._sort:
            return False
        mine, theirs = self.shown or Shown(), other.shown or Shown()
        held = ((self.rights, other.rights), (self.permissions, other.permissions), (mine.scopes, theirs.scopes))
        return (
            all(set(more) >= set(less) for more, less in held)
            and (not other.rights or _reach(self.on, other.on))
            and _reach(mine.machines, theirs.machines)
            and self.staff >= other.staff
            and self.superuser >= other.superuser
            and self.grouped <= other.grouped
        )

    @property
    def _sort(self) -> tuple[bool, bool, str]:
        return self.active, self.anonymous, self.shown.state if self.shown else ""

    def _has(self, right: str, of: str, machines: tuple[str, ...]) -> bool:
        if self.shown is not None and right not in self.shown.scopes:
            return False
        if not (self.superuser or right in self.rights):
            return False
        scope = None if self.superuser or not self.on or right == "audit" else set(self.on)
        if self.shown is not None and self.shown.machines:
            scope = set(self.shown.machines) & (scope or set(self.shown.machines))
        if scope is None:
            return True
        return {"machine": set(machines) <= scope, "some": bool(scope), "all": False}[of]


def _reach(more: tuple[str, ...], less: tuple[str, ...]) -> bool:
    """Whether the machines of one scope are among those of another; none are all."""
    return not more or (bool(less) and set(more) >= set(less))


def strongest(kinds: Iterable[Kind]) -> list[Kind]:
    """Those of whom no other one holds all that they hold: where these are refused, the others are."""
    found = list(kinds)
    return [kind for kind in found if not any(other.covers(kind) for other in found)]


def weakest(kinds: Iterable[Kind]) -> list[Kind]:
    """Those who hold all that no other one holds: where these are let in, the others are."""
    found = list(kinds)
    return [kind for kind in found if not any(kind.covers(other) for other in found)]


def _table() -> list[Kind]:
    found = [
        Kind("anonymous", anonymous=True),
        Kind("nobody"),
        Kind("inactive", ALL, active=False),
        Kind("fires without view", ("fire", "operate", "publish", "reveal")),
        Kind("auditor", ("view", "audit")),
        Kind("supervisor", ROLES["supervisor"]),
        Kind("everything here", ALL, HERE),
        Kind("everything elsewhere", ALL, ELSEWHERE),
        Kind("everything elsewhere by a group", ALL, ELSEWHERE, grouped=True),
        Kind("staff", staff=True),
        Kind("account manager", staff=True, permissions=ACCOUNTS),
        Kind("account manager who views", ("view",), staff=True, permissions=ACCOUNTS),
        Kind("token manager", staff=True, permissions=TOKENS),
        Kind("superuser", ALL, staff=True, superuser=True),
    ]
    for right in ("view", "fire", "operate", "reveal", "publish"):
        rights = ("view",) if right == "view" else ("view", right)
        found += [Kind(f"{right} on all", rights), Kind(f"{right} here", rights, HERE)]
    return found


def _programs() -> list[Kind]:
    boss = Kind("", ALL, superuser=True)
    shown = {
        "token with everything": Shown(),
        "token that views": Shown(("view",)),
        "token that fires": Shown(("view", "fire")),
        "token that publishes": Shown(("view", "publish")),
        "token for here": Shown(machines=HERE),
        "token for elsewhere": Shown(machines=ELSEWHERE),
        "session of a token": Shown(state="session"),
        "expired token": Shown(state="expired"),
        "revoked token": Shown(state="revoked"),
        "forged token": Shown(state="forged"),
    }
    found = [replace(boss, name=name, shown=one) for name, one in shown.items()]
    found.append(Kind("token of an inactive owner", ALL, superuser=True, active=False, shown=Shown()))
    found.append(Kind("wide token of a viewer", ("view",), shown=Shown()))
    found.append(Kind("wide token of a viewer of elsewhere", ("view",), ELSEWHERE, shown=Shown()))
    return found


PEOPLE = _table()
PROGRAMS = _programs()
KINDS = [*PEOPLE, *PROGRAMS]
BY_NAME = {kind.name: kind for kind in KINDS}


def make_user(kind: Kind, name: str = "") -> Any:
    """The account of a kind."""
    made = get_user_model().objects.create_user(
        name or f"the {kind}".replace(" ", "-"), is_staff=kind.staff, is_superuser=kind.superuser
    )
    holder = made
    if kind.grouped:
        holder = Group.objects.create(name=f"group of {kind}")
        made.groups.add(holder)
    _give(holder, made, kind)
    return made


def _give(holder: Any, user: Any, kind: Kind) -> None:
    codes = {right: RIGHTS[right].partition(".")[2] for right in kind.rights}
    everywhere = [code for right, code in codes.items() if not kind.on or right == "audit"]
    held = Permission.objects.filter(content_type__app_label="machines", codename__in=everywhere)
    user.user_permissions.set(held)
    for permission in kind.permissions:
        label, _, code = permission.partition(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=label, codename=code))
    for machine in kind.on:
        row = adopt(machine)
        for right, code in codes.items():
            if right != "audit":
                assign_perm(f"machines.{code}", holder, row)


def make_client(kind: Kind) -> Client:
    """A browser, or a program that sends what it shows with every request."""
    client = Client(raise_request_exception=True)
    if kind.anonymous:
        return client
    user = make_user(kind)
    if kind.shown is not None:
        client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {_text_of(user, kind.shown)}"
    else:
        client.force_login(user)
    if not kind.active:
        type(user).objects.filter(pk=user.pk).update(is_active=False)
    return client


def _text_of(user: Any, shown: Shown) -> str:
    token, text = tokens.make(user, "of the matrix", shown.scopes, machines=shown.machines)
    change: dict[str, Callable[[], str]] = {
        "active": lambda: text,
        "forged": lambda: text[:-1] + ("0" if text[-1] != "0" else "1"),
        "session": lambda: tokens.make_session(tokens.check(text))[1],
        "expired": lambda: _ended(token, text, expires=timezone.now() - timedelta(seconds=1)),
        "revoked": lambda: _ended(token, text, revoked=timezone.now()),
    }
    return change[shown.state]()


def _ended(token: Token, text: str, **columns: Any) -> str:
    Token.objects.filter(pk=token.pk).update(**columns)
    return text
