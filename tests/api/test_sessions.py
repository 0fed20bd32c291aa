"""Sessions of tokens: no more than the token at that moment, a state of their own, and an end."""

from __future__ import annotations

import json
import logging

import pytest
from django.test import Client

from dashboard.site.log_format import Line
from machines.models import AuditEntry, Token
from machines.people import tokens
from tests.configuration import configure

from .conftest import ALL, Caller


@pytest.fixture
def holder(door, caller) -> Caller:
    return caller("view", "fire", on="door", scopes=("view", "fire"))


def made(who: Caller, **body) -> tuple[Caller, dict]:
    answer = who.post("/sessions", body)
    assert answer.status_code == 201, answer.content
    return Caller(answer.json()["session"]), answer.json()


def test_a_session_does_what_its_token_may_and_the_audit_names_both(holder):
    session, told = made(holder, ttl=60, state={"n": 1})
    assert told["session"].startswith("sbs_")
    assert (told["state"], told["revision"], told["expires"] - told["created"]) == ({"n": 1}, 1, 60_000)
    assert session.get("/me").json() == holder.get("/me").json()
    assert session.post("/machines/door/instances/front/events", {"event": "open"}).status_code == 200
    assert session.post("/machines/door/queues/oiling/pause", {"reason": "x"}).status_code == 403
    fired = AuditEntry.objects.get(action="fire")
    token = tokens.check(holder.token)
    assert (fired.actor_id, fired.source) == (
        str(token.owner.pk), f"api 127.0.0.1 token {token.handle} session {told['id']}"
    )  # fmt: skip
    entry = AuditEntry.objects.get(action="session.make")
    assert (entry.target, entry.detail["token"], entry.outcome) == (told["id"], token.handle, "done")


