"""Job handlers of this app: those of map-reduce, bulk actions and schedules, and the tasks of the project."""

from .bulk import handlers as of_bulks
from .mapreduce import handlers as of_runs
from .schedules import handlers as of_schedules
from .tasks.checks import is_configured

__all__ = ["of_bulks", "of_runs", "of_schedules"]

if is_configured():
    from .tasks import workers

    workers.prepare()
