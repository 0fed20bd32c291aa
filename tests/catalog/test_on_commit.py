"""machines.jobs: what belongs to a transaction goes out when it commits, once, and never when it rolls back."""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress

import pytest
from django.contrib.auth.models import Group
from django.db import transaction

from machines.engine import errors
from machines.jobs import enqueue, fire_on_commit
from tests.configuration import configure
from tests.conftest import NOWHERE

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def orders(engine):
    """A machine with one instance, ``shop``, that counts its rings."""
    engine.publish(
        {
            "id": "orders",
            "initial": "open",
            "context": {"rings": 0},
            "states": {
                "open": {
                    "on": {
                        "ring": {"actions": [{"set": {"rings": "rings + 1"}}]},
                        "pack": {"actions": {"enqueue": {"src": "pack"}}},
                        "close": {"guard": "rings > 5"},
                    }
                }
            },
        }
    )
    engine.create("orders", "shop")
    return engine


class Off(Exception):
    """Whatever makes a transaction roll back."""


@contextmanager
def rolled_back():
    """A transaction, or a savepoint inside one, that fails at its end."""
    with suppress(Off), transaction.atomic():
        yield
        raise Off


@transaction.atomic
def half_and(put):
    """A row, and what else belongs to it."""
    Group.objects.create(name="half of it")
    put()


def inputs(engine):
    return [job.input for job in engine.jobs("orders", "pack")]


def rings(engine):
    return engine.get("orders", "shop").data["rings"]


def test_it_goes_out_when_the_transaction_commits_and_not_before(orders):
    with transaction.atomic():
        assert enqueue("orders", "pack", {"order": 1}) is None
        assert fire_on_commit("orders", "shop", "ring") is None
        assert (inputs(orders), rings(orders)) == ([], 0)
    assert (inputs(orders), rings(orders)) == ([{"order": 1}], 1)


def test_it_never_goes_out_when_the_transaction_rolls_back(orders):
    with rolled_back():
        enqueue("orders", "pack", {"order": 1})
        fire_on_commit("orders", "shop", "ring")
    assert (inputs(orders), rings(orders)) == ([], 0)
    with transaction.atomic():
        Group.objects.create(name="the next transaction")
    assert (inputs(orders), rings(orders)) == ([], 0)


def test_outside_a_transaction_it_goes_out_at_once(orders):
    enqueue("orders", "pack", {"order": 1})
    fire_on_commit("orders", "shop", "ring")
    assert (inputs(orders), rings(orders)) == ([{"order": 1}], 1)


def test_an_inner_block_waits_for_the_outer_one(orders):
    with transaction.atomic():
        with transaction.atomic():
            enqueue("orders", "pack", {"order": "inner"})
        assert inputs(orders) == []
        enqueue("orders", "pack", {"order": "outer"})
    assert inputs(orders) == [{"order": "inner"}, {"order": "outer"}]


def test_an_inner_block_that_rolls_back_takes_only_its_own_along(orders):
    with transaction.atomic():
        enqueue("orders", "pack", {"order": "outer"})
        with rolled_back():
            enqueue("orders", "pack", {"order": "inner"})
    assert inputs(orders) == [{"order": "outer"}]


def test_an_outer_block_that_rolls_back_takes_the_inner_ones_along(orders):
    with rolled_back(), transaction.atomic():
        enqueue("orders", "pack", {"order": "inner"})
    assert inputs(orders) == []


def test_the_payload_goes_out_as_it_was_given(orders):
    payload = {"order": {"lines": [1]}}
    with transaction.atomic():
        enqueue("orders", "pack", payload)
        payload["order"]["lines"].append(2)
    assert inputs(orders) == [{"order": {"lines": [1]}}]


def test_the_options_are_those_of_the_engine(orders):
    with transaction.atomic(using="default"):
        for _ in range(2):
            enqueue("orders", "pack", queue="pack", unique="order-1", priority=9, attempts=7, using="default")
        for _ in range(2):
            fire_on_commit("orders", "shop", "ring", key="once", actor="alice", reason="the bell", using="default")
    (job,) = orders.jobs("orders", "pack")
    assert (job.unique, job.priority, job.attempts) == ("order-1", 9, 7)
    ring = orders.history("orders", "shop")[0]
    assert (rings(orders), ring.actor, ring.reason) == (1, "alice", "the bell")


@pytest.mark.parametrize(
    ("put", "what"),
    [
        (lambda: enqueue("orders", "pack", priority=10), "priority"),
        (lambda: enqueue("orders", "pack", hurry=True), "hurry"),
        (lambda: enqueue("orders", "pack", {"row": object()}), "input"),
        (lambda: fire_on_commit("orders", "shop", "ring", hurry=True), "hurry"),
        (lambda: fire_on_commit("orders", "shop", "ring", {"row": object()}), "payload"),
    ],
)
def test_what_no_job_can_be_is_told_while_the_transaction_can_still_roll_back(orders, put, what):
    with pytest.raises(errors.BadInput, match=what):
        half_and(put)
    assert not Group.objects.filter(name="half of it").exists()


def test_what_the_engine_refuses_after_the_commit_is_logged_and_raised(orders, caplog):
    with pytest.raises(errors.Refused):
        half_and(lambda: fire_on_commit("orders", "shop", "close", actor="alice"))
    assert Group.objects.filter(name="half of it").exists()
    assert "'event': 'close'" in caplog.text
    assert "'actor': 'alice'" in caplog.text


def test_a_job_that_redis_is_not_there_for_is_logged_whole(orders, settings, caplog):
    configure(settings, REDIS_URL=NOWHERE)
    with caplog.at_level(logging.ERROR), pytest.raises(errors.EngineUnavailable), transaction.atomic():
        enqueue("orders", "pack", {"order": 17}, unique="order-17")
    for part in ("'machine': 'orders'", "'src': 'pack'", "{'order': 17}", "'unique': 'order-17'"):
        assert part in caplog.text


@pytest.mark.urls("tests.catalog.shop")
def test_a_view_that_succeeds_puts_one_job_that_finds_its_row(orders, client):
    assert client.get("/order/lamp/").status_code == 200
    (given,) = inputs(orders)
    assert Group.objects.get(pk=given["order"]).name == "lamp"
    assert rings(orders) == 1


@pytest.mark.urls("tests.catalog.shop")
def test_a_view_that_fails_leaves_neither_row_nor_job(orders, client):
    with pytest.raises(ValueError, match="declined"):
        client.get("/order/lamp/?fail")
    assert not Group.objects.filter(name="lamp").exists()
    assert (inputs(orders), rings(orders)) == ([], 0)
