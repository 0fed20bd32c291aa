"""Errors as problem details, limits, cursors, masks, and what a session has to show."""

from __future__ import annotations

import json
import re
from pathlib import Path

from django.test import Client

from dashboard.shared.errors import problems
from machines.engine.limits import MAX_DEFINITION
from machines.models import Approval
from tests.configuration import configure

from .conftest import ALL, Caller

HERE = "/machines/door/instances/front"
EVENTS = f"{HERE}/events"
PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def test_a_refusal_says_every_reason(door, boss):
    answer = boss.post(EVENTS, {"event": "lock", "payload": {"pin": "0000"}})
    told = answer.json()
    assert answer["Content-Type"] == "application/problem+json"
    assert {name: told[name] for name in ("type", "status", "instance", "code")} == {
        "type": "/api/v1/docs#SB430", "status": 422, "instance": f"/api/v1{EVENTS}", "code": "SB430",
    }  # fmt: skip
    assert told["explanation"]["candidates"][0]["verdict"] == "guard"


def test_each_mistake_in_a_body_is_pointed_at(door, boss):
    for body, pointers in (
        ({}, ["#/event"]),
        ({"event": 7, "payload": []}, ["#/event", "#/payload"]),
        ({"event": "open", "paylod": {}, "a/b~c": 1}, ["#/paylod", "#/a~1b~0c"]),
        ([], ["#"]),
    ):
        answer = boss.post(EVENTS, json.dumps(body))
        told = answer.json()
        assert (answer.status_code, told["code"]) == (422, "SB721")
        assert [error["pointer"] for error in told["errors"]] == pointers
        assert all(error["detail"] for error in told["errors"])


def test_mistakes_in_the_address_are_named(door, boss):
    for query, name in (("limit=0", "limit"), ("stat=shut", "stat"), ("order=up", "order")):
        told = boss.get(f"/machines/door/instances?{query}").json()
        assert [(error["in"], error["parameter"]) for error in told["errors"]] == [("query", name)]
    assert boss.get("/machines/door/instances?state=shutt").json()["code"] == "SB412"


def test_what_is_no_json_is_a_problem_too(door, boss):
    twice = '{"event": "open", "event": "shut"}'
    for text in ("{", '{"event": NaN}', "[" * 100_000, twice, "\xff", '"\\ud800"'):
        answer = boss.post(EVENTS, text)
        assert answer.status_code in (400, 422)
        assert answer.json()["code"] in ("SB700", "SB721")
    assert door.get("door", "front").revision == 1


def test_what_is_too_large_is_a_problem_too(door, boss):
    answer = boss.post("/definitions/check", json.dumps({"text": "x" * (MAX_DEFINITION + 1)}))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/text")
    answer = boss.post("/definitions/check", json.dumps({"text": "x" * 3_000_000}))
    assert (answer.status_code, answer.json()["code"]) == (400, "SB700")


DEAD_ENDS = [
    ("GET", "/nothing", 404, "SB704"),
    ("POST", "/machines/door/nothing", 404, "SB704"),
    ("GET", "/machines/no%20name", 404, "SB704"),
    ("DELETE", HERE, 405, "SB722"),
    ("PUT", "/machines", 405, "SB722"),
    ("GET", "/machines/nothing", 404, "SB420"),
    ("GET", "/machines/door/instances/nobody", 404, "SB421"),
    ("GET", "/machines/door/definition?version=9", 404, "SB420"),
    ("GET", "/machines/door/queues/nothing", 404, "SB419"),
    ("GET", "/machines/door/jobs/0-99", 404, "SB423"),
    ("GET", "/bulks/nothing", 404, "SB704"),
    ("GET", "/approvals/99", 404, "SB704"),
    ("GET", "/webhooks/99", 404, "SB446"),
    ("GET", "/sm/nothing", 404, "SB704"),
    ("GET", "/machines/door/instances?cursor=nonsense", 400, "SB726"),
    ("GET", "/machines/door/instances/front/history?cursor=WyJhdWRpdCIsM10", 400, "SB726"),
    ("GET", "/audit?cursor=WyJhdWRpdCIsIngiXQ", 400, "SB726"),
    ("GET", "/audit?since=yesterday", 422, "SB721"),
]


