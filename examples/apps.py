from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from .patterns.poking import Poking


class ExamplesConfig(AppConfig):
    name = "examples"
    verbose_name = "Sample machines"

    def poking(self, random: Random) -> Poking:
        """What the demo's traffic does to the patterns."""
        from .patterns.poking import Poking

        return Poking(random)
