"""The demo's orders: they go every way the machine has, forever, in bounded space."""

import json
from random import Random

import pytest

from dashboard.demo import traffic
from dashboard.demo.examples import handlers
from dashboard.demo.traffic import Orders
from machines.engine.definitions import outline
from machines.engine.errors import SignalboxError
from machines.worker.job import Job
from machines.worker.registry import discover
from tests.installation.processes import ROOT

pytestmark = pytest.mark.redis
JUMP = 40  # beats between two


@pytest.fixture
def shop(engine, monkeypatch):
    """Both machines, and few orders, so that a test sees each more than once."""
    monkeypatch.setattr(traffic, "ORDERS", 8)
    for name in ("payment", "delivery"):
        engine.publish(json.loads((ROOT / "examples" / f"{name}.json").read_text()))
    return engine


class Day:
    """Traffic, a worker that works at once, and now and then a jump in time past every timer."""

    def __init__(self, engine, seed: int) -> None:
        self.engine = engine
        self.orders = Orders(engine, Random(seed))

    def pass_by(self, beats: int) -> None:
        for beat in range(beats):
            try:
                self.orders.move()
            except SignalboxError:
                continue
            self.work_off()
            if beat % JUMP == 0:
                self.engine.tick(now=self.engine.live("delivery").now + 120_000)

    def work_off(self) -> None:
        for machine, queue in (("payment", "bank"), ("delivery", "warehouse"), ("delivery", "mail")):
            for job in self.engine.take(machine, queue, "test", count=100):
                self.engine.complete(job, discover().get(job.src).function(Job(job)))


def test_there_are_never_more_orders_than_meant_and_payments_that_are_over_go(shop, monkeypatch):
    monkeypatch.setattr(traffic, "PAYMENT_KEPT", 0)
    day = Day(shop, 1)
    day.pass_by(400)
    assert shop.live("delivery").total <= 9
    assert shop.live("payment").total <= 24


def test_orders_go_every_way_there_is(shop):
    day = Day(shop, 3)
    day.pass_by(900)
    taken = {key.split(":")[1] for key in shop.live("delivery").flow}
    every = [t for state in outline(shop.definition("delivery")).states for t in state.transitions]
    never = [t for t in every if t.id not in taken and t.cause != "error"]
    assert {t.events for t in never} <= {("cancel",)}, "few cancel, and fewer still while they pay"


def test_a_second_start_goes_on_with_the_orders_that_are_there(shop):
    Day(shop, 1).pass_by(30)
    before = {order.id for order in shop.find("delivery", limit=100)}
    assert len(before) == 8
    Day(shop, 2).pass_by(1)
    assert len(before & {order.id for order in shop.find("delivery", limit=100)}) >= 7
    assert shop.live("delivery").total == 8


def test_an_order_that_someone_deleted_makes_room_for_the_next(shop):
    day = Day(shop, 1)
    day.pass_by(20)
    for order in shop.find("delivery", limit=100):
        shop.delete("delivery", order.id)
    day.pass_by(60)
    assert shop.live("delivery").total == 8


@pytest.mark.parametrize(
    ("article", "restocked", "found"), [("lamp", False, True), ("anvil", False, False), ("anvil", True, True)]
)
def test_what_is_out_of_stock_is_not_found_until_someone_fills_up_the_shelf(shop, article, restocked, found):
    shop.create("delivery", "R-1", {"article": article, "restocked": restocked})
    shop.force("delivery", "R-1", "Picking", actor="test", reason="test")
    (job,) = shop.take("delivery", "warehouse", "test")
    assert handlers.pick(Job(job)) == {"found": found}


@pytest.mark.parametrize(("amount", "state"), [(299, "Paid"), (300, "Confirming")])
def test_large_amounts_wait_for_the_customers_word(shop, amount, state):
    shop.create("payment", "P-1", {"amount": amount})
    (job,) = shop.take("payment", "bank", "test")
    shop.complete(job, handlers.charge_card(Job(job)))
    assert shop.get("payment", "P-1").state == state
    assert bool(shop.get("payment", "P-1").data["receipt"]) is (state == "Paid")
