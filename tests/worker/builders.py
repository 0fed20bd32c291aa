"""Machines with work to do, and workers to do it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from machines.engine import Engine, Job
from machines.worker.duties.exclusive_duties import Duty
from machines.worker.launcher import Launcher
from machines.worker.options import Options
from machines.worker.registry import Registry

START = 1_700_000_000_000  # ms: when tests that set the time begin
LEASE = 10_000  # ms
BACKOFF = 1_000  # ms


def errand(
    id: str = "errand", *, src: str = "run", queue: str = "errands", backoff: str = "1s", lease: str = "10s"
) -> dict[str, Any]:
    """One job with two attempts: done, failed or cancelled."""
    return {
        "id": id,
        "initial": "doing",
        "context": {"type": "object", "properties": {"what": {"type": "string", "default": ""}, "answer": {}}},
        "states": {
            "doing": {
                "invoke": {
                    "src": src,
                    "queue": queue,
                    "retry": {"attempts": 2, "backoff": backoff, "jitter": False},
                    "lease": lease,
                    "onDone": {"target": "done", "actions": {"set": {"answer": "event.result"}}},
                    "onError": {
                        "target": "failed",
                        "actions": {"set": {"answer": "[event.kind, event.error, event.attempts]"}},
                    },
                },
                "on": {"cancel": "cancelled"},
            },
            "done": {"type": "final"},
            "failed": {},
            "cancelled": {},
        },
    }


def take_one(engine: Engine, worker: str = "alice", *, now: int = START, machine: str = "errand") -> Job:
    """The only ready job, which has to be there."""
    (job,) = engine.take(machine, "errands", worker, count=10, now=now)
    return job


def places(engine: Engine, machine: str = "errand", queue: str = "errands") -> dict[str, int]:
    """Depths of a queue, without the places where nothing is."""
    return {place: depth for place, depth in engine.queues(machine)[queue].items() if depth}


def options(**given: Any) -> Options:
    """Quick on its feet: short waits instead of long ones."""
    return Options(
        **{"block": 0.2, "beat": 0.1, "sweep": 0.1, "backoff": 0.1, "grace": 5.0, "helper_limit": 0.0} | given
    )


def drain(engine: Engine, registry: Registry, **given: Any) -> Launcher:
    """A worker in this process that works until nothing is left."""
    launcher = Launcher(engine, registry, options(drain=True, **given))
    launcher.run()
    return launcher


class Running:
    """A worker in a thread of this process; leaving the block stops it."""

    def __init__(
        self, engine: Engine, registry: Registry, duties: Mapping[str, Duty] | None = None, **given: Any
    ) -> None:
        self.launcher = Launcher(engine, registry, options(**given), duties=duties)
        self._thread = threading.Thread(target=self.launcher.run)

    def __enter__(self) -> Launcher:
        self._thread.start()
        return self.launcher

    def __exit__(self, *_: object) -> None:
        self.launcher.stop()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the worker did not stop"


def registry_of(**functions: Callable[..., Any]) -> Registry:
    """A registry with these handlers."""
    registry = Registry()
    for name, function in functions.items():
        registry.handler(name)(function)
    return registry
