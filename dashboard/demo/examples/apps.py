from collections.abc import Callable
from itertools import cycle
from random import Random

from django.apps import AppConfig

from machines.conf import conf


class ExamplesConfig(AppConfig):
    name = "dashboard.demo.examples"
    label = "examples"
    verbose_name = "Sample machines"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        if conf.DEMO_PACE:
            from .visits import attach_rows

            attach_rows()

    def pattern_traffic(self, random: Random) -> Callable[[], None]:
        """Return what the traffic of the demo calls: each time the next pattern of the page gets something to do."""
        from .patterns import SECTIONS

        sections = cycle(SECTIONS.values())
        return lambda: next(sections).move(random)

    def visit_traffic(self, random: Random) -> Callable[[], None]:
        """Return what the traffic of the demo calls to move a row that another state library drives."""
        from .visits import move

        return lambda: move(random)
