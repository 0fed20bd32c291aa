"""Makes orders for the demo's traffic: payments, late carriers, reminders.

Like the rest of the traffic it runs forever in bounded space: when an order is over it goes, and another begins.
"""

from __future__ import annotations

from random import Random

from machines.engine import Engine, Instance
from machines.engine.errors import UnknownInstance

ACTOR = "traffic"
ORDERS = 48  # instances of the delivery machine
PREFIX, FIRST = "R-", 2001
ARTICLES = {"lamp": 39, "kettle": 24, "bicycle": 640, "wardrobe": 310, "anvil": 95}
MOVES = {  # in this state: this event, and how likely when the order is looked at
    "Missing": ("restock", 0.5),
    "Back-ordered": ("restock", 0.5),  # this and the next two: of the draft, once it is published
    "In the depot": ("load", 0.6),
    "In the van": ("deliver", 0.4),
    "Packed": ("collect", 0.7),
    "On its way": ("deliver", 0.3),
    "Late": ("deliver", 0.6),
    "Open": ("bill", 0.6),
    "Sent": ("book", 0.25),
    "Reminded": ("book", 0.7),
    "On hold": ("resume", 0.2),
}
HOLD, CANCEL, AGAIN = 0.05, 0.02, 0.3
CONFIRM, DECLINE = 0.7, 0.1
KEPT = 120  # seconds a payment that is over stays to be looked at


class Orders:
    """Each ``move`` is one thing that happens to one order; it may raise what the engine raises."""

    def __init__(self, engine: Engine, random: Random) -> None:
        self._engine = engine
        self._random = random
        self._ids: list[str] = []

    def move(self) -> None:
        if not self._ids:
            self._ids = [order.id for order in self._engine.find("delivery", limit=ORDERS)]
        if len(self._ids) < ORDERS:
            self._begin()
            return
        id = self._random.choice(self._ids)
        try:
            order = self._engine.get("delivery", id)
        except UnknownInstance:
            self._ids.remove(id)
            return
        if order.done:
            if self._draw(AGAIN):
                self._replace(order)
        elif order.configuration == ["Paying"]:
            self._pay(order)
        elif (event := self._choose_event(order.configuration)) is not None:
            self._engine.fire("delivery", id, event, actor=ACTOR)

    def _begin(self) -> None:
        """Begin an order under the next number: an order that is over does not come back."""
        numbers = [int(id.removeprefix(PREFIX)) for id in self._ids if id.removeprefix(PREFIX).isdecimal()]
        id = f"{PREFIX}{max(numbers, default=FIRST - 1) + 1}"
        article = self._random.choice(list(ARTICLES))
        self._engine.create("delivery", id, {"article": article, "amount": ARTICLES[article]}, actor=ACTOR)
        self._ids.append(id)

    def _replace(self, order: Instance) -> None:
        self._begin()
        self._engine.delete("delivery", order.id, actor=ACTOR, reason="a new order begins")
        self._ids.remove(order.id)
        for state in ("Paid", "Declined"):
            for payment in self._engine.find("payment", state=state, older_than=KEPT, limit=5):
                self._engine.delete("payment", payment.id, actor=ACTOR, reason="long over")

    def _pay(self, order: Instance) -> None:
        """Do what the customer does in the bank's app; a worker does the bank's own part."""
        child = order.children.get("payment")
        if child is None or self._engine.get("payment", child["id"]).state != "Confirming":
            return
        word = self._random.random()
        if word < CONFIRM + DECLINE:
            self._engine.fire("payment", child["id"], "confirm" if word < CONFIRM else "decline", actor=ACTOR)

    def _choose_event(self, configuration: list[str]) -> str | None:
        if configuration != ["On hold"] and self._draw(HOLD):
            return "hold"
        if self._draw(CANCEL):
            return "cancel"
        states = [state for state in configuration if state in MOVES]
        event, likely = MOVES[self._random.choice(states)] if states else ("", 0)
        return event if self._draw(likely) else None

    def _draw(self, likely: float) -> bool:
        return self._random.random() < likely
