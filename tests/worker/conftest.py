"""A machine with work to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from machines.engine import Engine, Instance
from tests.worker import builders


@pytest.fixture
def errand(engine: Engine) -> Callable[[str], Instance]:
    """Publishes the errand machine; calling it starts one."""
    engine.publish(builders.errand())
    return lambda id: engine.create("errand", id, {"what": f"the errand of {id}"}, now=builders.START)
