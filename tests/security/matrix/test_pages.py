"""Every address of the pages, asked for by every kind of people and programs: the codes are those of the table.

Everywhere: who is refused though nobody refused holds more, who holds just the right that it takes, and a few more.
The others ask each in its turn, also programs, whatever they show, and who holds less than somebody refused; and of a
method that an address does not know the superuser alone is told everywhere.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.urls import get_resolver

from dashboard.serving.live_view import websocket_urlpatterns
from tests.pages.table import ALL, EVERYONE, MACHINE, NOT_FOR_BROWSERS, TABLE, Entry
from tests.security.people import BY_NAME, KINDS, PEOPLE, Kind, strongest
from tests.security.world import World

pytestmark = pytest.mark.usefixtures("short_refusals")
#: straight on to the start page
SIGNED_IN = {("login", "get"), ("login", "post")}
SCOPES = {MACHINE: "machine", ALL: "all"}
EVERYWHERE = {"anonymous", "everything elsewhere", "superuser"}
TURNS = 9


def expected(name: str, entry: Entry, kind: Kind, method: str) -> int:
    code: int = getattr(entry, method)
    if not kind.known:
        return _stranger(name, entry, method)
    if name in NOT_FOR_BROWSERS and method == "post":
        return 405
    if entry.right is None:
        onwards = (name, method) in SIGNED_IN or ((name, method) == ("admin-login", "get") and kind.staff)
        return 302 if onwards else code
    return code if kind.holds(entry.right, SCOPES.get(entry.of, "some")) else 403


def _stranger(name: str, entry: Entry, method: str) -> int:
    if entry.of == EVERYONE:
        return getattr(entry, method)
    if name in NOT_FOR_BROWSERS:
        return 405 if method == "post" else 401
    only_forms = entry.right is None and entry.get == 405
    return 405 if only_forms and method == "get" else 302


@functools.cache
def telling(name: str, method: str) -> set[Kind]:
    """Whose refusals tell of all others."""
    refused = [kind for kind in VISITORS if kind.known and expected(name, TABLE[name], kind, method) == 403]
    return set(strongest(refused))


def takes_turns(kind: Kind, name: str, method: str, wanted: int) -> bool:
    if kind.name in EVERYWHERE:
        return False
    if kind.known and wanted == 403:
        return kind not in telling(name, method)
    return set(kind.rights) != {"view", TABLE[name].right} or kind.staff


#: programs show nothing that a page looks at: three of them stand for all
VISITORS = [*PEOPLE, *(BY_NAME[name] for name in ("token with everything", "session of a token", "expired token"))]


@pytest.mark.parametrize("kind", VISITORS, ids=str)
def test_each_address_gives_each_kind_what_the_table_says(world: World, visitors: dict[Kind, Any], kind: Kind):
    client, wrong, turn = visitors[kind], {}, VISITORS.index(kind)
    for number, (name, entry) in enumerate(TABLE.items()):
        for method in ("get", "post"):
            wanted = expected(name, entry, kind, method)
            if takes_turns(kind, name, method, wanted) and (number + turn) % TURNS:
                continue
            # Some forms lead back to what they are about before anything is looked up: that page refuses.
            got = world.ask(client, method, entry.url(name), follow=wanted == 403).status
            if got != wanted:
                wrong[f"{method} {name}"] = (got, wanted)
    assert wrong == {}


def test_there_is_no_way_in_but_those_of_the_tables():
    """A namespace or a socket that is new has to have a table, and a test here that goes through it."""
    found = get_resolver().url_patterns
    assert {getattr(pattern, "namespace", None) for pattern in found} == {None, "admin", "signalbox"}
    [ours] = [pattern.url_patterns for pattern in found if getattr(pattern, "namespace", None) == "signalbox"]
    assert {getattr(pattern, "namespace", None) for pattern in ours} == {None}
    api = next(one for one in ours if str(one.pattern) == "api/v1/")
    assert {getattr(pattern, "namespace", None) for pattern in api.url_patterns} == {None, "api"}
    assert [str(pattern.pattern) for pattern in websocket_urlpatterns] == ["ws/live/"]


@pytest.mark.parametrize(
    "path",
    ["/static/signalbox/js/shared/base.js", "/static/signalbox/img/signalbox.svg", "/static/nothing.js", "/static/"],
)
def test_static_files_are_for_everyone_and_nothing_else_is(world: World, visitors: dict[Kind, Any], path: str):
    wanted = 200 if finders.find(path.removeprefix("/static/")) and not path.endswith("/") else 404
    for kind in KINDS:
        for method in ("get", "head"):
            assert world.ask(visitors[kind], method, path).status == wanted, kind
