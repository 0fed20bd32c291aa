"""Every screen of the admin, asked for by every kind of people, as they are and as staff."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.urls import URLPattern, URLResolver, reverse
from django.utils import timezone

from machines.models import Approval, AuditEntry, LastSeen, Machine, OutboxEntry
from machines.people import tokens
from tests.admin.table import QUERIES, SCREENS, Rules, Screen
from tests.security.people import BY_NAME, HERE, KINDS, PEOPLE, Kind, strongest, weakest
from tests.security.world import World

pytestmark = pytest.mark.usefixtures("short_refusals")
TURNS = 6
MODELS = {
    "auth_user", "auth_group", "machines_machine", "machines_machineversion", "machines_auditentry", "machines_token",
    "machines_lastseen", "machines_outboxentry", "machines_approval",
}  # fmt: skip


def holds(kind: Kind, needed: str) -> bool:
    if needed == "staff":
        return True
    if "." in needed:
        return kind.superuser or needed in kind.permissions
    if needed == "view and accounts":
        return kind.holds("view", "some") and holds(kind, "auth.change_user")
    if needed == "anything":
        return any(holds(kind, one) for one in ("view", "machines.view_token", "auth.view_user"))
    right, _, here = needed.partition(" ")
    return kind.holds(right, "machine" if here else "all" if right == "publish" else "some", HERE)


def _staff() -> list[Kind]:
    """One of those that hold the same for every rule of the table, on single machines or on all."""
    needed = sorted({name for screen in SCREENS.values() for rules in screen for name, _ in rules})
    known = [kind for kind in PEOPLE if kind.known]
    return list({(bool(kind.on), *(holds(kind, one) for one in needed)): kind for kind in reversed(known)}.values())


def code(kind: Kind, rules: Rules) -> int:
    return next((status for needed, status in rules if holds(kind, needed)), 403)


def _patterns(found: list[Any]) -> Iterator[URLPattern]:
    for pattern in found:
        if isinstance(pattern, URLResolver):
            yield from _patterns(pattern.url_patterns)
        else:
            yield pattern


def test_every_screen_of_the_admin_is_in_the_table():
    assert {f"{model._meta.app_label}_{model._meta.model_name}" for model in admin.site._registry} == MODELS
    names = {pattern.name for pattern in _patterns(admin.site.get_urls()) if pattern.name}
    assert names - {"app_list"} == {name for name in SCREENS if " " not in name} - {"nothing"}
    # The others: Django's own way from a row without /change/ to the one with it, and its answer to all that is left.
    nameless = [str(pattern.pattern) for pattern in _patterns(admin.site.get_urls()) if not pattern.name]
    assert sorted(nameless) == sorted(["(?P<url>.*)$", *["<path:object_id>/"] * len(MODELS)])


@pytest.fixture
def objects(world: World) -> dict[str, int]:
    """A row of each model, by its name; those of machines are of one that the matrix is about."""
    machine = Machine.objects.get(name="activation")
    target = get_user_model().objects.create_user("target")
    entry = AuditEntry.objects.create(actor="ann", action="fire", machine="activation", outcome="done")
    rows = {
        "auth_user": target,
        "auth_group": Group.objects.get(name="viewer"),
        "machines_machine": machine,
        "machines_machineversion": machine.version(),
        "machines_auditentry": entry,
        "machines_outboxentry": OutboxEntry.objects.create(kind="fire", machine="activation", instance="a"),
        "machines_approval": Approval.objects.create(
            machine="activation", instance="a", action="delete", reason="it must"
        ),
        "machines_token": tokens.make(target, "a token", ["view"])[0],
        "machines_lastseen": LastSeen.objects.create(user=target, at=timezone.now(), requests=1),
    }
    return {name: row.pk for name, row in rows.items()}


def address(name: str, objects: dict[str, int]) -> str:
    if name == "nothing":
        return reverse("admin:index") + "nothing/"
    name, _, label = name.partition(" ")
    model = next((model for model in sorted(MODELS, key=len, reverse=True) if name.startswith(f"{model}_")), "")
    of_row = model and not name.endswith(("_changelist", "_add"))
    arguments = [label] if label else [1, 1] if name == "view_on_site" else [objects[model]] if of_row else []
    return reverse(f"admin:{name}", args=arguments) + QUERIES.get(name, "")


def asked(kinds: list[Kind], screen: Screen, method: str) -> set[Kind]:
    """Of those who get the same code the ones that tell of the others: who is refused though nobody refused holds more,
    or is let in though nobody let in holds less."""
    by_code: dict[int, list[Kind]] = {}
    for kind in kinds:
        by_code.setdefault(code(kind, getattr(screen, method)), []).append(kind)
    found = {one for status, same in by_code.items() for one in (strongest if status >= 400 else weakest)(same)}
    return found | {BY_NAME["superuser"]}


@pytest.mark.parametrize("method", ["get", "post"])
def test_each_screen_gives_each_kind_of_staff_what_the_table_says(
    world: World, visitors: dict[Kind, Any], objects: dict[str, int], method: str
):
    get_user_model().objects.update(is_staff=True)
    wrong, staff = {}, _staff()
    assert len(staff) > 8
    for name, screen in SCREENS.items():
        for kind in asked(staff, screen, method):
            wanted = code(kind, getattr(screen, method))
            got = world.ask(visitors[kind], method, address(name, objects)).status
            if got != wanted:
                wrong[f"{name} by {kind}"] = (got, wanted)
    assert wrong == {}


def test_the_admin_is_for_staff(world: World, visitors: dict[Kind, Any], objects: dict[str, int]):
    """A stranger and who holds every right are led away from every screen, the others from each in its turn."""
    wrong, outside = {}, [kind for kind in KINDS if not (kind.known and kind.staff)]
    everywhere = {BY_NAME["anonymous"], BY_NAME["everything here"]}
    for turn, name in enumerate(SCREENS):
        for kind in everywhere.union(outside[turn % TURNS :: TURNS]):
            answer = world.ask(visitors[kind], "post" if name == "logout" else "get", address(name, objects))
            led = (answer.status, answer.headers.get("Location", "").partition("?")[0])
            right = led[0] == 200 if name == "login" else led in ((302, "/admin/login/"), (302, "/admin/"))
            if not right:
                wrong[f"{name} by {kind}"] = led
    assert wrong == {}
