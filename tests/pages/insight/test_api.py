"""The same figures from the API."""

from __future__ import annotations

import secrets

import pytest

from machines.people import tokens
from tests.cases import for_each

API = "/api/v1/machines/activation/insight/"


@pytest.fixture
def ask(facts, user_of, client):
    """Sends a request with a token of somebody with this role; gives the code and the answer."""

    def asked(path: str, body=None, role: str = "viewer"):
        token = tokens.make(user_of(role, secrets.token_hex(4)), "a test", ("view", "audit"))[1]
        header = {"Authorization": f"Bearer {token}"}
        if body is None:
            answer = client.get(API + path, headers=header)
        else:
            answer = client.post(API + path, body, content_type="application/json", headers=header)
        return answer.status_code, answer.json()

    return asked


def test_paths_have_the_figures_of_the_page(ask):
    status, found = ask("paths?version=1")
    assert status == 200
    assert found["extent"]["instances"] == 11
    assert found["paths"][0] | {"duration": 0} == {
        "states": ["New", "Waiting", "Active"], "count": 8, "share": 8 / 11, "looped": 0, "loops": 0, "ended": 8,
        "duration": 0,
    }  # fmt: skip


def test_instances_are_those_of_the_figure(ask):
    assert ask("instances?path=New&path=Removed") == (200, {"total": 1, "ids": ["gone/1"], "after": ""})
    status, found = ask("instances?stage=Waiting&stage=Suspended&within=2m")
    assert (status, found["ids"]) == (200, ["s-0", "s-1"])
    assert ask("instances?each=kind&name=person")[1]["total"] == 11


@for_each("path", [
    "durations", "bottlenecks", "funnel?stage=Waiting&stage=Active&within=1h", "people?each=handler",
    "levels?limit=30s", "conformance",
])  # fmt: skip
def test_each_question_has_an_answer(ask, path):
    status, found = ask(path)
    assert status == 200
    assert found["extent"]["instances"] == 11


def test_two_searches_are_compared(ask):
    status, found = ask("comparison", {"first": {"state": "Active"}, "second": {"state": "Suspended"}})
    assert status == 200
    assert (found["first"]["instances"], found["second"]["instances"]) == (8, 2)
    assert all(row["low"] <= row["second"] - row["first"] <= row["high"] for row in found["states"])


@for_each(
    "path",
    ["paths?version=x", "funnel?stage=A&stage=B&within=x", "people?each=x", "paths?since=x", "instances?each=x&name=y"],
)
def test_what_makes_no_sense_is_refused(ask, path):
    assert ask(path)[0] == 422


def test_names_of_people_take_the_right_to_see_the_audit(ask):
    asked = ("people?each=actor", "paths?actor=alice", "instances?each=actor&name=alice")
    assert [ask(path)[0] for path in asked] == [403] * 3
    assert ask("people?each=actor", role="supervisor")[1]["rows"][0]["name"] == "alice"
