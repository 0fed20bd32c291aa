"""Records the alarms of the whole installation, for the background duty of a worker."""

from __future__ import annotations

from machines.connections import get_engine
from machines.engine.keys import get_machine
from machines.people.permissions import EVERYTHING

from . import recording
from .queries import detect_alarms


def record_alarms() -> None:
    """Record which alarms are new, worse or over. Raises EngineUnavailable and errors of the database."""
    survey = get_engine().survey(trust=True)
    alarms = detect_alarms(EVERYTHING, survey)
    recording.record(alarms, unknown={*survey.faults, *map(get_machine, survey.missing)})
