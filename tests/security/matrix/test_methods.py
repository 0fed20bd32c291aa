"""Looking changes nothing, and what changes something is a POST with its CSRF token: at every address there is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from dashboard.api.framework.operation import OPERATIONS
from tests.admin.table import SCREENS
from tests.api.table import TABLE as CASES
from tests.pages.table import TABLE
from tests.security.people import BY_NAME, Kind
from tests.security.world import World

from .test_admin import address, objects
from .test_api import send

__all__ = ["objects"]

pytestmark = pytest.mark.usefixtures("short_refusals")
BOSS = BY_NAME["superuser"]
SAFE = ("get", "head", "options", "trace")
OTHERS = ("put", "patch", "delete")
UNREAD = (400, 422)  # of an operation whose body says nothing: what it is about has not been looked up
#: kept of every request, whatever it asks for: who was last seen, ranges of ids, what is counted against limits
BESIDE = ("ids:{ids}:", ":window:", ":throttle:")
LAST_SEEN = "machines_lastseen"
ADMIN_LOGIN = "/admin/login/"
AUDIT = "machines_auditentry"  # which has what was refused
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class Watch:
    """What was written while it looked: statements of SQL with what was asked for then, and keys of Redis."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.written: list[str] = []
        self.asked = ""

    def __call__(self, execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().upper().startswith(WRITES) and AUDIT not in sql and LAST_SEEN not in sql:
            self.written.append(f"{self.asked}: {sql[:100]}")
        return execute(sql, parameters, many, context)

    @contextmanager
    def on(self) -> Iterator[None]:
        before = self.world.keys.read()
        with connection.execute_wrapper(self):
            yield
        after = self.world.keys.read()
        ended = {key for key, (_, ends) in before.items() if ends >= 0} - after.keys()  # by themselves
        named = (before.keys() | after.keys()) - ended
        changed = [key.decode() for key in named if before.get(key) != after.get(key)]
        self.written += [key for key in changed if not any(part in key for part in BESIDE)]


def everything(world: World, objects: dict[str, int]) -> Iterator[str]:
    """Each address once."""
    yield from (entry.url(name) for name, entry in TABLE.items())
    yield from (address(name, objects) for name in SCREENS)


@pytest.fixture
def watch(world: World) -> Watch:
    return Watch(world)


@pytest.fixture
def guarded(world: World) -> Client:
    """A superuser whose browser shows no CSRF token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(get_user_model().objects.get(username="the-superuser"))
    return client


def test_looking_changes_nothing(world: World, visitors: dict[Kind, Any], objects: dict[str, int], watch: Watch):
    """By no method that is called safe, of which OPTIONS and TRACE take turns; and HEAD tells what GET does."""
    with watch.on():
        for path, other in zip(everything(world, objects), itertools.cycle(SAFE[2:]), strict=False):
            watch.asked = path
            codes = {method: world.ask(visitors[BOSS], method, path).status for method in (*SAFE[:2], other)}
            assert codes["head"] == codes["get"] or path == ADMIN_LOGIN, path  # Django's own, which knows GET alone
            assert max(codes.values()) < 500, path
    assert watch.written == []


def test_operations_that_only_look_change_nothing(world: World, visitors: dict[Kind, Any], watch: Watch):
    with (
        world.standing(
            "worker", "bulk", "schedule", "asked", "draft", "plan", "hook", "view", "key", "locked", "failure"
        ) as filled,
        watch.on(),
    ):
        for name, operation in OPERATIONS.items():
            watch.asked = name
            if not operation.changes:
                assert send(world, visitors[BOSS], name, filled).status < 500
    assert watch.written == []


@pytest.mark.parametrize("method", ["post", *OTHERS])
def test_a_page_takes_nothing_without_its_csrf_token(
    world: World, guarded: Client, objects: dict[str, int], watch: Watch, method: str
):
    wrong = {}
    with watch.on():
        for path in everything(world, objects):
            watch.asked = path
            answer = world.ask(guarded, method, path)
            if answer.status != 405 and (answer.status, b"SB708" in answer.body) != (403, True):
                wrong[path] = answer.status
    assert wrong == {}
    assert watch.written == []


def test_nothing_but_a_post_changes_anything(
    world: World, visitors: dict[Kind, Any], objects: dict[str, int], watch: Watch
):
    """Also where its CSRF token is in order, which Django's client takes for granted. Methods take turns."""
    with watch.on():
        for path, method in zip(everything(world, objects), itertools.cycle(OTHERS), strict=False):
            watch.asked = f"{method} {path}"
            assert world.ask(visitors[BOSS], method, path, settled=True).status < 500
    assert watch.written == []


def test_an_operation_takes_nothing_from_a_login_without_its_csrf_token(world: World, guarded: Client, watch: Watch):
    with (
        world.standing(
            "worker", "bulk", "schedule", "asked", "draft", "plan", "hook", "view", "key", "locked", "failure"
        ) as filled,
        watch.on(),
    ):
        for name, operation in OPERATIONS.items():
            watch.asked = name
            if operation.method != "GET":
                answer = send(world, guarded, name, filled)
                assert answer.status == 403, name
                assert b"SB708" in answer.body, name
    assert watch.written == []


def test_no_method_is_a_way_around_a_right(
    world: World, visitors: dict[Kind, Any], objects: dict[str, int], watch: Watch
):
    """Asked of pages and operations by somebody who is logged in and holds nothing. GET and POST are in the matrix."""
    nobody, wrong = visitors[BY_NAME["nobody"]], {}
    paths = [entry.url(name) for name, entry in TABLE.items() if entry.right]
    with (
        world.standing(
            "worker", "bulk", "schedule", "asked", "draft", "plan", "hook", "view", "key", "locked", "failure"
        ) as filled,
        watch.on(),
    ):
        paths += [f"/api/v1{case.path.format(**filled)}" for case in CASES.values()]
        for method, path in itertools.product([*SAFE[1:], *OTHERS], paths):
            watch.asked = f"{method} {path}"
            answer = world.ask(nobody, method, path, follow=True)
            unread = path.startswith("/api/") and answer.status in UNREAD and method not in SAFE
            if answer.status not in (403, 405) and not unread:
                wrong[watch.asked] = answer.status
    assert wrong == {}
    assert watch.written == []
