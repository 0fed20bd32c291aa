"""The handlers are registered, as a worker's discovery does it."""

from __future__ import annotations

from machines.worker.registry import discover

discover()
