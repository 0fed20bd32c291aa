"""A thousand inputs of one seed: nothing breaks, whatever comes in. ``make fuzz`` goes on looking."""

from __future__ import annotations

from contextlib import closing

import pytest

from .kinds import kind
from .runner import Runner
from .stage import Stage

pytestmark = pytest.mark.redis

SEED = 11
PART = 100  # inputs of one test
COUNTS = {"definitions": 200, "fcalls": 400, "expressions": 200}
COUNTS_OF_SITE = {"payloads": 200, "frames": 100}
HANG = 5_000.0  # ms: what hangs; how long calls take is for ``make fuzz``


def parts(counts: dict[str, int]) -> list[tuple[str, int]]:
    return [(name, start) for name, count in counts.items() for start in range(0, count, PART)]


def nothing_breaks(place: Stage, name: str, start: int) -> None:
    with closing(kind(name)) as played:
        report = Runner(place, played, limit=HANG).run(SEED, range(start, start + PART))
    assert report.inputs == PART
    assert [(each.index, each.why) for each in report.wrong] == []


def test_they_are_a_thousand():
    assert sum(COUNTS.values()) + sum(COUNTS_OF_SITE.values()) >= 1_000


@pytest.mark.parametrize(("name", "start"), parts(COUNTS))
def test_nothing_breaks(server: Stage, name: str, start: int):
    nothing_breaks(server, name, start)


@pytest.mark.parametrize(("name", "start"), parts(COUNTS_OF_SITE))
def test_nothing_breaks_on_the_site(sited: Stage, name: str, start: int):
    nothing_breaks(sited, name, start)
