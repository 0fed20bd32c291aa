"""What the tests of pages and of services have, for those of safety; and the world of the matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.pages.conftest import activation, as_, delivery, devices, user_of, waiting
from tests.people.orders import actor, person

from . import world as worlds
from .between import Between
from .people import KINDS, Kind, make_client

__all__ = ["activation", "actor", "as_", "delivery", "devices", "person", "user_of", "waiting"]


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    return Between(monkeypatch)


@pytest.fixture(scope="module")
def standing_world(redis_url: str, django_db_setup: None, django_db_blocker: Any) -> Iterator[worlds.World]:
    """Something at every address of the site. What is asked for with ``ask`` has not happened afterwards."""
    with django_db_blocker.unblock(), worlds.made(redis_url, worlds.build) as made:
        yield made


@pytest.fixture(scope="module")
def visitors(standing_world: worlds.World) -> dict[Kind, Any]:
    """A client of each kind of people and programs."""
    return {kind: make_client(kind) for kind in KINDS}


@pytest.fixture
def world(standing_world: worlds.World, visitors: dict[Kind, Any], db: None) -> worlds.World:
    """The same in every test, with everybody in it."""
    standing_world.settle()
    return standing_world


@pytest.fixture(scope="module")
def short_refusals() -> Iterator[None]:
    """For tests that look at the status of a refusal, and at its code."""
    with worlds.short_refusals():
        yield
