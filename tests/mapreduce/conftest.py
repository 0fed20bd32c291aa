"""What the tests map and reduce is registered, as a worker's discovery would do it."""

from __future__ import annotations

from machines.worker.discovery import discover
from tests.mapreduce.app import handlers

discover()
__all__ = ["handlers"]
