"""Limits what one person and one address may use of the live view: sockets, topics, commands, connection attempts.

Counted in each process by itself, on its event loop: a client over its share is refused before anything
is looked up for them.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import Counter
from collections.abc import Callable

from dashboard.live.limits import Limits, limits

from .rate_limit import CommandRateLimit

KNOWN = (
    10_000  # addresses and people that are remembered; of those who have not come for long all is there again anyway
)


class Person:
    """What one person has open in this process, in all windows."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.sockets = self.topics = 0
        self.commands = CommandRateLimit(limits.commands_of_person, limits.commands_of_person_per_second, clock)


class Quotas:
    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._attempts: dict[str, CommandRateLimit] = {}
        self._addresses: Counter[str] = Counter()
        self._sessions: Counter[str] = Counter()
        self._people: dict[str, Person] = {}

    def attempt(self, address: str) -> bool:
        """Count an attempt to connect; return False if there were too many."""
        budget = self._attempts.get(address)
        if budget is None:
            if len(self._attempts) >= KNOWN:
                self._attempts.clear()
            budget = self._attempts[address] = CommandRateLimit(
                self._limits.connects, self._limits.connects_per_second, self._clock
            )
        return budget.spend(1)

    def enter(self, address: str, session: str) -> bool:
        """Count a connection of an address, with the session it shows; return False if either has reached its limit."""
        limits = self._limits
        if self._addresses[address] >= limits.sockets_per_address:
            return False
        if session and self._sessions[session] >= limits.sockets_per_person:
            return False
        self._addresses[address] += 1
        self._sessions[session] += 1
        return True

    def exit(self, address: str, session: str) -> None:
        for counter, key in ((self._addresses, address), (self._sessions, session)):
            counter[key] -= 1
            if counter[key] <= 0:
                del counter[key]

    def greet(self, who: str) -> Person | None:
        """Count one more socket of a person; return None if they have reached their limit."""
        person = self._people.get(who)
        if person is None:
            if len(self._people) >= KNOWN:
                self._people = {who: one for who, one in self._people.items() if one.sockets}
            person = self._people[who] = Person(self._limits, self._clock)
        if person.sockets >= self._limits.sockets_per_person:
            return None
        person.sockets += 1
        return person

    @staticmethod
    def part(person: Person) -> None:
        """Remove a socket of the person. What they spent on commands is remembered, so that another socket gains
        nothing."""
        person.sockets -= 1


_quotas: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Quotas] = weakref.WeakKeyDictionary()


def quotas() -> Quotas:
    """Return the quotas of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _quotas.get(loop)
    if found is None:
        found = _quotas[loop] = Quotas(limits())
    return found
