from __future__ import annotations

import pytest
from django.test import Client

from machines.engine import Engine
from tests.configuration import configure
from tests.live.builders import GATE, SHIFT
from tests.live.sockets import make_user

pytestmark = pytest.mark.django_db
URL = "/api/v1/live/"


@pytest.fixture
def gate(engine: Engine) -> Engine:
    for definition in (GATE, SHIFT):
        engine.publish(definition)
        engine.create(definition["id"], "north")
    return engine


@pytest.fixture
def viewer(client: Client) -> Client:
    client.force_login(make_user("viewer", "view"))
    return client


@pytest.mark.parametrize(
    "topic", ["overview", "machine:gate", "instance:gate/north", "queues", "queue:shift/crew", "workers"]
)
def test_a_snapshot_as_a_socket_would_get_it(gate: Engine, viewer: Client, topic: str) -> None:
    response = viewer.get(URL, {"topic": topic})
    frame = response.json()
    assert response.status_code == 200
    assert (frame["type"], frame["topic"], frame["epoch"], frame["seq"]) == ("snapshot", topic, "http", 1)
    assert "gone" not in frame["data"]
    assert abs(frame["at"] - gate.live("gate").now) < 5000
    assert "no-store" in response["Cache-Control"]


def test_it_is_true_at_the_moment_it_is_asked_for(gate: Engine, viewer: Client) -> None:
    gate.fire("gate", "north", "open")
    assert viewer.get(URL, {"topic": "machine:gate"}).json()["data"]["counts"] == gate.counts("gate")


def test_what_is_not_there_is_gone(gate: Engine, viewer: Client) -> None:
    assert viewer.get(URL, {"topic": "machine:ghost"}).json()["data"] == {"gone": True}


@pytest.mark.parametrize("topic", ["", "nonsense", "machine:*", "instance:gate/\x00", "x" * 5000])
def test_an_ill_formed_topic_is_a_400(gate: Engine, viewer: Client, topic: str) -> None:
    response = viewer.get(URL, {"topic": topic})
    assert (response.status_code, response.json()["code"]) == (400, "SB602")


def test_without_the_right_it_is_a_403(gate: Engine, client: Client) -> None:
    client.force_login(make_user("nobody", "fire"))
    response = client.get(URL, {"topic": "machine:gate"})
    assert (response.status_code, response.json()["code"]) == (403, "SB603")


def test_nobody_signed_in_is_a_401_and_no_redirect(gate: Engine, client: Client) -> None:
    assert client.get(URL, {"topic": "machine:gate"}).status_code == 401


def test_it_only_reads(gate: Engine, viewer: Client) -> None:
    assert viewer.post(URL, {"topic": "machine:gate"}).status_code == 405


def test_without_the_library_it_is_loaded(gate: Engine, viewer: Client) -> None:
    gate.client.function_flush()
    assert viewer.get(URL, {"topic": "machine:gate"}).status_code == 200


def test_without_redis_it_is_a_503_with_a_code(gate: Engine, viewer: Client, settings) -> None:
    configure(settings, REDIS_URL="unix:///nonexistent/engine.sock")
    response = viewer.get(URL, {"topic": "machine:gate"})
    assert (response.status_code, response.json()["code"]) == (503, "SB606")
