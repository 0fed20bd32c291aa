"""What the tests of pages and of services have, for those of safety."""

import pytest

from tests.pages.conftest import activation, as_, delivery, devices, user_of, waiting
from tests.security.between import Between
from tests.services.conftest import actor, person

__all__ = ["activation", "actor", "as_", "delivery", "devices", "person", "user_of", "waiting"]


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    return Between(monkeypatch)
