"""The handlers this app brings: those of map-reduce."""

from machines.mapreduce import handlers

__all__ = ["handlers"]
