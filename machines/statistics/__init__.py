"""Statistics of an hour, a day, a month: workers measure once a minute, pages and the API read."""

from .axis import SPANS
from .lines import Line, histogram
from .present import Flow, Present, Storm, last_measured, present, recent_flow, storms
from .sampler import Sampler
from .series import Series, rates_by_machine, recent_times, series, several

__all__ = [
    "SPANS",
    "Flow",
    "Line",
    "Present",
    "Sampler",
    "Series",
    "Storm",
    "histogram",
    "last_measured",
    "present",
    "rates_by_machine",
    "recent_flow",
    "recent_times",
    "series",
    "several",
    "storms",
]
