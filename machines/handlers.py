"""The handlers this app brings: those of map-reduce and of bulks."""

from .bulk import handlers as of_bulks
from .mapreduce import handlers as of_runs

__all__ = ["of_bulks", "of_runs"]
