"""Makes requests for the demo's traffic: customers who entered the code of their device, for ``service_activation``.

Like the rest of the traffic it runs forever in bounded space: the ids are a ring, and one that is done begins again.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from machines.engine import Engine, Instance
from machines.engine.errors import UnknownInstance

ACTOR = "traffic"
MACHINE = "service_activation"
REQUESTS = 60  # instances of the machine
RIGHT = 0.8  # how often a customer enters the right code


class Requests:
    """Each ``move`` is one thing that happens to one request; it may raise what the engine raises.

    ``account`` picks the requested account: the id of an instance of ``activation``.
    """

    def __init__(self, engine: Engine, random: Random, account: Callable[[Random], str]) -> None:
        self._engine = engine
        self._random = random
        self._account = account
        self._next = 0

    def move(self) -> None:
        """Move the next request of the ring. One that waits for a worker, or for an operator to re-drive its dead job,
        is left."""
        id = request_id(self._next)
        self._next = (self._next + 1) % REQUESTS
        try:
            request = self._engine.get(MACHINE, id)
        except UnknownInstance:
            self._begin(id)
            return
        if request.done:
            self._engine.delete(MACHINE, id, actor=ACTOR, reason="begins again")
            self._begin(id)
        elif "refused" in request.configuration:
            self._correct(request)

    def _begin(self, id: str) -> None:
        account = self._waiting(self._account(self._random))
        device, service = account.id.split(":")
        token = account.data.get("token", "") if self._random.random() < RIGHT else "WRONG1"
        self._engine.create(MACHINE, id, {"device": device, "service": service, "token": token}, actor=ACTOR)

    def _correct(self, request: Instance) -> None:
        account = self._waiting(f"{request.data['device']}:{request.data['service']}")
        self._engine.fire(MACHINE, request.id, "correct", {"token": account.data.get("token", "")}, actor=ACTOR)

    def _waiting(self, id: str) -> Instance:
        """Return the account, after the device asked for a code if it had none."""
        account = self._engine.get("activation", id)
        if account.state == "New":
            return self._engine.fire("activation", id, "activate", {"token": ""}, actor=ACTOR)
        return account


def request_id(number: int) -> str:
    return f"A-{7000 + number}"
