"""The scoreboard on the Patterns page: points for players, with ties, on a board of today and one that fades."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, QueryDict

from machines.connections import get_engine, get_pattern
from machines.engine.connection.client import Client
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Scoreboard
from machines.patterns.arguments import check_key

TITLE = "Scoreboard"
TELLS = "Rankings with ties, daily boards and decaying scores, in bounded space."

NAME, FADING = "demo.today", "demo.fading"
MOST, HALF_LIFE = 8, 60  # seconds
PLAYERS = ("ann", "bob", "cid", "dan", "eve", "fay")
POINTS = (1, 5)


class Boards:
    """The same points on both."""

    def __init__(self, redis: Client, prefix: str) -> None:
        self.today = Scoreboard(redis, NAME, prefix=prefix, most=MOST, period="day", keep=1)
        self.fading = Scoreboard(redis, FADING, prefix=prefix, most=MOST, half_life=HALF_LIFE)


MAKE = Boards


def example(boards: Boards) -> None:
    boards.today.reset()
    boards.today.add_many({"ann": 9, "bob": 5, "cid": 5, "dan": 1})
    assert [place.rank for place in boards.today.top(4)] == [1, 2, 2, 4]
    place = boards.today.add("dan", 4)  # where that leaves dan, from the same call
    assert (place.rank, place.score, place.tied) == (2, 5.0, True)
    assert [near.rank for near in boards.today.around("ann", 1)] == [1, 2]
    boards.today.reset()


def show(request: HttpRequest) -> dict[str, Any]:
    boards, keys = get_pattern(Boards), PatternKeys(get_engine().keys.prefix)
    return {
        "players": PLAYERS,
        "points": POINTS,
        "most": MOST,
        "half_life": HALF_LIFE,
        "tables": [("Today", boards.today.top(MOST)), ("Fading", boards.fading.top(MOST))],
        "keys": [keys.board(FADING).scores("all"), keys.board(FADING).epoch],
    }


def give(request: HttpRequest, asked: QueryDict) -> str:
    boards, player = get_pattern(Boards), check_key(asked.get("player", ""), "a player", most=20)
    points = 5 if asked.get("points") == "5" else 1
    boards.fading.add(player, points)
    place = boards.today.add(player, points)
    if place is None:
        return f"{player} does not reach the top {MOST}"
    return f"{player} has {place.score:g} today, rank {place.rank}{', tied' if place.tied else ''}"


def reset(request: HttpRequest, asked: QueryDict) -> str:
    boards = get_pattern(Boards)
    boards.fading.reset()
    return f"both boards reset; {boards.today.reset()} entries removed from today's board"


ACTS = {"give": give, "reset": reset}
