"""Collects what needs attention now for the overview, the page of alarms, the API and the metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dashboard.shared.errors.redis_outage import Panels
from machines.alarms.alarm import Alarm, sort_alarms
from machines.alarms.queries import detect_alarms
from machines.alarms.recording import merge_states
from machines.engine import Survey
from machines.failures.queries import find_top_groups
from machines.people.permissions import Scope
from machines.statistics.present import Present, present

from .links import link_alarm, link_error


class Alarms(list[Alarm]):
    """The alarms that are not snoozed, the worst first and the oldest of each severity first; ``snoozed`` has the
    others. ``rates``: those that they were detected by."""

    def __init__(self, alarms: Iterable[Alarm], rates: Mapping[str, Present]) -> None:
        ordered = sort_alarms(alarms)
        super().__init__(alarm for alarm in ordered if not alarm.is_snoozed)
        self.snoozed = [alarm for alarm in ordered if alarm.is_snoozed]
        self.rates = rates


def collect_alarms(scope: Scope, operated: Scope, survey: Survey, panels: Panels | None = None) -> Alarms:
    """Collect the alarms of the machines in scope, with what people did about them.

    ``operated``: the machines on which the viewer may act; ``panels``: of the page, which goes on without ``rates``.
    Raises EngineUnavailable.
    """
    rates = (panels or Panels()).read("rates", lambda: present(survey.lives, survey.now), {})
    return Alarms(link_alarms(merge_states(detect_alarms(scope, survey, rates)), operated), rates)


def link_alarms(alarms: Sequence[Alarm], operated: Scope) -> list[Alarm]:
    """Return the alarms with the addresses of what they are about, and of the most frequent error of dead jobs."""
    groups = find_top_groups((alarm.machine, alarm.subject) for alarm in alarms if alarm.kind == "dead")
    return [link_error(link_alarm(alarm, operated), groups.get((alarm.machine, alarm.subject))) for alarm in alarms]
