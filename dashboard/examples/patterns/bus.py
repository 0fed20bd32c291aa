"""The bus on the Patterns page: a stream with two readers of one group, and a topic that only listeners hear."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, QueryDict

from machines.connections import get_engine, get_pattern
from machines.engine import BadInput
from machines.engine.connection.client import Client
from machines.patterns import Bus, Stream

TITLE = "Bus"
TELLS = "Publish and subscribe, and streams with consumer groups."

STREAM, GROUP, TOPIC = "demo.orders", "billing", "demo.news"
MOST = 8  # messages
IDLE = 10.0  # seconds after which a reader is taken for dead
READERS = ("Ann", "Ben")


@dataclass(frozen=True, slots=True)
class Pair:
    bus: Bus
    orders: Stream


def MAKE(redis: Client, prefix: str) -> Pair:
    return Pair(Bus(redis, prefix), Stream(redis, "demo.example", prefix=prefix, most=100))


def demo(redis: Client, prefix: str) -> Stream:
    return Stream(redis, STREAM, prefix=prefix, most=MOST)


def example(pair: Pair) -> None:
    bus, orders = pair.bus, pair.orders
    with bus.subscribe("demo.prices") as prices:
        bus.publish("demo.prices", {"tea": 3})
        assert prices.get(timeout=5).body == {"tea": 3}
    assert bus.publish("demo.prices", {"tea": 4}) == 0  # nobody listens: it is lost

    orders.group("billing")
    id = orders.append({"order": 7})
    orders.read("billing", "Ann")  # and Ann dies
    time.sleep(0.05)
    (message,) = orders.read("billing", "Ben", idle=0.05)
    assert (message.id, message.deliveries) == (id, 2)
    orders.ack("billing", id)
    orders.forget_group("billing")


def show(request: HttpRequest) -> dict[str, Any]:
    redis, stream = get_engine().client, get_pattern(demo)
    rows = redis.xrange(stream.keys.log, count=MOST)
    (lag,) = [found for found in stream.lag() if found.group == GROUP] or [None]
    held = {row["message_id"]: row for row in _pending(redis, stream)} if lag and lag.pending else {}
    last = _order(lag.last) if lag else (0, 0)
    return {
        "messages": [_shown(id, fields, held.get(id), _order(id) <= last) for id, fields in rows],
        "lag": lag,
        "length": len(rows),
        "most": MOST,
        "idle": int(IDLE),
        "readers": [(name, sum(row["consumer"] == name for row in held.values())) for name in READERS],
        "keys": [stream.keys.log, stream.keys.dead],
    }


def _pending(redis: Any, stream: Stream) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = redis.xpending_range(stream.keys.log, GROUP, "-", "+", MOST)
    return found


def _shown(id: str, fields: dict[str, str], held: dict[str, Any] | None, given: bool) -> dict[str, Any]:
    row = {"at": _order(id)[0], "body": _said(fields), "state": "done" if given else "waits", "times": 0}
    if held is None:
        return row
    dead = held["time_since_delivered"] >= IDLE * 1000
    return row | {"state": f"delivered to {held['consumer']}", "times": held["times_delivered"], "late": dead}


def _said(fields: dict[str, str]) -> str:
    try:
        order = json.loads(fields["body"])
        return f"order {order['order']} by {order['by']}"
    except (KeyError, TypeError, ValueError):  # somebody else put it there
        return "?"


def append(request: HttpRequest, asked: QueryDict) -> str:
    stream = get_pattern(demo)
    stream.group(GROUP)
    id = stream.append({"order": time.time_ns() // 1_000_000 % 100_000, "by": request.user.get_username()[:30]})
    return f"appended as {id}"


def take(request: HttpRequest, asked: QueryDict) -> str:
    name, stream = _reader(asked), get_pattern(demo)
    stream.group(GROUP)
    found = stream.read(GROUP, name, count=2, idle=IDLE)
    if not found:
        return f"{name} received nothing: no new messages and none idle for {IDLE:.0f} s"
    again = sum(message.deliveries > 1 for message in found)
    return f"{name} received {len(found)}" + (f", {again} of them redelivered" if again else "")


def ack(request: HttpRequest, asked: QueryDict) -> str:
    name, stream = _reader(asked), get_pattern(demo)
    stream.group(GROUP)
    own = [row["message_id"] for row in _pending(get_engine().client, stream) if row["consumer"] == name]
    if not own:
        return f"{name} has nothing to acknowledge"
    return f"{name} acknowledged {stream.ack(GROUP, *own)}"


def publish(request: HttpRequest, asked: QueryDict) -> str:
    heard = get_pattern(Bus).publish(TOPIC, {"said": asked.get("said", "")[:60]})
    return f"{heard} received it" if heard else "no subscribers: the message is dropped"


def _reader(asked: QueryDict) -> str:
    name = asked.get("who", "")
    if name not in READERS:
        raise BadInput(f"the reader is {' or '.join(READERS)}, not {name!r:.40}", code="SB401")
    return name


def _order(id: str) -> tuple[int, int]:
    ms, _, number = id.partition("-")
    return int(ms), int(number or 0)


ACTS = {"append": append, "take": take, "ack": ack, "publish": publish}
