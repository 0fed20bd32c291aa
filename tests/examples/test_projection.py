"""The programs of ``examples/projection``: a table elsewhere follows a machine."""

from __future__ import annotations

import importlib
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from django.utils import timezone

from machines.engine import Engine
from machines.models import Delivery, Webhook
from machines.webhooks import signing
from machines.webhooks.fan_out import FanOut

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "projection"
ORDER = {
    "id": "order",
    "initial": "new",
    "states": {"new": {"on": {"pay": "paid"}}, "paid": {"on": {"ship": "shipped"}}, "shipped": {}},
}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The modules of the folder, as a program in it imports them."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import sys

    names = ("table", "by_log", "by_webhook")
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name, None)


def rows(connection) -> dict[str, tuple[str, int]]:
    return {id: (state, revision) for id, state, revision in connection.execute("SELECT * FROM orders")}


def move(engine: Engine) -> None:
    for id in ("a", "b"):
        engine.create("order", id)
    engine.fire("order", "a", "pay")
    engine.fire("order", "a", "ship")
    engine.fire("order", "b", "pay")


MOVED = {"a": ("shipped", 3), "b": ("paid", 2)}


def test_a_table_follows_the_log(engine, example):
    engine.publish(ORDER)
    engine.create("order", "before")
    connection = example["table"].open_table(":memory:")
    follower = example["by_log"].Follower(engine, connection, "order")
    follower.begin()
    move(engine)
    while follower.follow(wait=0.0):
        pass
    assert rows(connection) == MOVED | {"before": ("new", 1)}


def test_a_program_that_comes_back_reads_on(engine, example):
    engine.publish(ORDER)
    connection = example["table"].open_table(":memory:")
    example["by_log"].Follower(engine, connection, "order").begin()
    move(engine)
    next_one = example["by_log"].Follower(engine, connection, "order")
    next_one.begin()
    assert next_one.follow(wait=0.0) == 5
    assert rows(connection) == MOVED


@pytest.mark.django_db
def test_a_table_follows_a_webhook(engine, example):
    engine.publish(ORDER)
    connection = example["table"].open_table(":memory:")
    secret = signing.new_secret()
    Webhook.objects.create(
        name="table", url="https://orders.example/", machines=["order"], types=["signalbox.step"], secret=secret,
        maker="test",
    )  # fmt: skip
    pump = FanOut(engine, wait=0.0)
    pump.look()  # from now on steps are logged
    move(engine)
    while pump.look():
        pass
    server = example["by_webhook"].make_server(connection, secret)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for delivery in Delivery.objects.order_by("-pk"):  # in the wrong order
            assert post(server.server_port, delivery.key, delivery.body, secret) == 204
        assert post(server.server_port, delivery.key, delivery.body, signing.new_secret()) == 401
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert rows(connection) == MOVED


def post(port: int, key: str, body: str, secret: str) -> int:
    sent = body.encode()
    headers = signing.headers([secret], key, int(timezone.now().timestamp()), sent)
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", sent, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status: int = answer.status
    except urllib.error.HTTPError as error:
        return error.code
    return status
