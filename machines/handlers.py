"""The handlers this app brings: those of map-reduce and of bulks."""

from machines.bulk import handlers as of_bulks
from machines.mapreduce import handlers as of_runs

__all__ = ["of_bulks", "of_runs"]
