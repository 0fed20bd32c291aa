"""Job handlers of this app: those of map-reduce and of bulk actions, and the tasks of the project."""

from .bulk import handlers as of_bulks
from .mapreduce import handlers as of_runs
from .tasks.checks import is_configured

__all__ = ["of_bulks", "of_runs"]

if is_configured():
    from .tasks import workers

    workers.prepare()
