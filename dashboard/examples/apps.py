from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from random import Random

from django.apps import AppConfig


class ExamplesConfig(AppConfig):
    name = "dashboard.examples"
    label = "examples"
    verbose_name = "Sample machines"

    def pattern_traffic(self, random: Random) -> Callable[[], None]:
        """Return what the traffic of the demo calls: each time the next pattern of the page gets something to do."""
        from .patterns import SECTIONS

        sections = cycle(SECTIONS.values())
        return lambda: next(sections).move(random)
