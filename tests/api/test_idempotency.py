"""One key, one effect: repeats, other requests, requests at the same time, and versions as preconditions."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db import connections

from machines.engine import EngineUnavailable

HERE = "/machines/door/instances/front"
EVENTS = f"{HERE}/events"
QUEUE = "/machines/door/queues/oiling"


def test_the_same_key_counts_once_and_is_answered_twice(door, boss):
    first = boss.post(EVENTS, {"event": "open"}, Idempotency_Key='"k-1"')
    again = boss.post(EVENTS, {"event": "open"}, Idempotency_Key="k-1")
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert (first["ETag"], first.get("Idempotent-Replayed"), again["Idempotent-Replayed"]) == (
        again["ETag"],
        None,
        "true",
    )
    assert door.get("door", "front").revision == 2


@pytest.mark.parametrize(
    ("path", "body", "stands"),
    [
        ("/machines/door/instances", {}, "shut"),
        (f"{QUEUE}/pause", {"reason": "a test"}, "locked"),
        ("/machines/door/bulks", {"action": "suspend", "filter": {"state": "shut"}, "reason": "a test"}, "shut"),
    ],
    ids=["an instance without an id", "a queue, of which the engine keeps no key", "a bulk"],
)
def test_whatever_a_post_makes_it_makes_once(stand, boss, path, body, stands):
    stand(stands)
    first, again = (boss.post(path, body, Idempotency_Key="k") for _ in range(2))
    assert 200 <= first.status_code < 300
    assert (again.status_code, again.content) == (first.status_code, first.content)


def test_the_same_key_with_another_body_is_a_mistake(door, boss):
    boss.post(EVENTS, {"event": "open"}, Idempotency_Key="k")
    other = boss.post(EVENTS, {"event": "shut"}, Idempotency_Key="k")
    assert (other.status_code, other.json()["code"]) == (422, "SB723")
    assert door.get("door", "front").configuration == ["opened"]


def test_keys_of_different_callers_and_paths_have_nothing_to_do_with_each_other(door, boss, caller):
    door.create("door", "back")
    boss.post(EVENTS, {"event": "open"}, Idempotency_Key="k")
    answer = boss.post("/machines/door/instances/back/events", {"event": "open"}, Idempotency_Key="k")
    assert answer.json()["id"] == "back"
    assert caller("view", "fire").post(EVENTS, {"event": "shut"}, Idempotency_Key="k").json()["revision"] == 3


def test_what_was_refused_may_be_tried_again_with_the_same_key(door, boss):
    body = {"event": "shut"}
    assert boss.post(EVENTS, body, Idempotency_Key="k").status_code == 422
    door.fire("door", "front", "open")
    assert boss.post(EVENTS, body, Idempotency_Key="k").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_while_the_first_is_under_way_the_second_is_turned_away(door, boss, monkeypatch):
    """Two requests at the same time; the first stands in the engine until the second was answered."""
    from machines.instances import actions as instances

    inside, go_on, real = threading.Event(), threading.Event(), instances.fire

    def slowly(*given, **more):
        inside.set()
        assert go_on.wait(60)
        return real(*given, **more)

    monkeypatch.setattr(instances, "fire", slowly)
    answers = []

    def first():
        try:
            answers.append(boss.post(EVENTS, {"event": "open"}, Idempotency_Key="k"))
        finally:
            connections.close_all()

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert inside.wait(60)
        second = boss.post(EVENTS, {"event": "open"}, Idempotency_Key="k")
    finally:
        go_on.set()
        thread.join(60)
    assert (second.status_code, second.json()["code"]) == (409, "SB724")
    assert answers[0].status_code == 200


def test_an_answer_that_was_lost_counts_once_by_the_engines_own_key(door, boss, monkeypatch):
    """The step is made, and the process dies before it can say so."""
    from machines.instances import actions as instances

    real = instances.fire

    def lost(*given, **more):
        real(*given, **more)
        raise EngineUnavailable("the answer did not come")

    monkeypatch.setattr(instances, "fire", lost)
    answer = boss.post(EVENTS, {"event": "open"}, Idempotency_Key="k")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "same Idempotency-Key" in answer.json()["detail"]
    monkeypatch.undo()
    again = boss.post(EVENTS, {"event": "open"}, Idempotency_Key="k").json()
    assert (again["revision"], again["outcome"]["replayed"]) == (2, True)


def test_a_fault_is_a_problem_too_and_lets_go_of_the_key(door, boss, monkeypatch):
    from machines.instances import actions as instances

    boss.client.raise_request_exception = False
    monkeypatch.setattr(instances, "fire", lambda *given, **more: 1 / 0)
    answer = boss.post(EVENTS, {"event": "open"}, Idempotency_Key="k")
    assert (answer.status_code, answer.json()["code"]) == (500, "SB710")
    monkeypatch.undo()
    assert boss.post(EVENTS, {"event": "open"}, Idempotency_Key="k").status_code == 200


def test_what_is_kept_is_kept_for_a_day_and_no_longer(door, boss):
    boss.post(EVENTS, {"event": "open"}, Idempotency_Key="k")
    (slot,) = cache.keys("api:once:*")
    assert 86_000 < cache.ttl(slot) <= 86_400


def test_an_answer_in_clear_is_not_given_again_to_who_may_not_see_it_any_more(door, caller):
    person = caller("view", "fire", "reveal")
    first = person.post("/machines/door/instances", {"id": "new", "data": {"pin": "4712"}}, Idempotency_Key="k")
    assert "4712" in first.content.decode()
    user = get_user_model().objects.get(username__startswith="user-")
    user.user_permissions.remove(*user.user_permissions.filter(codename="reveal_machine"))
    again = person.post("/machines/door/instances", {"id": "new", "data": {"pin": "4712"}}, Idempotency_Key="k")
    assert (again.status_code, again.json()["code"], again.json()["right"]) == (403, "SB434", "reveal")
    assert "4712" not in again.content.decode()
    masked = [person.post(EVENTS, {"event": "open"}, Idempotency_Key="m") for _ in range(2)]
    assert [one.status_code for one in masked] == [200, 200]


def test_a_key_that_is_none_is_a_mistake(door, boss):
    for key in ("", '""', "two words", "ü", "x" * 201):
        answer = boss.post(EVENTS, {"event": "open"}, Idempotency_Key=key)
        assert (answer.status_code, answer.json()["code"]) == (400, "SB726")


def test_a_revision_that_is_over_moves_nothing(door, boss):
    tag = boss.get(HERE)["ETag"]
    assert tag == '"1"'
    assert boss.post(EVENTS, {"event": "open"}, If_Match=tag)["ETag"] == '"2"'
    moved = boss.get(HERE)
    assert (moved.json()["revision"], moved.json()["version"], moved["ETag"]) == (2, 1, '"2"')
    assert [step["revision"] for step in boss.get(f"{HERE}/history").json()["items"]] == [2, 1]
    late = boss.post(EVENTS, {"event": "shut"}, If_Match=tag)
    told = late.json()
    assert "is at revision 2, not 1" in told["detail"]
    assert (late.status_code, told["code"], told["expected"], told["actual"]) == (412, "SB440", 1, 2)
    assert boss.post(f"{HERE}/repairs/reset", {"reason": "a test"}, If_Match=tag).status_code == 412
    assert boss.post(EVENTS, {"event": "shut"}, If_Match="nonsense").status_code == 400
    assert boss.post(EVENTS, {"event": "shut"}, If_Match="*").status_code == 200
