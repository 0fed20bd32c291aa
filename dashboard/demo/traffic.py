"""Makes traffic for the demo: devices that ask for codes, customers who enter them, orders, a night shift.

The same seed makes the same choices. It runs forever in bounded space: there is a fixed set of ids for each
machine; one that is taken is moved on, one that is finished is deleted and begins again.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import ClassVar
from zlib import crc32

from django.apps import apps

from dashboard.demo.examples.handlers import add_up, minutes_watched
from machines.conf import conf
from machines.engine import Engine, Instance
from machines.engine.errors import EngineUnavailable, InstanceExists, SignalboxError, UnknownInstance
from machines.mapreduce import MapReduce
from machines.mapreduce.store import RUN

log = logging.getLogger(__name__)

ACTOR = "traffic"
SERVICES = ("NBCSports", "ABC", "HBO", "Showtime", "Arte")
ACTIVATIONS = 250  # instances of the activation machine
DEVICES = 120  # instances of new_device
PALLET = 12  # new devices come in together, so that the queues fill up and drain again
PALLET_GAP = (40, 70)  # beats between two pallets: the last one is just through when the next comes
RIGHT = 0.55  # how often a customer types the right code
CLUMSY, CLUMSY_RIGHT = 4, 0.1  # one customer of so many seldom does, and ends suspended now and then
RESTART = 0.2  # how often an active device is given away, and begins again
ORDER_EVERY = 3  # beats; what happens to an order is one of so many
REQUEST_EVERY = 13  # beats; and one of so many to a request for an activation
NIGHT_EVERY = 150  # beats between two looks at the dead jobs
POKE_EVERY = 4  # beats; and one of so many to a pattern
VISIT_EVERY = 7  # beats; and one of so many to a row that another state library moves
VIEWING_EVERY = 151  # beats between two runs over the viewing figures
OWN_TOKEN = 0.3  # how often a device brings its own code


def activation_id(number: int) -> str:
    """Return an id such as ``ATV-017:ABC``: five services on each device."""
    return f"ATV-{number // len(SERVICES):03d}:{SERVICES[number % len(SERVICES)]}"


def some_account(random: Random) -> str:
    return activation_id(random.randrange(ACTIVATIONS))


def some_device(random: Random) -> str:
    return some_account(random).partition(":")[0]


def device_id(number: int) -> str:
    return f"ATV-{500 + number}:{SERVICES[number % len(SERVICES)]}"


def request_id(number: int) -> str:
    return f"A-{7000 + number}"


@dataclass
class Story:
    """Each ``move`` is one thing that happens to one instance; it may raise what the engine raises."""

    engine: Engine
    random: Random

    def _draw(self, likely: float) -> bool:
        return self.random.random() < likely


@dataclass
class Ring(Story):
    """Moves the instances of a ring of ids, one after the other. One that is not there begins, and one that is finished
    begins again."""

    machine: ClassVar[str]
    name: ClassVar[Callable[[int], str]]
    number: int = field(default=0, init=False)

    def _move_next(self, count: int) -> None:
        id = type(self).name(self.number)
        self.number = (self.number + 1) % count
        try:
            instance = self.engine.get(self.machine, id)
        except UnknownInstance:
            self._begin(id)
            return
        if instance.done:
            self.engine.delete(self.machine, id, actor=ACTOR, reason="begins again")
            self._begin(id)
        else:
            self._step(instance)

    def _begin(self, id: str) -> None:
        raise NotImplementedError

    def _step(self, instance: Instance) -> None:
        raise NotImplementedError


class Traffic:
    """Each ``beat`` is one thing that happens to one instance. Whatever the engine refuses is part of life."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self._engine = engine
        self._random = Random(seed)
        self._accounts = Accounts(engine, self._random)
        self._devices = Devices(engine, self._random)
        self._beats = 0
        self._until_pallet = PALLET_GAP[0] // 2
        examples = apps.get_app_config("examples")
        self._now_and_then: tuple[tuple[int, Callable[[], object]], ...] = (
            (VIEWING_EVERY, Viewing(engine, Random(seed)).move),
            (NIGHT_EVERY, NightShift(engine).look),
            (REQUEST_EVERY, Requests(engine, Random(seed)).move),
            (ORDER_EVERY, Orders(engine, Random(seed)).move),
            (POKE_EVERY, examples.pattern_traffic(Random(seed))),
            *([(VISIT_EVERY, examples.visit_traffic(Random(seed)))] if conf.DEMO_PACE else []),
        )

    def populate(self) -> int:
        """Start every id of the activation machine, so that the page is not empty. Return how many are new."""
        new = 0
        for number in range(ACTIVATIONS):
            id = activation_id(number)
            try:
                self._engine.create("activation", id, actor=ACTOR)
            except InstanceExists:
                continue
            new += 1
            for _ in range(self._random.randrange(8)):
                self._attempt(partial(self._accounts.move, id))
        return new

    def beat(self) -> bool:
        """Make one beat. Return whether anything moved."""
        self._beats += 1
        for every, move in self._now_and_then:
            if self._beats % every == 0:
                return self._attempt(move)
        self._until_pallet -= 1
        if self._until_pallet <= 0:
            self._until_pallet = self._random.randint(*PALLET_GAP)
            arrived = [self._attempt(self._devices.move) for _ in range(PALLET)]
            return any(arrived)
        return self._attempt(lambda: self._accounts.move(some_account(self._random)))

    def _attempt(self, move: Callable[[], object]) -> bool:
        """Attempt a move. Do nothing if an operator was quicker or the machine has changed."""
        try:
            move()
        except EngineUnavailable:
            raise
        except SignalboxError as error:
            log.debug("%s", error)
            return False
        return True


