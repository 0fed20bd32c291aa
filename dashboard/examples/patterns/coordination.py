"""The sections of throttle, ids, locks and bus: what processes agree on, and what they tell each other."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from random import Random
from typing import Any

from django.http import HttpRequest, QueryDict

from machines.connections import get_pattern
from machines.patterns import Blocks, Bus, Full, HeldLock, Locks, Lost, Snowflakes, Stream, Taken, Throttle, decode
from machines.patterns.locks import CLOCK
from machines.statistics.ages import format_age

from .section import Form, Section, Table, View, connect, read_choice

PEOPLE = ("Ann", "Ben")


class ThrottleSection(Section):
    name, title = "throttle", "Throttle"
    summary = "Rate limits shared by all processes, checked in one call."
    BUCKET, KEY, LIMIT, PER = "demo.hits", "everybody", 5, 20  # seconds

    def show(self, request: HttpRequest) -> View:
        (_, keys), rows = connect(), []
        for title, window in (("Steady rate", False), ("Fixed window", True)):
            now = get_pattern(Throttle).look(self.BUCKET, self.KEY, limit=self.LIMIT, per=self.PER, window=window)
            again = f"in {now.retry_after:.1f} s" if now.retry_after else "now"
            rows.append((title, now.remaining, f"{now.reset_after:.1f} s", again))
        return View(
            {"limit": self.LIMIT, "in": f"{self.PER} s", "shared by": "all viewers of this page"},
            f"A steady rate allows a burst of {self.LIMIT}, then one every {self.PER // self.LIMIT} s; a fixed window "
            f"allows {self.LIMIT} per {self.PER} s.",
            [Form(("send_at_a_steady_rate", "send_in_a_fixed_window"), choices={"cost": range(1, self.LIMIT + 1)})],
            [keys.pace(self.BUCKET, self.KEY).run, keys.window(self.BUCKET, self.KEY).count],
            [Table("Limits", ("Limit", "Remaining", "Resets in", "Next allowed"), rows)],
        )

    def do_send_at_a_steady_rate(self, request: HttpRequest, form: QueryDict) -> str:
        return self._send(get_pattern(Throttle).take, form)

    def do_send_in_a_fixed_window(self, request: HttpRequest, form: QueryDict) -> str:
        return self._send(get_pattern(Throttle).count, form)

    def _send(self, take: Any, form: QueryDict) -> str:
        wanted = form.get("cost", "1")
        cost = int(wanted) if wanted.isdecimal() and len(wanted) < 4 else 0  # the throttle refuses 0 with a reason
        verdict = take(self.BUCKET, self.KEY, limit=self.LIMIT, per=self.PER, cost=cost)
        if not verdict.allowed:
            return f"refused: retry in {max(0.1, verdict.retry_after):.1f} s for {cost}"
        return f"allowed: {cost} used, {verdict.remaining} remaining, resets in {verdict.reset_after:.1f} s"

    def move(self, random: Random) -> None:
        get_pattern(Throttle).take(self.BUCKET, self.KEY, limit=self.LIMIT, per=self.PER)


class Generators:
    """Two generators of one name, as two processes would have them, and numbers in blocks."""

    NAME, NUMBERS = "demo.ids", "demo.numbers"
    LEASE = 5.0  # seconds: short, so that a node can be taken over while one looks

    def __init__(self) -> None:
        self.first, self.second = (
            get_pattern(Snowflakes, self.NAME, lease=self.LEASE, copy=number) for number in range(2)
        )
        self.numbers = get_pattern(Blocks, self.NUMBERS, size=100)


class IdsSection(Section):
    name, title = "ids", "Ids"
    summary = "Unique ids that sort by time, generated locally from time ranges leased in Redis; and numbers in blocks."
    SHOWN = 6  # nodes

    def show(self, request: HttpRequest) -> View:
        (redis, keys), made, now = connect(), Generators(), time.time() * 1000
        ids = keys.ids(made.NAME)
        last = redis.zrevrange(ids.nodes, 0, self.SHOWN - 1, withscores=True)
        acts = ("generate_with_the_first", "generate_with_the_second", "take_over_with_the_second", "generate_number")
        rows = []
        for name, held in (("first", made.first.held), ("second", made.second.held)):
            rows.append((name, str(held.node) if held else "–", _say_moment(held.until, now) if held else "no ids yet"))
        nodes = [(int(node), _say_moment(int(until), now)) for node, until in last]
        return View(
            {"lease": f"{made.LEASE:g} s", "nodes": 1024},
            "When the range of the first generator has expired, the second can take over its node. The first then uses "
            "another node: no id is generated twice.",
            [Form(acts)],
            [ids.nodes, ids.holders, ids.guard, keys.block(made.NUMBERS).next],
            [
                Table("Two generators of one name in this process", ("Generator", "Node", "Range ends"), rows),
                Table("Nodes in Redis", ("Node", "Range ends"), nodes),
            ],
        )

    def do_generate_with_the_first(self, request: HttpRequest, form: QueryDict) -> str:
        return self._generate(Generators().first)

    def do_generate_with_the_second(self, request: HttpRequest, form: QueryDict) -> str:
        return self._generate(Generators().second)

    def do_take_over_with_the_second(self, request: HttpRequest, form: QueryDict) -> str:
        """Give the node of the second back and take the one whose ranges have been over longest: that of the first,
        once that has been still for a lease."""
        made = Generators()
        still = made.first.held
        made.second.close()
        id = made.second.next()
        node = decode(id).node
        taken = still is not None and still.node == node
        return f"{id}: by node {node}, " + ("taken over from the first generator" if taken else "the one free longest")

    def do_generate_number(self, request: HttpRequest, form: QueryDict) -> str:
        return f"{Generators().numbers.next_text()}: one of a block of 100"

    def _generate(self, ids: Snowflakes) -> str:
        made = ids.many(3)
        return f"{', '.join(made)}: by node {decode(made[0]).node}"

    def move(self, random: Random) -> None:
        Generators().first.next()


class LocksSection(Section):
    name, title = "locks", "Locks"
    summary = "Locks with an expiry and a fence that detects late owners."
    LOCK, TTL, TRAFFIC_TTL = "demo.lever", 20.0, 2.0  # seconds
    SELDOM = 0.15  # of the turns of the traffic
    SESSION = "patterns_locks"

    def show(self, request: HttpRequest) -> View:
        keys, holder = connect()[1].lock(self.LOCK), get_pattern(Locks).peek(self.LOCK)
        facts: dict[str, Any] = {"owner": holder.owner if holder else "none"}
        if holder:
            facts |= {"fence": holder.fence, "for": format_age(time.time() - holder.since / 1000)}
        if holder and holder.left is not None:
            facts["ends in"] = f"{holder.left:.1f} s"
        return View(
            facts,
            "Acquire the lock as Ann, then as Ben, here or in another tab: Ben gets the remaining time. Ann's lock "
            f"ends only when it is released or expires ({self.TTL:.0f} s).",
            [Form(("acquire", "renew", "release"), name, {"who": name}) for name in PEOPLE],
            [keys.holder, keys.last],
        )

    def do_acquire(self, request: HttpRequest, form: QueryDict) -> str:
        name = read_choice(form, "who", PEOPLE)
        held = get_pattern(Locks).lock(self.LOCK, ttl=self.TTL, owner=self._name_owner(request, name)).acquire()
        request.session[self.SESSION] = request.session.get(self.SESSION, {}) | {name: [held.token, held.fence]}
        return f"{name} acquired the lock, fence {held.fence}, for {self.TTL:.0f} s"

    def do_renew(self, request: HttpRequest, form: QueryDict) -> str:
        self._find_held(request, form).renew()
        return f"{form['who']} renewed the lock for {self.TTL:.0f} s, same fence"

    def do_release(self, request: HttpRequest, form: QueryDict) -> str:
        if not self._find_held(request, form).release():
            return f"{form['who']} no longer owned the lock: nothing was released"
        return f"{form['who']} released the lock"

    def _find_held(self, request: HttpRequest, form: QueryDict) -> HeldLock:
        """Return the lock as this person took it, even if it expired since."""
        name = read_choice(form, "who", PEOPLE)
        token, fence = request.session.get(self.SESSION, {}).get(name, ("", 0))
        if not token:
            raise Lost(f"{name} does not own the lock")
        owner = self._name_owner(request, name)
        return HeldLock(get_pattern(Locks), self.LOCK, owner, token, fence, int(self.TTL * 1000), CLOCK())

    def _name_owner(self, request: HttpRequest, name: str) -> str:
        return f"{name}, played by {request.user.get_username()}"[:150]

    def move(self, random: Random) -> None:
        if random.random() < self.SELDOM:
            with suppress(Taken):
                get_pattern(Locks).lock(self.LOCK, ttl=self.TRAFFIC_TTL, owner="traffic").acquire()


class BusSection(Section):
    name, title = "bus", "Bus"
    summary = "Publish and subscribe, and streams with consumer groups."
    GROUP, TOPIC = "billing", "demo.news"
    MOST = 8  # messages
    IDLE = 10.0  # seconds after which a message goes to the next reader

    @staticmethod
    def open() -> Stream:
        return get_pattern(Stream, "demo.orders", most=BusSection.MOST)

    def show(self, request: HttpRequest) -> View:
        redis, stream = connect()[0], self.open()
        messages = redis.xrange(stream.keys.log, count=self.MOST)
        lag = next((lag for lag in stream.lag() if lag.group == self.GROUP), None)
        pending = {row["message_id"]: row for row in self._list_pending()} if lag and lag.pending else {}
        facts: dict[str, Any] = {"messages": f"{len(messages)} of {self.MOST}"}
        if lag:
            facts |= {"unread": "?" if lag.unread is None else lag.unread, "pending": lag.pending}
        for name in PEOPLE:
            facts[f"with {name}"] = sum(row["consumer"] == name for row in pending.values())
        last = _order(lag.last) if lag else (0, 0)
        return View(
            facts,
            f"Take messages as Ann without acknowledging them: after {self.IDLE:.0f} s Ben gets them. Pending messages "
            "are never dropped; a full stream refuses new ones. A topic reaches only those who listen.",
            [
                *(Form(("take_two", "acknowledge"), name, {"who": name}) for name in PEOPLE),
                Form(("append_message",), "Stream"),
                Form(("publish",), "Topic", texts={"text": "hello"}),
            ],
            [stream.keys.log, stream.keys.dead],
            [
                Table(
                    "Messages of the stream",
                    ("Message", "Appended", "Deliveries", "Status"),
                    [self._row(id, body, pending.get(id), _order(id) <= last) for id, body in messages],
                )
            ],
        )

    def _row(self, id: str, fields: dict[str, str], held: dict[str, Any] | None, given: bool) -> tuple[Any, ...]:
        times, state = 0, "done" if given else "waits"
        if held is not None:
            late = held["time_since_delivered"] >= self.IDLE * 1000
            times, state = held["times_delivered"], f"delivered to {held['consumer']}" + (", idle" if late else "")
        try:
            order = json.loads(fields["body"])
            text = f"order {order['order']} by {order['by']}"
        except (KeyError, TypeError, ValueError):  # another program appended it
            text = "?"
        return text, f"{format_age(time.time() - _order(id)[0] / 1000)} ago", times, state

    def _list_pending(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = connect()[0].xpending_range(self.open().keys.log, self.GROUP, "-", "+", self.MOST)
        return found

    def _join(self) -> Stream:
        stream = self.open()
        stream.group(self.GROUP)
        return stream

    def do_append_message(self, request: HttpRequest, form: QueryDict) -> str:
        order = {"order": time.time_ns() // 1_000_000 % 100_000, "by": request.user.get_username()[:30]}
        return f"appended as {self._join().append(order)}"

    def do_take_two(self, request: HttpRequest, form: QueryDict) -> str:
        name = read_choice(form, "who", PEOPLE)
        found = self._join().read(self.GROUP, name, count=2, idle=self.IDLE)
        if not found:
            return f"{name} received nothing: no new messages and none idle for {self.IDLE:.0f} s"
        again = sum(message.deliveries > 1 for message in found)
        return f"{name} received {len(found)}" + (f", {again} of them redelivered" if again else "")

    def do_acknowledge(self, request: HttpRequest, form: QueryDict) -> str:
        name, stream = read_choice(form, "who", PEOPLE), self._join()
        own = [row["message_id"] for row in self._list_pending() if row["consumer"] == name]
        return f"{name} acknowledged {stream.ack(self.GROUP, *own)}" if own else f"{name} has nothing to acknowledge"

    def do_publish(self, request: HttpRequest, form: QueryDict) -> str:
        heard = get_pattern(Bus).publish(self.TOPIC, {"text": form.get("text", "")[:60]})
        return f"{heard} received it" if heard else "no subscribers: the message is dropped"

    def move(self, random: Random) -> None:
        """Append an order, and bill the oldest that Ann and Ben have left alone."""
        orders = self._join()
        for message in orders.read(self.GROUP, "traffic", count=1, idle=4 * self.IDLE):
            orders.ack(self.GROUP, message.id)
        with suppress(Full):
            orders.append({"order": random.randrange(100_000), "by": "traffic"})
        get_pattern(Bus).publish(self.TOPIC, {"text": "the traffic was here"})


def _say_moment(ms: float, now: float) -> str:
    return f"in {format_age((ms - now) / 1000)}" if ms > now else f"ended {format_age((now - ms) / 1000)} ago"


def _order(id: str) -> tuple[int, int]:
    ms, _, number = id.partition("-")
    return int(ms), int(number or 0)
