"""Records of archived instances."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from machines.engine.instances.retirement import FinishedInstance
from machines.instances.models import ArchivedInstance


def at(text: str) -> int:
    """ms of a day, UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


@pytest.fixture
def record() -> Callable[..., ArchivedInstance]:
    def made(instance: str, finished: int | str = "2026-03-15", *, machine: str = "parcel", state: str = "Shipped",
             **raw: str) -> ArchivedInstance:  # fmt: skip
        ended = at(finished) if isinstance(finished, str) else finished
        fields = {"_version": "3", "_state": state, "_entered": str(ended), "_created": str(ended - 5), "_def": "1:ab"}
        steps = [
            f'[1,{ended - 5},"(create)","New","",0,0,0,0]',
            f'[3,{ended},"ship","{state}","t1","ann",0,0,{{"n":1.50}}]',
        ]
        return ArchivedInstance.of(FinishedInstance(machine, instance, fields | raw, steps), ["amount"], ended + 1000)

    return made