class Accounts(Story):
    """Moves the accounts of devices with services."""

    def move(self, id: str) -> None:
        try:
            account = self.engine.get("activation", id)
        except UnknownInstance:
            self.engine.create("activation", id, actor=ACTOR)
            return
        if account.state == "New":
            self._fire(id, "activate", self._choose_code())
        elif account.state == "Waiting":
            right = CLUMSY_RIGHT if crc32(id.encode()) % CLUMSY == 0 else RIGHT
            self._fire(id, "entitle", account.data.get("token", "") if self._draw(right) else "WRONG1")
        elif account.state == "Active" and not self._draw(RESTART):
            self._fire(id, "entitle", "")
        elif account.state == "Suspended":
            self._fire(id, "entitle", self._choose_code())
        else:
            self.engine.delete("activation", id, actor=ACTOR, reason="the device was given away")
            self.engine.create("activation", id, actor=ACTOR)

    def _fire(self, id: str, event: str, token: str) -> None:
        self.engine.fire("activation", id, event, {"token": token}, actor=ACTOR)

    def _choose_code(self) -> str:
        """Return a code of the device's own, or "": then the machine makes one."""
        if not self._draw(OWN_TOKEN):
            return ""
        return "".join(self.random.choices("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=6))


@dataclass
class Devices(Ring):
    """Brings in the next device of the ring. One that still waits for a worker is left alone."""

    machine, name = "new_device", device_id

    def move(self) -> None:
        self._move_next(DEVICES)

    def _begin(self, id: str) -> None:
        device, service = id.split(":")
        self.engine.create(self.machine, id, {"device": device, "service": service}, actor=ACTOR)

    def _step(self, instance: Instance) -> None:
        if instance.state == "failed":
            self.engine.fire(self.machine, instance.id, "retry", {}, actor=ACTOR)


ORDERS = 48  # instances of the delivery machine
ORDER_PREFIX, FIRST_ORDER = "R-", 2001
ARTICLES = {"lamp": 39, "kettle": 24, "bicycle": 640, "wardrobe": 310, "anvil": 95}
ORDER_MOVES = {  # in this state: this event, and how likely when the order is looked at
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
HOLD, CANCEL, NEXT_ORDER = 0.05, 0.02, 0.3
CONFIRM, DECLINE = 0.7, 0.1
PAYMENT_KEPT = 120  # seconds a payment that is over stays to be looked at


@dataclass
class Orders(Story):
    """``ids``: those of the orders that are moved."""

    ids: list[str] = field(default_factory=list)

    def move(self) -> None:
        if not self.ids:
            self.ids = [order.id for order in self.engine.find("delivery", limit=ORDERS)]
        if len(self.ids) < ORDERS:
            self._begin()
            return
        id = self.random.choice(self.ids)
        try:
            order = self.engine.get("delivery", id)
        except UnknownInstance:
            self.ids.remove(id)
            return
        if order.done:
            if self._draw(NEXT_ORDER):
                self._replace(order)
        elif order.configuration == ["Paying"]:
            self._pay(order)
        elif (event := self._choose_event(order.configuration)) is not None:
            self.engine.fire("delivery", id, event, actor=ACTOR)

    def _begin(self) -> None:
        """Begin an order under the next number: an order that is over does not come back."""
        numbers = [int(id.removeprefix(ORDER_PREFIX)) for id in self.ids if id.removeprefix(ORDER_PREFIX).isdecimal()]
        id = f"{ORDER_PREFIX}{max(numbers, default=FIRST_ORDER - 1) + 1}"
        article = self.random.choice(list(ARTICLES))
        self.engine.create("delivery", id, {"article": article, "amount": ARTICLES[article]}, actor=ACTOR)
        self.ids.append(id)

    def _replace(self, order: Instance) -> None:
        self._begin()
        self.engine.delete("delivery", order.id, actor=ACTOR, reason="a new order begins")
        self.ids.remove(order.id)
        for state in ("Paid", "Declined"):
            for payment in self.engine.find("payment", state=state, older_than=PAYMENT_KEPT, limit=5):
                self.engine.delete("payment", payment.id, actor=ACTOR, reason="long over")

    def _pay(self, order: Instance) -> None:
        """Do what the customer does in the bank's app; a worker does the bank's own part."""
        child = order.children.get("payment")
        if child is None or self.engine.get("payment", child["id"]).state != "Confirming":
            return
        word = self.random.random()
        if word < CONFIRM + DECLINE:
            self.engine.fire("payment", child["id"], "confirm" if word < CONFIRM else "decline", actor=ACTOR)

    def _choose_event(self, configuration: list[str]) -> str | None:
        if configuration != ["On hold"] and self._draw(HOLD):
            return "hold"
        if self._draw(CANCEL):
            return "cancel"
        states = [state for state in configuration if state in ORDER_MOVES]
        event, likely = ORDER_MOVES[self.random.choice(states)] if states else ("", 0)
        return event if self._draw(likely) else None


REQUEST_MACHINE = "service_activation"
REQUESTS = 60  # instances of the machine
REQUEST_RIGHT = 0.8  # how often a customer enters the right code


@dataclass
class Requests(Ring):
    """``account`` picks the requested account: the id of an instance of ``activation``. A request that waits for a
    worker, or for an operator to retry its dead job, is left."""

    machine, name = REQUEST_MACHINE, request_id
    account: Callable[[Random], str] = some_account

    def move(self) -> None:
        self._move_next(REQUESTS)

    def _begin(self, id: str) -> None:
        account = self._find_waiting_account(self.account(self.random))
        device, service = account.id.split(":")
        token = account.data.get("token", "") if self._draw(REQUEST_RIGHT) else "WRONG1"
        self.engine.create(REQUEST_MACHINE, id, {"device": device, "service": service, "token": token}, actor=ACTOR)

    def _step(self, instance: Instance) -> None:
        if "refused" in instance.configuration:
            account = self._find_waiting_account(f"{instance.data['device']}:{instance.data['service']}")
            token = account.data.get("token", "")
            self.engine.fire(REQUEST_MACHINE, instance.id, "correct", {"token": token}, actor=ACTOR)

    def _find_waiting_account(self, id: str) -> Instance:
        """Return the account, after the device asked for a code if it had none."""
        account = self.engine.get("activation", id)
        if account.state == "New":
            return self.engine.fire("activation", id, "activate", {"token": ""}, actor=ACTOR)
        return account


VIEWS = 600  # items of a run: as many as make several chunks, and few enough to be nothing to Redis
CHUNKS = 20
LONGEST_VIEWING = 180  # minutes of one viewing
RUN_KEPT = 300  # seconds a run that is over stays to be looked at
FINISHED = ("done", "failed")


@dataclass
class Viewing(Story):
    """``device`` draws one, and ``services`` are what people watch on it."""

    device: Callable[[Random], str] = some_device
    services: Sequence[str] = SERVICES

    def move(self) -> None:
        """Start one run at a time: while the workers are away, runs do not pile up."""
        self._clear()
        if self.engine.find(RUN, state="mapping", limit=1).instances:
            return
        run = MapReduce("viewing", minutes_watched, add_up, CHUNKS, engine=self.engine)
        run.add_items(self._views())
        run.map()

    def _views(self) -> Iterator[list[str | int]]:
        for _ in range(VIEWS):
            yield [self.device(self.random), self.random.choice(self.services), self.random.randint(1, LONGEST_VIEWING)]

    def _clear(self) -> None:
        for state in FINISHED:
            for run in self.engine.find(RUN, state=state, older_than=RUN_KEPT, limit=5):
                self.engine.fire(RUN, run.id, "remove", actor=ACTOR, reason="looked at long enough")


NIGHT_SHIFT = "night shift"
ENOUGH = 12  # dead or handled jobs of a queue that stay visible in the demo
REDRIVEN = (("service_activation", "devices"),)  # what waits for the work: it is done once more
PURGED = (("new_device", "provision"), ("service_activation", "entitlement"))  # nobody waits for it any more


class NightShift:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def look(self) -> int:
        """Handle queues with too many jobs: retry the dead ones, purge the handled ones. Return how many jobs that
        were. May raise what the engine raises."""
        again = [self._redrive(*queue) for queue in REDRIVEN if self._is_full(*queue, "dead")]
        over = [self._purge(*queue) for queue in PURGED if self._is_full(*queue, "handled")]
        return sum(again) + sum(over)

    def _is_full(self, machine: str, queue: str, place: str) -> bool:
        return self._engine.queues(machine).get(queue, {}).get(place, 0) > ENOUGH

    def _redrive(self, machine: str, queue: str) -> int:
        return self._engine.redrive(machine, queue, actor=NIGHT_SHIFT, reason="it is quiet now")

    def _purge(self, machine: str, queue: str) -> int:
        return self._engine.purge(
            machine, queue, place="handled", actor=NIGHT_SHIFT, reason="all of them were put right"
        )