def test_every_dead_end_is_a_problem(door, boss):
    for method, path, status, code in DEAD_ENDS:
        answer = boss(method, path)
        assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), answer.content
        assert answer.json()["code"] == code, path
        assert status != 405 or "GET" in answer["Allow"]


def test_head_is_get_without_a_body(door, boss):
    assert boss("HEAD", HERE)["ETag"] == '"1"'


def test_without_redis_it_is_a_503_that_says_when_to_come_back(door, boss, settings):
    configure(settings, REDIS_URL="unix:///nonexistent/engine.sock")
    answer = boss.get(HERE)
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (503, "SB500", "5")


def test_a_token_in_an_address_is_refused(door, boss):
    answer = Caller().get(f"/me?access_token={boss.token}")
    assert (answer.status_code, answer.json()["code"]) == (400, "SB726")
    assert boss.token.rpartition("_")[2] not in answer.content.decode()


def test_a_header_that_is_no_token_is_a_401_even_with_a_session(door, user_of):
    client = Client()
    client.force_login(user_of("ann", *ALL))
    assert Caller(client=client).get("/me").status_code == 200
    for header in ("Basic YTpi", "Bearer", "Bearer sb_1_2", "sb_nothing"):
        assert Caller(client=client).get("/me", Authorization=header).status_code == 401


def test_a_session_needs_its_csrf_token_for_what_changes_something(door, user_of):
    client = Client(enforce_csrf_checks=True)
    client.force_login(user_of("ann", *ALL))
    who = Caller(client=client)
    answer = who.post(EVENTS, {"event": "open"})
    assert (answer.status_code, answer.json()["code"]) == (403, "SB708")
    client.get("/account/")
    shown = client.cookies["csrftoken"].value
    assert who.post(EVENTS, {"event": "open"}, X_CSRFToken=shown).status_code == 200


def test_who_asks_too_often_is_told_when_to_come_back(door, boss, caller, settings):
    configure(settings, API_RATE="2/h")
    first, second, third = (boss.get("/me") for _ in range(3))
    assert (first["RateLimit-Policy"], first["RateLimit"].partition(";t=")[0]) == (
        '"caller";q=2;w=3600',
        '"caller";r=1',
    )
    assert (second.status_code, third.status_code, third.json()["code"]) == (200, 429, "SB725")
    assert 0 < int(third["Retry-After"]) <= 1800
    assert caller("view").get("/me").status_code == 200  # a budget of its own
    configure(settings, API_RATE="off")
    assert "RateLimit" not in boss.get("/me")


def test_an_address_has_a_budget_for_all_its_tokens_together(door, caller, settings, monkeypatch):
    monkeypatch.setattr("dashboard.api.framework.authentication.PER_ADDRESS", 2)
    configure(settings, API_RATE="2/h")
    several = [caller("view") for _ in range(3)]
    told = [who.get("/me").status_code for who in several + several]
    assert told == [200, 200, 200, 200, 429, 429]
    refused = caller("view").get("/me")
    assert refused["RateLimit"].partition(";t=")[0] == '"address";r=0'
    assert refused["Retry-After"]
    elsewhere = several[0].client.get(
        "/api/v1/me", headers={"Authorization": f"Bearer {caller('view').token}"}, REMOTE_ADDR="10.9.8.7"
    )
    assert elsewhere.status_code == 200