@pytest.mark.parametrize("how", ["revoked", "expired", "off", "less", "gone"])
def test_what_ends_the_token_ends_its_sessions_in_that_moment(holder, how):
    session, _ = made(holder)
    token = tokens.check(holder.token)
    if how == "revoked":
        tokens.revoke(token)
    elif how == "expired":
        Token.objects.filter(pk=token.pk).update(expires=token.created)
    elif how == "off":
        type(token.owner).objects.filter(pk=token.owner.pk).update(is_active=False)
    elif how == "gone":
        token.delete()
    else:
        Token.objects.filter(pk=token.pk).update(rights=["view"])
        assert session.post("/machines/door/instances/front/events", {"event": "open"}).status_code == 403
        return
    answer = session.get("/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "SB720")


def test_only_a_token_makes_a_session(holder, user_of):
    session, _ = made(holder)
    browser = Client()
    browser.force_login(user_of("ann", "view"))
    for answer in (session.post("/sessions", {}), browser.post("/api/v1/sessions", "{}", "application/json")):
        assert (answer.status_code, answer.json()["code"]) == (403, "SB438")
    refused = AuditEntry.objects.filter(action="session.make", outcome="refused")
    assert {entry.detail["code"] for entry in refused} == {"SB438"}


def test_the_state_is_written_by_who_has_seen_it(holder):
    session, _ = made(holder, state={"n": 1})
    first = session.get("/sessions/current")
    assert (first["ETag"], first.json()["state"]) == ('"1"', {"n": 1})
    second = session("PUT", "/sessions/current", {"state": {"n": 2}}, If_Match=first["ETag"])
    assert (second["ETag"], second.json()["revision"]) == ('"2"', 2)
    late = session("PUT", "/sessions/current", {"state": {"n": 3}}, If_Match=first["ETag"])
    assert (late.status_code, late.json()["code"]) == (412, "SB481")
    assert (late.json()["expected"], late.json()["actual"]) == (1, 2)
    assert session("PUT", "/sessions/current", {"state": {}}).json()["revision"] == 3
    big = session("PUT", "/sessions/current", {"state": {"x": "x" * 17_000}})
    assert (big.status_code, big.json()["code"]) == (400, "SB411")
    assert session("PUT", "/sessions/current", {"state": []}).status_code == 422
    assert session("PUT", "/sessions/current", {"state": {}}, If_Match="W/x").status_code == 400
    assert holder.get("/sessions/current").status_code == 404
    for ttl in (59, 86_401, "60", True, 60.5):
        assert holder.post("/sessions", {"ttl": ttl}).status_code == 422


def test_a_rotated_session_goes_on_under_another_text(holder):
    session, told = made(holder, state={"n": 1})
    turned = session.post("/sessions/current/rotate").json()
    assert (turned["id"], turned["state"]) == (told["id"], {"n": 1})
    assert session.get("/me").status_code == 401
    assert Caller(turned["session"]).get("/sessions/current").json()["state"] == {"n": 1}


def test_each_ends_its_own_and_nobody_elses(holder, caller):
    other = caller("view")
    (one, first), (two, second), (three, _) = (made(holder) for _ in range(3))
    stranger, foreign = made(other)
    assert [row["id"] for row in holder.get("/sessions").json()["items"]][:2] == [first["id"], second["id"]]
    assert "state" not in holder.get("/sessions").json()["items"][0]
    assert holder("DELETE", f"/sessions/{foreign['id']}").status_code == 404
    assert holder("DELETE", "/sessions/nonsense").status_code == 404
    assert holder("DELETE", f"/sessions/{first['id']}").json() == {"ended": 1}
    assert two("DELETE", "/sessions/current").json() == {"ended": 1}
    assert [who.get("/me").status_code for who in (one, two, three, stranger)] == [401, 401, 200, 200]
    assert three("DELETE", "/sessions").json() == {"ended": 1}
    assert [who.get("/me").status_code for who in (three, stranger)] == [401, 200]
    ended = AuditEntry.objects.filter(action="session.revoke", outcome="done")
    assert [entry.target for entry in ended.order_by("id")][:2] == [first["id"], second["id"]]


def test_there_are_only_so_many_of_a_token(holder, monkeypatch):
    monkeypatch.setattr("machines.people.tokens.MOST", 2)
    made(holder)
    made(holder)
    answer = holder.post("/sessions", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "SB484")


def test_token_and_sessions_share_one_budget(holder, settings):
    configure(settings, API_RATE="3/m")
    session, _ = made(holder)
    assert [session.get("/me").status_code, holder.get("/me").status_code, session.get("/me").status_code] == [
        200, 200, 429,
    ]  # fmt: skip


def test_a_session_in_an_address_is_refused_and_stands_in_no_log_and_no_audit(holder, caplog):
    caplog.set_level(logging.DEBUG)
    session, told = made(holder)
    answer = holder.get(f"/machines?x={told['session']}")
    assert (answer.status_code, answer.json()["code"]) == (400, "SB726")
    turned = session.post("/sessions/current/rotate").json()["session"]
    Caller(turned)("DELETE", "/sessions")
    for text in (told["session"], turned, holder.token):
        assert Caller().get(f"/machines/{text}/x").status_code == 404  # a program's slip: Django logs the path
    lines = [Line().format(record) for record in caplog.records]
    assert len([line for line in lines if line.startswith("Not Found: /api/v1/machines/sb")]) == 3
    for text in (told["session"], turned, holder.token):
        secret = text[-40:]
        assert not any(secret in line for line in lines)
        assert secret not in json.dumps(list(AuditEntry.objects.values("target", "source", "detail")), default=str)


@pytest.mark.parametrize(
    "text", ["sbs_", "sbs_0.0123456789abcdef.x", "sbs_" + "x" * 3000, "sbs_99.0123456789abcdef." + "A" * 43]
)
def test_what_is_no_session_is_nobody(door, text):
    answer = Caller(text).get("/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "SB720")


def test_without_redis_it_is_a_problem_and_not_a_401(holder, settings):
    session, _ = made(holder)
    configure(settings, REDIS_URL="unix:///nonexistent/none.sock")
    for answer in (session.get("/sessions/current"), holder.post("/sessions", {})):
        assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
        assert answer["Retry-After"]


def test_a_person_sees_and_ends_those_of_all_their_tokens(door, user_of):
    ann, browser = user_of("ann", *ALL), Client()
    pairs = [tokens.make(ann, name, ["view"]) for name in ("one", "two")]
    opened = [tokens.make_session(token)[0] for token, _ in pairs]
    tokens.make_session(tokens.make(user_of("bob", "view"), "his", ["view"])[0])
    browser.force_login(ann)
    rows = browser.get("/api/v1/sessions").json()["items"]
    assert {row["id"] for row in rows} == {one.handle for one in opened}
    page = browser.get("/account/tokens/").content.decode()
    assert all(f'data-session="{one.handle}"' in page for one in opened)
    assert page.count("data-session=") == 2
    assert "2 active API sessions" in browser.get("/account/").content.decode()
    assert browser.post(f"/account/sessions/{opened[0].handle}/end/").status_code == 302
    assert browser.post(f"/account/sessions/{opened[0].handle}/end/").status_code == 404
    assert browser.post("/account/sessions/end/").status_code == 302
    assert browser.get("/api/v1/sessions").json() == {"items": []}
    assert AuditEntry.objects.filter(action="session.revoke", source__startswith="page").count() == 2
    assert "his" in [token.name for token in Token.objects.all() if tokens.list_sessions([token])]


def test_one_idempotency_key_of_two_sessions_makes_neither_answer_for_the_other(holder):
    first, second = made(holder, state={"of": "first"})[0], made(holder, state={"of": "second"})[0]
    key = {"Idempotency-Key": "same"}
    for session, version in ((first, 2), (second, 2), (first, 3)):
        answer = session("PUT", "/sessions/current", {"state": {}}, **key)
        assert (answer.status_code, answer.json()["revision"]) == (200, version)
    for session in (first, second):
        assert session("DELETE", "/sessions/current", **key).json() == {"ended": 1}
        assert session.get("/me").status_code == 401
