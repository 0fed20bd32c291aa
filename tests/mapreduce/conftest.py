"""What the tests map and reduce is registered, as a worker's discovery would do it."""

from __future__ import annotations

from machines.worker.registry import discover

from .app import handlers

discover()
__all__ = ["handlers"]
