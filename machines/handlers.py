"""Job handlers of this app: those of map-reduce and of bulk actions."""

from .bulk import handlers as of_bulks
from .mapreduce import handlers as of_runs

__all__ = ["of_bulks", "of_runs"]
