"""What happens now: rates out of what was measured last and what the counters say since."""

from __future__ import annotations

from dataclasses import replace

import pytest

from machines.insight.statistics.present import Present, present, storms
from machines.models import Measurement, SamplingTurn

from .conftest import MINUTE, START


def rates(box, minutes: float) -> dict[str, Present]:
    return present(box.survey().lives, START + int(minutes * MINUTE))


def test_rates_are_of_the_last_minutes_and_of_what_came_since(box, sample, rounds, refuse):
    assert rates(box, 0) == {}  # nobody has measured
    sample(0)
    rounds(30)
    sample(1)
    refuse(40)
    rounds(15)
    found = rates(box, 1.5)["errand"]
    assert (found.transitions, found.refused["abandon"]) == (60, pytest.approx(26.7, abs=0.1))
    assert rates(box, 1 + 3) == {}  # the worker is gone: nobody knows about now
    assert present({"errand": replace(box.live("errand"), flow={})}, START + MINUTE + 30_000) == {}


@pytest.mark.parametrize(
    ("refused", "usual", "said"),
    [
        ({"entitle": 59.0}, 0, []),
        ({"entitle": 40.0, "close": 80.0, "": 1.0}, 0, [("m", 121.0, ["close", "entitle", ""])]),
        ({"entitle": 120.0}, 39, [("m", 120.0, ["entitle"])]),
        ({"entitle": 120.0}, 41, []),  # it refuses as much all day long
    ],
)
@pytest.mark.django_db
def test_a_storm_is_many_and_more_than_usual(refused, usual, said):
    hour = START // 3_600_000 * 3600
    for back in (0, 1, 2):
        Measurement.objects.create(
            machine="m", period=3600, at=hour - back * 3600, covered=60 * MINUTE, refused=0 if back == 0 else usual * 60
        )
    SamplingTurn.objects.create(pk=1)
    found = storms({"m": Present(10.0, refused), "quiet": Present(5.0)})
    assert [(storm.machine, storm.rate, storm.events) for storm in found] == said
