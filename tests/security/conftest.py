"""What the tests of pages and of servers that break have, for those of safety."""

from tests.engine.conftest import own_server, program_of_this_run
from tests.pages.conftest import activation, as_, delivery, devices, user_of, waiting

__all__ = ["activation", "as_", "delivery", "devices", "own_server", "program_of_this_run", "user_of", "waiting"]
