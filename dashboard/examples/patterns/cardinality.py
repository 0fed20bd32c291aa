"""Cardinality on the Patterns page: visitors by the hundred, who come on several days and count once."""

from __future__ import annotations

import random
import time
from datetime import UTC, date, datetime
from typing import Any

from django.http import HttpRequest, QueryDict

from machines.connections import get_engine, get_pattern
from machines.engine.connection.client import Client
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Cardinality, Count

TITLE = "Cardinality"
TELLS = "Unique counts per day, week and month: an exact set while small, a 12 KB sketch after."

NAME = "demo.visitors"
EXACT = 200  # members up to which a day of the demo is exact
CROWD = 5_000  # people there are
AT_ONCE = 150
DAY = 86_400_000  # ms


def make(redis: Client, prefix: str) -> Cardinality:
    return Cardinality(redis, NAME, prefix=prefix, exact=EXACT, keep=31)


MAKE = make


def example(visitors: Cardinality) -> None:
    assert visitors.add("ann", "bob", part="example") == 2
    assert visitors.add("bob", "cid", part="example") == 1  # bob came before
    visitors.add("ann", "dan", part="example.app")
    both = visitors.count("week", parts=["example", "example.app"])
    assert (both.number, both.exact) == (4, True)  # ann counts once


def show(request: HttpRequest) -> dict[str, Any]:
    visitors, keys = get_pattern(make), PatternKeys(get_engine().keys.prefix).distinct(NAME)
    today = int(time.time() * 1000) // DAY
    return {
        "periods": [(period, visitors.count(period)) for period in ("day", "week", "month")],
        "days": [(_day(count), count) for count in visitors.series("day", 5)],
        "exact": EXACT,
        "at_once": AT_ONCE,
        "keys": [keys.set(today, ""), keys.sketch(today, ""), keys.sketch(today - 1, "")],
    }


def _day(count: Count) -> date:
    return datetime.fromtimestamp(count.begin / 1000, UTC).date()


def come(request: HttpRequest, asked: QueryDict) -> str:
    return f"{AT_ONCE} visitors today, {_come(0)} of them new today"


def yesterday(request: HttpRequest, asked: QueryDict) -> str:
    return f"{AT_ONCE} visitors yesterday, {_come(1)} of them new that day"


def same(request: HttpRequest, asked: QueryDict) -> str:
    """Always the same ten: nothing grows after the first time."""
    new = get_pattern(make).add(*(f"regular-{number}" for number in range(10)))
    return f"the same 10 visitors, {new} of them new today"


def _come(ago: int) -> int:
    people = random.sample(range(CROWD), AT_ONCE)
    return get_pattern(make).add(*(f"person-{number}" for number in people), now=int(time.time() * 1000) - ago * DAY)


ACTS = {"come": come, "yesterday": yesterday, "same": same}
