"""Every operation of the API, asked for by every kind of people and programs: the codes are those of its table.

Everywhere: who is refused though nobody refused holds more, who holds just the right that it takes, and a few more.
The others ask each in its turn, also those whom no operation takes for anybody but for what they show.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from dashboard.api import v1
from dashboard.api.framework.operation import OPERATIONS
from tests.api.table import TABLE, Case
from tests.security.people import KINDS, Kind, strongest
from tests.security.world import Answer, World

OF_A_TOKEN = {"makeSession"}  # of a token itself, not of a session, and of nobody who is logged in
OF_JOBS = {"redriveErrors"}  # there are none for people whose rights are elsewhere
DOOR = ("door",)
EVERYWHERE = {"anonymous", "everything elsewhere", "superuser", "token with everything"}
TURNS = 9
assert v1.api  # with it come the operations


def send(world: World, client: Any, name: str, filled: dict[str, Any], *, path: str = "") -> Answer:
    """``path``: another one than that of its case."""
    case, method = TABLE[name], OPERATIONS[name].method.lower()
    body = {} if case.body is None else {"data": json.dumps(case.body)}
    address = f"/api/v1{path or case.path.format(**filled)}"
    return world.ask(client, method, address, content_type="application/json", **body)


def expected(name: str, case: Case, kind: Kind) -> int:
    if not kind.known_to_api:
        return 401
    of = "all" if case.everywhere else "machine" if case.machine else "some"
    if not kind.holds(case.right, of, DOOR):
        return 403
    by_session = kind.shown is not None and kind.shown.state == "session"
    if case.session and not by_session:
        return 404
    if name in OF_JOBS and not kind.holds(case.right, "machine", DOOR):
        return 400
    if name in OF_A_TOKEN and (kind.shown is None or by_session):
        return 403
    return case.status


@functools.cache
def telling(name: str) -> set[Kind]:
    """Whose refusals tell of all others."""
    return set(strongest(kind for kind in KINDS if expected(name, TABLE[name], kind) == 403))


def takes_turns(kind: Kind, name: str, wanted: int) -> bool:
    if kind.name in EVERYWHERE or (kind.name == "session of a token" and TABLE[name].session):
        return False
    if wanted == 403:
        return kind not in telling(name)
    held = kind.rights if kind.shown is None else kind.shown.scopes
    return wanted == 401 or set(held) != {"view", TABLE[name].right}


def _by_word() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, case in TABLE.items():
        found.setdefault(case.stands, []).append(name)
    return found


@pytest.mark.parametrize(("word", "names"), _by_word().items(), ids=_by_word())
def test_each_operation_gives_each_kind_what_the_table_says(
    world: World, visitors: dict[Kind, Any], word: str, names: list[str], monkeypatch
):
    monkeypatch.setattr("dashboard.api.framework.authentication.STRANGERS", (100_000, 60))
    wrong = {}
    with world.standing(word) as filled:
        for turn, kind in enumerate(KINDS):
            for number, name in enumerate(names):
                wanted = expected(name, TABLE[name], kind)
                if takes_turns(kind, name, wanted) and (number + turn) % TURNS:
                    continue
                answer = send(world, visitors[kind], name, filled)
                if answer.status != wanted:
                    wrong[f"{name} by {kind}"] = (answer.status, wanted, answer.text[:150])
    assert wrong == {}
