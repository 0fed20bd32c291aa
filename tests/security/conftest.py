"""What the tests of pages have, for those of safety."""

from tests.pages.conftest import activation, as_, delivery, devices, user_of, waiting

__all__ = ["activation", "as_", "delivery", "devices", "user_of", "waiting"]
