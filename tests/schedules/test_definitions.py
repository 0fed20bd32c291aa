"""Schedules that a definition brings along."""

from __future__ import annotations

import pytest

from machines.catalog import publishing
from machines.engine.errors import DefinitionError
from machines.schedules import DeclaredSchedule

from .conftest import REPORT

pytestmark = pytest.mark.django_db

REMIND = {
    "name": "remind",
    "when": {"cron": "0 9 * * MON"},
    "what": {"do": "fire_all", "filter": {"state": "open"}, "event": "remind"},
}


def test_publishing_makes_and_removes_the_schedules_of_the_current_version(clock):
    publishing.publish(REPORT | {"schedules": [REMIND]})
    (row,) = clock.schedules.find()
    assert (row.name, row.source, row.schedule.machine) == ("report.remind", "the definition of report", "report")
    with pytest.raises(DeclaredSchedule):
        clock.schedules.remove("report.remind")
    publishing.publish(REPORT | {"schedules": [REMIND | {"zone": "Europe/Zurich"}], "description": "in Zurich"})
    assert clock.schedules.get("report.remind").schedule.zone == "Europe/Zurich"
    publishing.publish(REPORT)
    assert clock.schedules.find() == []


def test_a_version_of_a_script_gets_its_schedules_when_it_is_recorded(clock):
    clock.engine.publish(REPORT | {"description": "by a script", "schedules": [REMIND]})
    assert clock.schedules.find() == []
    publishing.adopt("report")
    assert [row.name for row in clock.schedules.find()] == ["report.remind"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"when": {"cron": "0 0 30 2 *"}}, "SB126 schedules[0].when.cron"),
        ({"what": {"do": "fire_all", "filter": {}, "event": "rmind"}}, "did you mean remind?"),
        ({"what": {"do": "create", "machine": "order"}}, "leave it out: it is report"),
        ({"name": "not so good"}, "SB126 schedules[0].name"),
    ],
)
def test_what_does_not_fit_stops_publishing(clock, given, said):
    with pytest.raises(DefinitionError) as raised:
        publishing.publish(REPORT | {"schedules": [REMIND | given]})
    assert said in str(raised.value)
