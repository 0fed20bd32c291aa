"""What has happened over an hour, a day, a month: workers measure it once a minute, pages and the API read it."""

from machines.statistics.axis import SPANS
from machines.statistics.lines import Line, histogram
from machines.statistics.present import Present, Storm, last_measured, present, storms
from machines.statistics.sampler import Sampler
from machines.statistics.series import Series, recent_times, series, several

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
