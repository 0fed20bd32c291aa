"""Every public call of every pattern, with the kind of each argument; and what an argument of a kind must not be.

A value that only a server can give, such as a token, is a function of the stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

NAN, INF = float("nan"), float("inf")
PAST_EXACT, PAST_LONG = 2**53 + 1, 2**63
NOTHING_JSON_SAYS = object()

NAME = ["", " ", "a b", "a:b", "{a}", "a}b", "é", "x" * 65, "a\n", ".a", "1a", None, 7, True, b"x"]
KEY = ["", None, 7, True, b"x", "\ud800", "x" * 513]
COUNT = [True, 0, -1, 1.0, 1.5, NAN, INF, PAST_EXACT, PAST_LONG, "5", b"5", [1]]
INDEX = [value for value in COUNT if value is True or value != 0]  # 0 is one
POINTS = [True, NAN, INF, -INF, 2**53, -(2**53), PAST_EXACT, -PAST_EXACT, PAST_LONG, "5", None]
SECONDS = [True, 0, -1, NAN, INF, PAST_LONG, "5", b"5"]
PAUSE = [value for value in SECONDS if value is True or value != 0]
NOW = [True, -1, 1.5, NAN, INF, 10**14, PAST_EXACT, "5", b"5"]
FLAG = [None, 0, 1, "yes"]
STATE = [7, [1], "x", b"x", {"a": NAN}, {"a": INF}, {"a": NOTHING_JSON_SAYS}, {"a": {1}}, {"a": "\ud800"}]
PERIOD = ["", "year", 7, b"day", []]
PARTS = [None, "", "ab", 7, [], [7], [None], ["\ud800"], ["a"] * 9]
KEYS = [None, "ab", 7, [7], [None], [""], ["x" * 513]]
FUNCTION = [None, "f", 7]
BODY = [NAN, INF, {"a": NAN}, NOTHING_JSON_SAYS, {1}, b"x", "x" * 65_535]
ID = ["", "x", "1", "x-1", "1-", "-1-1", "1.5-0", "1-1-1", "1-1 ", f"{2**64}-0", f"0-{2**64}", "1" * 50, "١-٠"]
ID += [None, 7, b"1-1"]
# What a key may well be: it stands behind the hash tag, or is a member.
ODD_KEYS = ["a:b", "{a}", "a}b", "{", "}{", " ", "a\nb", "a\0b", "é 🚦", "0", "-inf", "nan", "*", "x" * 128, "é\u202e"]
ODD_KEYS += ["WITHSCORES"]


@dataclass(frozen=True)
class Row:
    """``takes``: argument -> its kind, and a value that is right; ``*name`` takes several. ``on``: the object whose
    method it is, of the stage. ``silent``: it asks Redis nothing."""

    of: type
    method: str
    takes: dict[str, tuple[list[Any], Any]] = field(default_factory=dict)
    on: Callable[[SimpleNamespace], Any] = lambda stage: stage.made
    silent: bool = False

    def __str__(self) -> str:
        return f"{self.of.__name__}.{self.method}"

    def call(self, stage: SimpleNamespace, instead: dict[str, Any]) -> Any:
        given = {name: good(stage) if callable(good) else good for name, (_, good) in self.takes.items()} | instead
        star = next((name for name in given if name.startswith("*")), None)
        # Whatever stands in front of many stands in its place.
        placed = [given.pop(name) for name in list(given)[: list(given).index(star) + 1]] if star else []
        if self.method == "__init__":
            return self.of(stage.redis, prefix=stage.prefix, **given)
        return getattr(self.on(stage), self.method)(*placed, **given)
