"""Makes traffic for the demo: devices that ask for codes, customers who enter them, orders, a night shift.

The same seed makes the same choices. It runs forever in bounded space: there is a fixed set of ids for each
machine; one that is taken is moved on, one that is finished is deleted and begins again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random
from zlib import crc32

from django.apps import apps

from machines.engine import Engine
from machines.engine.errors import EngineUnavailable, InstanceExists, SignalboxError, UnknownInstance

from .night_shift import NightShift
from .orders import Orders
from .requests import Requests
from .viewing import Viewing

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
VIEWING_EVERY = 151  # beats between two runs over the viewing figures
OWN_TOKEN = 0.3  # how often a device brings its own code


class Traffic:
    """Each ``beat`` is one thing that happens to one instance. Whatever the engine refuses is part of life."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self._engine = engine
        self._random = Random(seed)
        self._orders = Orders(engine, Random(seed))
        self._requests = Requests(engine, Random(seed), some_account)
        self._night = NightShift(engine)
        self._viewing = Viewing(engine, Random(seed), some_device, SERVICES)
        self._move_patterns = apps.get_app_config("examples").pattern_traffic(Random(seed))
        self._beats = 0
        self._next_device = 0
        self._until_pallet = PALLET_GAP[0] // 2
        self._now_and_then: tuple[tuple[int, Callable[[], object]], ...] = (
            (VIEWING_EVERY, self._viewing.move),
            (NIGHT_EVERY, self._night.look),
            (REQUEST_EVERY, self._requests.move),
            (ORDER_EVERY, self._orders.move),
            (POKE_EVERY, self._move_patterns),
        )
        self._moves: dict[str, Callable[[str], None]] = {
            "New": self._activate,
            "Waiting": self._enter_code,
            "Active": self._use,
            "Suspended": self._ask_again,
        }

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
                self._attempt(lambda id=id: self._move(id))
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
            arrived = [self._attempt(self._bring_in_device) for _ in range(PALLET)]
            return any(arrived)
        id = activation_id(self._random.randrange(ACTIVATIONS))
        return self._attempt(lambda: self._move(id))

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

    def _move(self, id: str) -> None:
        try:
            state = self._engine.get("activation", id).state
        except UnknownInstance:
            self._engine.create("activation", id, actor=ACTOR)
            return
        self._moves.get(state, self._restart)(id)

    def _activate(self, id: str) -> None:
        self._fire(id, "activate", {"token": self._choose_code()})

    def _enter_code(self, id: str) -> None:
        token = self._engine.get("activation", id).data.get("token", "")
        right = CLUMSY_RIGHT if crc32(id.encode()) % CLUMSY == 0 else RIGHT
        self._fire(id, "entitle", {"token": token if self._random.random() < right else "WRONG1"})

    def _use(self, id: str) -> None:
        if self._random.random() < RESTART:
            self._restart(id)
        else:
            self._fire(id, "entitle", {"token": ""})

    def _ask_again(self, id: str) -> None:
        self._fire(id, "entitle", {"token": self._choose_code()})

    def _restart(self, id: str) -> None:
        self._engine.delete("activation", id, actor=ACTOR, reason="the device was given away")
        self._engine.create("activation", id, actor=ACTOR)

    def _bring_in_device(self) -> None:
        """Bring in the next device of the ring. One that still waits for a worker is left alone."""
        id = device_id(self._next_device)
        self._next_device = (self._next_device + 1) % DEVICES
        try:
            instance = self._engine.get("new_device", id)
        except UnknownInstance:
            self._begin_device(id)
            return
        if instance.done:
            self._engine.delete("new_device", id, actor=ACTOR, reason="begins again")
            self._begin_device(id)
        elif instance.state == "failed":
            self._engine.fire("new_device", id, "retry", {}, actor=ACTOR)

    def _begin_device(self, id: str) -> None:
        device, service = id.split(":")
        self._engine.create("new_device", id, {"device": device, "service": service}, actor=ACTOR)

    def _fire(self, id: str, event: str, payload: dict[str, str]) -> None:
        self._engine.fire("activation", id, event, payload, actor=ACTOR)

    def _choose_code(self) -> str:
        """Return a code of the device's own, or "": then the machine makes one."""
        if self._random.random() >= OWN_TOKEN:
            return ""
        return "".join(self._random.choices("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=6))


def activation_id(number: int) -> str:
    """Return an id such as ``ATV-017:ABC``: five services on each device."""
    return f"ATV-{number // len(SERVICES):03d}:{SERVICES[number % len(SERVICES)]}"


def some_account(random: Random) -> str:
    return activation_id(random.randrange(ACTIVATIONS))


def some_device(random: Random) -> str:
    return some_account(random).partition(":")[0]


def device_id(number: int) -> str:
    return f"ATV-{500 + number}:{SERVICES[number % len(SERVICES)]}"
