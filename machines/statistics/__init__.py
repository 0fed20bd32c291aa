"""Statistics of an hour, a day, a month: workers measure once a minute, pages and the API read."""

from .axis import SPANS
from .lines import Line, histogram
from .present import Present, Storm, last_measured, present, storms
from .sampler import Sampler
from .series import Series, recent_times, series, several

__all__ = [
    "SPANS",
    "Line",
    "Present",
    "Sampler",
    "Series",
    "Storm",
    "histogram",
    "last_measured",
    "present",
    "recent_times",
    "series",
    "several",
    "storms",
]
