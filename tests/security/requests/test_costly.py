"""Nobody starves others with definitions: what is costly is bounded by size and right, runs beside, and counts more."""

import json

import pytest

from dashboard.api.framework import authentication
from dashboard.catalog import api as machines
from dashboard.shared import version_view
from machines.catalog import offload
from machines.engine.limits import MAX_DEFINITION, VIEWERS_DEFINITION
from machines.people import tokens
from tests.api.conftest import ALL, Caller, caller, door, drawing, user_of
from tests.configuration import configure

__all__ = ["caller", "door", "drawing", "user_of"]  # those of the API: a user has rights there, and no role

CHECK = "/definitions/check"
SMALL = {"id": "door", "initial": "shut", "states": {"shut": {}}}


def long(guards: int) -> dict:
    """Every guard takes some 3 ms to read, in 1.6 kB."""
    guard = " and ".join(f"a > {number}" for number in range(160))
    chain = [{"target": "S1", "guard": guard} for _ in range(guards)]
    return {"id": "m", "initial": "S0", "context": {"a": 0}, "states": {"S0": {"on": {"e": chain}}, "S1": {}}}


def left(answer) -> int:
    return int(answer["RateLimit"].partition("r=")[2].partition(";")[0])


@pytest.mark.parametrize("path", [CHECK, "/machines"])
def test_a_viewer_sends_small_definitions_and_a_publisher_large_ones(door, caller, path):
    body = json.dumps({"text": " " * VIEWERS_DEFINITION})
    answer = caller("view").post(path, body)
    told = answer.json()
    assert (answer.status_code, told["code"], told["limit"]) == (413, "SB713", VIEWERS_DEFINITION)
    assert f"{VIEWERS_DEFINITION:,} bytes" in told["detail"]
    assert caller("view", "publish").post(path, body).status_code in (200, 422)


def test_a_publisher_of_one_machine_is_one(door, user_of, caller):
    body = json.dumps({"text": " " * VIEWERS_DEFINITION})
    assert caller("view", "publish", on="door").post(CHECK, body).status_code == 200


def test_no_size_that_is_said_lets_a_larger_body_through(door, caller):
    who = caller("view")
    answer = who.client.post(
        f"/api/v1{CHECK}", json.dumps({"text": " " * VIEWERS_DEFINITION}), "application/json",
        headers={"Authorization": f"Bearer {who.token}"}, CONTENT_LENGTH="17",
    )  # fmt: skip
    assert answer.status_code in (400, 413, 422)


def test_one_person_checks_one_at_a_time_with_however_many_tokens(door, user_of, caller):
    ann = user_of("ann", *ALL)
    first, second = (Caller(tokens.make(ann, name, ALL)[1]) for name in ("first", "second"))
    with offload.pool.turn(str(ann.pk)):
        for who in (first, second):
            answer = who.post(CHECK, {"definition": SMALL})
            assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (429, "SB712", "1")
        assert caller("view").post(CHECK, {"definition": SMALL}).status_code == 200
    assert first.post(CHECK, {"definition": SMALL}).status_code == 200


def test_what_takes_too_long_is_refused_with_the_seconds_it_may_take(door, caller, monkeypatch):
    monkeypatch.setattr(machines, "VIEWERS_CPU", 0.02)
    answer = caller("view").post(CHECK, {"definition": long(70)})
    assert (answer.status_code, answer.json()["code"], answer.json()["seconds"]) == (422, "SB716", 0.02)
    assert caller("view", "publish").post(CHECK, {"definition": long(70)}).status_code == 200


def test_no_helper_is_a_503_that_says_when_to_come_back(door, caller, monkeypatch):
    monkeypatch.setattr(offload, "run", offload.Pool(0, waiting=0).run)
    answer = caller("view").post(CHECK, {"definition": SMALL})
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (503, "SB714", "5")


def test_size_and_work_count_in_the_budget_of_requests(door, caller, settings):
    configure(settings, API_RATE="1000/h")
    who, body = caller("view"), json.dumps({"definition": long(70)})
    assert left(who.get("/me")) == 999
    spent = 999 - left(who.post(CHECK, body))
    assert spent >= authentication.cost_of(len(body)) + 3, "some ms of work at least, at 10 ms each"
    assert 999 - spent - left(who.get("/me")) in (0, 1)


def test_work_past_the_budget_takes_all_that_is_left(door, caller, settings):
    configure(settings, API_RATE="15/h")
    who = caller("view")
    first = who.post(CHECK, {"definition": long(70)})
    assert (first.status_code, left(first)) == (200, 0)
    assert who.get("/me").status_code == 429


def test_a_large_body_is_refused_before_it_is_read_where_the_budget_is_too_small(door, caller, settings):
    configure(settings, API_RATE="10/h")
    who = caller("view")
    for _ in range(3):
        who.get("/me")
    answer = who.post(CHECK, {"text": " " * 90_000})
    assert (answer.status_code, answer.json()["code"]) == (429, "SB725")
    assert who.get("/me").status_code == 200, "what is refused costs nothing"


def test_texts_of_publishers_have_their_own_end(door, caller):
    answer = caller("view", "publish").post(CHECK, {"text": "x" * (MAX_DEFINITION + 1)})
    assert answer.status_code == 422


def test_one_person_draws_one_folded_diagram_at_a_time(door, user_of):
    door.publish({"id": "m", "initial": "A", "states": {"A": {"initial": "a", "states": {"a": {}}}}})
    ann = user_of("ann", "view")
    client = Caller().client
    client.force_login(ann)
    version_view._make_entry.cache_clear()
    with offload.pool.turn(str(ann.pk)):
        answer = client.get("/machines/m/?fold=A")
        assert (answer.status_code, answer["Retry-After"]) == (429, "1")
        assert "SB712" in answer.content.decode()
        assert client.get("/machines/m/").status_code == 200
    assert client.get("/machines/m/?fold=A").status_code == 200
