"""Records the alarms of the whole installation, for the background duty of a worker."""

from __future__ import annotations

from machines.access.permissions import EVERYTHING
from machines.alarms import recording
from machines.connections import get_engine
from machines.engine.keys import get_machine
from machines.statistics import present

from .collection import detect_alarms


def record_alarms() -> None:
    """Record which alarms are new, worse or over. Raises EngineUnavailable and errors of the database."""
    survey = get_engine().survey(trust=True)
    alarms = detect_alarms(EVERYTHING, survey, present(survey.lives))
    recording.record(alarms, unknown={*survey.faults, *map(get_machine, survey.missing)})