def test_strangers_have_a_budget_for_each_address(door, monkeypatch):
    monkeypatch.setattr("dashboard.api.framework.authentication.STRANGERS", (2, 3600))
    answers = [Caller("sb_x").get("/me") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [401, 401, 429]
    assert [answer["RateLimit"].partition(";t=")[0] for answer in answers] == [
        f'"stranger";r={left}' for left in (1, 0, 0)
    ]
    assert answers[2]["Retry-After"]


def test_lists_go_on_where_they_stopped(door, boss):
    for number in range(4):
        door.create("door", f"d{number}")
    seen, cursor = [], ""
    while cursor is not None:
        page = boss.get(f"/machines/door/instances?state=shut&limit=2{cursor and f'&cursor={cursor}'}").json()
        seen += [one["id"] for one in page["items"]]
        cursor = page["next"]
    assert sorted(seen) == ["d0", "d1", "d2", "d3", "front"]
    boss.post(EVENTS, {"event": "open"})
    newest = boss.get(f"{HERE}/history?limit=1").json()
    older = boss.get(f"{HERE}/history?limit=1&cursor={newest['next']}").json()
    assert [page["items"][0]["revision"] for page in (newest, older)] == [2, 1]
    assert older["next"] is None


def test_instances_are_found_by_the_terms_of_the_page(door, boss):
    found = boss.get("/machines/door/instances?by=serial&is=D-*").json()["items"]
    assert [one["id"] for one in found] == ["front"]
    assert boss.get("/machines/door/instances?state=shut&older=1h").json()["items"] == []


def test_what_is_sensitive_is_masked_for_who_may_not_reveal_it(door, boss, caller):
    blind = caller("view", "fire", "operate")
    masked = blind.get(HERE).json()["data"]
    assert (masked["pin"], masked["serial"]) == ("•••", "D-1")
    assert boss.get(HERE).json()["data"]["pin"] == "4711"
    assert boss.get(HERE).json()["data"]["pin"] == "4711"
    half = caller(*ALL, scopes=("view", "fire"))
    assert half.get(HERE).json()["data"]["pin"] == "•••"
    told = [
        blind.get(f"{HERE}/history"),
        blind.post(EVENTS, {"event": "lock", "payload": {"pin": "0815"}}),
        blind.post(f"{HERE}/explanations", {"event": "lock", "payload": {"pin": "0815"}}),
        blind.post("/machines/door/events", {"calls": [{"id": "front", "event": "lock", "payload": {"pin": "0815"}}]}),
        blind.post(f"{HERE}/repairs/edit", {"changes": {"pin": 4712}, "reason": "a test"}),
        blind.post(f"{HERE}/repairs/edit/preview", {"changes": {"pin": "4713"}}),
        blind.post(EVENTS, {"event": "lock", "payload": {"pin": "4711"}}),
        blind.get("/machines/door/queues/oiling/jobs"),
        blind.get("/machines/door/jobs/0-1"),
    ]
    for answer in told:  # as words: times have such digits, too
        assert not re.search(r"\b(4711|4712|4713|0815)\b", answer.content.decode()), (
            answer.content
        )  # times have such digits


def test_what_takes_two_is_filed_and_done_by_another_person(door, boss, caller):
    asker = caller("view", "fire")
    answer = asker.post(EVENTS, {"event": "melt", "reason": "too old"}, Idempotency_Key="k")
    filed = answer.json()
    assert (answer.status_code, filed["state"], answer["Location"]) == (202, "open", f"/api/v1/approvals/{filed['id']}")
    assert asker.post(EVENTS, {"event": "melt", "reason": "too old"}, Idempotency_Key="k").json() == filed
    assert door.get("door", "front").revision == 1
    own = asker.post(f"/approvals/{filed['id']}/approve")
    assert (own.status_code, own.json()["code"]) == (403, "SB436")
    done = boss.post(f"/approvals/{filed['id']}/approve").json()
    assert (done["state"], done["asked"]) == ("done", {})
    assert door.get("door", "front").configuration == ["jammed"]
    late = boss.post(f"/approvals/{filed['id']}/decline", {"note": "no"})
    assert (late.status_code, late.json()["code"]) == (409, "SB437")
    assert Approval.objects.count() == 1


def test_every_code_has_a_status_and_a_title_and_the_apis_own_are_documented():
    assert all(code.status >= 400 and code.title and code.meaning for code in problems.list_codes())
    own = {code.code for code in problems.OWN if code.code >= "SB720"}
    assert set(re.findall(r"^\| `(SB7\d\d)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == own


def test_the_request_leads_from_an_answer_to_the_audit(door, boss):
    made = boss.post("/machines/door/instances", {"id": "by-request", "reason": "a test"})
    other = boss.get("/audit?request=0000000000000").json()
    found = boss.get(f"/audit?request={made.headers['X-Request-Id']}").json()
    assert [(entry["action"], entry["instance"]) for entry in found["items"]] == [
        ("reveal", "by-request"), ("create", "by-request"),  # the answer shows its card
    ]  # fmt: skip
    assert found["items"][0]["request"] == made.headers["X-Request-Id"]
    assert other["items"] == []
