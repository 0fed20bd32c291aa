from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from .patterns.traffic import PatternTraffic


class ExamplesConfig(AppConfig):
    name = "dashboard.examples"
    label = "examples"
    verbose_name = "Sample machines"

    def pattern_traffic(self, random: Random) -> PatternTraffic:
        """What the demo's traffic does to the patterns."""
        from .patterns.traffic import PatternTraffic

        return PatternTraffic(random)
