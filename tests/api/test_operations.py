"""Every operation: who gets in and who does not, and that what comes is what the document says."""

from __future__ import annotations

from typing import Any

import pytest

import dashboard.api.v1  # noqa: F401  adds the operations that the document lists
from dashboard.api.framework.openapi import document
from dashboard.api.framework.operation import OPERATIONS
from machines.models import AuditEntry, Token
from machines.people import tokens
from machines.people.permissions import ROLES
from tests.live.builders import GATE

from .conftest import ALL, Caller
from .schemas import fits
from .table import TABLE

RECORDED = [name for name, operation in OPERATIONS.items() if operation.recorded]


def send(who: Caller, name: str, filled: dict[str, Any], **headers: str) -> Any:
    case = TABLE[name]
    who = who.session() if case.session and who.token else who
    return who(OPERATIONS[name].method, case.path.format(**filled), case.body, **headers)


@pytest.fixture
def everything(stand) -> dict[str, Any]:
    """Something at each address."""
    filled: dict[str, Any] = {}
    for word in ("worker", "bulk", "schedule", "asked", "draft", "plan", "hook", "view", "key", "locked", "failure"):
        filled |= stand(word)
    return filled


def test_the_table_has_every_operation_and_no_other():
    assert set(TABLE) == set(OPERATIONS)
    described = [one["operationId"] for methods in document()["paths"].values() for one in methods.values()]
    assert sorted(described) == sorted(OPERATIONS)


def _together() -> dict[str, list[str]]:
    """Operations that only read, by what they need to be there; each that changes something by itself."""
    found: dict[str, list[str]] = {}
    for name, case in TABLE.items():
        found.setdefault(name if OPERATIONS[name].changes else f"looks at {case.stands}", []).append(name)
    return found


@pytest.mark.parametrize("names", _together().values(), ids=_together())
def test_its_right_on_its_machine_is_enough_and_the_answer_is_as_described(stand, caller, names: list[str]):
    filled = stand(TABLE[names[0]].stands)
    for name in names:
        case = TABLE[name]
        narrow = not case.everywhere and case.right != "audit"
        who = caller("view", case.right, on="door" if narrow else "", scopes=("view", case.right))
        answer = send(who, name, filled)
        assert answer.status_code == case.status, (name, answer.content)
        fits(name, answer)
        assert answer["Cache-Control"]
        assert answer["RateLimit"].startswith('"caller";r=')


@pytest.mark.parametrize("role", ["nobody", *ROLES])
def test_a_role_without_the_right_is_refused_and_that_is_recorded(everything, caller, role: str):
    who = caller(*ROLES.get(role, ()))
    refused = [name for name, case in TABLE.items() if case.right not in ROLES.get(role, ())]
    for name in refused:
        answer = send(who, name, everything, Idempotency_Key="k")
        assert (answer.status_code, answer.json()["code"]) == (403, "SB434"), (name, answer.content)
        fits(name, answer)
    recorded = AuditEntry.objects.filter(outcome="refused").count()
    assert recorded == len([name for name in refused if name in RECORDED])


OF_DOOR = [name for name, case in TABLE.items() if case.machine]


def test_a_right_on_another_machine_does_not_reach_this_one(engine, everything, caller):
    from machines.catalog import publishing

    publishing.publish(GATE)
    elsewhere = caller(*ALL, on="gate")
    narrow = caller(*ALL, machines=("gate",))
    for name in OF_DOOR:
        for who in (elsewhere, narrow):
            answer = send(who, name, everything)
            assert (answer.status_code, answer.json()["code"]) == (403, "SB434"), (name, answer.content)
    for name in [name for name, case in TABLE.items() if case.everywhere]:
        assert send(narrow, name, everything).status_code == 403


def test_whether_it_exists_makes_no_difference_to_who_may_not_see_it(engine, everything, caller):
    who = caller(*ALL, on="door")
    machine = "/machines/nothing"
    for path in (machine, f"{machine}/instances/x", f"{machine}/queues/x", "/bulks/nothing", "/approvals/99"):
        answer = who.get(path)
        assert (answer.status_code, answer.json()["code"]) == (403, "SB434"), path


def test_lists_leave_out_what_the_caller_may_not_see(engine, everything, caller):
    from machines.catalog import publishing

    publishing.publish(GATE)
    AuditEntry.objects.create(actor="ann", action="fire", machine="gate", outcome="done")
    for who in (caller(*ALL, on="door"), caller(*ALL, machines=("door",))):
        assert [one["name"] for one in who.get("/machines").json()["items"]] == ["door"]
        assert {one["machine"] for one in who.get("/queues").json()["items"]} == {"door"}
        assert who.get("/workers").json()["items"][0]["queues"] == ["door/oiling"]
        assert {one["machine"] for one in who.get("/approvals").json()["items"]} == {"door"}
    narrow = caller(*ALL, machines=("door",))
    assert {one["machine"] for one in narrow.get("/audit").json()["items"]} <= {"door"}
    assert narrow.get("/me").json()["rights"]["fire"] == {"everywhere": False, "machines": ["door"]}


def test_a_token_never_reaches_further_than_its_scopes_or_its_owner(everything, caller):
    short = caller(*ALL, scopes=("view",))
    for name in [name for name, case in TABLE.items() if case.right != "view"]:
        assert send(short, name, everything).status_code == 403, name
    long = caller("view", scopes=ALL)
    assert list(long.get("/me").json()["rights"]) == ["view"]
    assert long.post("/machines/door/instances/front/events", {"event": "open"}).status_code == 403


def test_nobody_gets_in_without_credentials_that_hold(everything, caller, user_of, settings):
    expired, revoked, orphan = caller(*ALL), caller(*ALL), caller(*ALL)
    rows = [tokens.check(one.token) for one in (expired, revoked, orphan)]
    Token.objects.filter(pk=rows[0].pk).update(expires=rows[0].created)
    tokens.revoke(rows[1])
    type(rows[2].owner).objects.filter(pk=rows[2].owner.pk).update(is_active=False)
    forged = Caller(expired.token[:-1] + ("0" if expired.token[-1] != "0" else "1"))
    for who, why in ((expired, "expired"), (revoked, "revoked"), (orphan, "not active"), (forged, "token not found")):
        answer = who.get("/me")
        assert (answer.status_code, answer.json()["code"]) == (401, "SB720")
        assert why in answer.json()["detail"]
        assert answer["WWW-Authenticate"].startswith("Bearer")


def test_every_operation_asks_who_calls(everything, monkeypatch):
    monkeypatch.setattr("dashboard.api.framework.authentication.STRANGERS", (1000, 60))
    for name in TABLE:
        answer = send(Caller(), name, everything)
        assert (answer.status_code, answer.json()["code"]) == (401, "SB720"), name
        fits(name, answer)
