"""A machine whose jobs die as the tests say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from machines.engine import Engine
from machines.jobs.failures.duties import FailureFollower
from machines.models import FailureGroup
from tests.engine.builders import errand


def stuck(**invoke: Any) -> dict[str, Any]:
    """``errand`` whose instances wait on when their job dies: such jobs are open failures."""
    definition = errand(**invoke)
    del definition["states"]["Busy"]["invoke"]["onError"], definition["states"]["Failed"]
    return definition


@pytest.fixture
def die(engine: Engine, transactional_db: None) -> Callable[..., None]:
    """``die("a", "b")``: one instance for each name, whose job dies with ``error``."""

    def die(*names: str, error: str = "boom 1", kind: str = "ValueError", machine: str = "errand") -> None:
        if machine not in engine.machines():
            engine.publish(stuck() | {"id": machine})
        for name in names:
            engine.create(machine, name)
            engine.fire(machine, name, "start")
            (job,) = engine.take(machine, "work", "w")
            engine.fail(job, error, kind=kind, trace=f"Traceback\n{kind}: {error}", retry=False)

    return die


@pytest.fixture
def follow(engine: Engine) -> Callable[[], bool]:
    """One pass of a follower that has just started."""

    def follow(**options: Any) -> bool:
        return FailureFollower(engine).look()

    return follow


def only_group() -> FailureGroup:
    return FailureGroup.objects.get()
