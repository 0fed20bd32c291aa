"""Job handlers of this app: those of map-reduce, bulk actions and schedules, and the tasks of the project."""

from machines.instances.bulks import handlers as of_bulks
from machines.integrations.tasks.checks import is_configured

from .mapreduce import handlers as of_runs
from .schedules import execution as of_schedules

__all__ = ["of_bulks", "of_runs", "of_schedules"]

if is_configured():
    from machines.integrations.tasks import execution

    execution.prepare()
