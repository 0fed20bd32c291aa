"""What happens to the patterns of the page all the time: one small thing a turn, so that each section shows life."""

from __future__ import annotations

from contextlib import suppress
from itertools import cycle
from random import Random

from machines.connections import get_pattern
from machines.patterns import Bus, Full, Gone, Locks, Taken, Throttle

from . import bus, cardinality, cas, ids, locks, scoreboard, sessions, throttle, write_buffer

SELDOM = 0.15  # of the turns of what people might be in the middle of
HELD = 2.0  # seconds
GATHER = 20.0  # seconds that clicks wait before the traffic writes them out


class PatternTraffic:
    """In bounded space, as the page's own acts: under the same names."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._token = ""
        turns = (self._sessions, self._clicks, self._throttle, self._ids, self._locks, self._bus)
        self._turns = cycle((*turns, self._visits, self._points, self._cas))

    def move(self) -> None:
        next(self._turns)()

    def _sessions(self) -> None:
        """A basket that fills up, and goes on under another token now and then."""
        held = get_pattern(sessions.MAKE)
        try:
            found = held.rotate(self._token) if self._random.random() < SELDOM else held.get(self._token)
        except Gone:
            found = held.create(sessions.TRAFFIC, {"tea": 0})
        self._token = found.token
        held.put(self._token, {"tea": (found.state["tea"] + 1) % sessions.MOST_TEA})

    def _clicks(self) -> None:
        """One at some door; and what has waited for long, or was left by a flusher that died, is written out."""
        buffer = get_pattern(write_buffer.MAKE)
        buffer.flush(write_buffer.write, limit=write_buffer.LIMIT, lease=write_buffer.LEASE, gather=GATHER)
        buffer.add(self._random.choice(write_buffer.DOORS), counters={"clicks": 1}, fields={"by": "traffic"})

    def _throttle(self) -> None:
        get_pattern(Throttle).take(throttle.NAME, throttle.KEY, limit=throttle.LIMIT, per=throttle.PER)

    def _ids(self) -> None:
        get_pattern(ids.Pair).first.next()

    def _locks(self) -> None:
        if self._random.random() < SELDOM:
            with suppress(Taken):
                get_pattern(Locks).lock(locks.NAME, ttl=HELD, owner="traffic").acquire()

    def _bus(self) -> None:
        """An order comes in, and the oldest that Ann and Ben have left alone is billed."""
        orders = get_pattern(bus.demo)
        orders.group(bus.GROUP)
        for message in orders.read(bus.GROUP, "traffic", count=1, idle=4 * bus.IDLE):
            orders.ack(bus.GROUP, message.id)
        with suppress(Full):
            orders.append({"order": self._random.randrange(100_000), "by": "traffic"})
        get_pattern(Bus).publish(bus.TOPIC, {"said": "the traffic was here"})

    def _visits(self) -> None:
        """Of so few people that today stays exact until somebody on the page lets a crowd come."""
        people = (f"person-{self._random.randrange(cardinality.EXACT // 2)}" for _ in range(3))
        get_pattern(cardinality.MAKE).add(*people)

    def _points(self) -> None:
        boards, player = get_pattern(scoreboard.Boards), self._random.choice(scoreboard.PLAYERS)
        for board in (boards.today, boards.fading):
            board.add(player, 1)

    def _cas(self) -> None:
        if self._random.random() < SELDOM:
            text = f"the traffic was here, {self._random.randrange(100)}"
            get_pattern(cas.records).update(cas.KEY, lambda value: {"text": text, "former": 0, "tries": 1})
