"""The modes of a diagram (count, age, flow, failures, time in state, tests), with colours and formats of figures."""

from dataclasses import dataclass

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000  # ms
FIGURES = ((1, "1"), (10, "10"), (100, "100"), (1000, "1k"), (10_000, "10k"))
LENGTHS = ((0, "0 s"), (MINUTE, "1 min"), (10 * MINUTE, "10 min"), (HOUR, "1 h"), (DAY, "1 d"))
RATES = ((0.001, ">0"), (1, "1"), (10, "10"), (100, "100"), (1000, "1k"))
DAYS = 30


TESTED, IDLE, UNUSED, UNTESTED = 1, 2, 3, 5  # the colours


TESTS = (
    (TESTED, "tested"),
    (IDLE, f"tested, not taken in {DAYS} days"),
    (UNUSED, "never tested, never taken"),
    (UNTESTED, "never tested, taken"),
)


@dataclass(frozen=True, slots=True)
class Mode:
    """Describes a mode of the diagram.

    ``bounds``: the lower bound of each of the five colours, with its text in the legend. They are the same for every
    machine at any time, so that a colour means one thing. ``moving``: it shows rates, from the kept statistics; not
    ``scaled``: its colours are kinds, and ``bounds`` has a colour with its text.
    """

    name: str
    label: str
    said: str
    bounds: tuple[tuple[float, str], ...]
    moving: bool = False
    scaled: bool = True

    @property
    def legend(self) -> list[tuple[int, str]]:
        if not self.scaled:
            return [(int(heat), text) for heat, text in self.bounds]
        return [(heat, text) for heat, (_, text) in enumerate(self.bounds, 1)]

    def heat(self, figure: float) -> int:
        """Return 1 to 5, or 0 below all bounds."""
        return sum(figure >= least for least, _ in self.bounds)


MODES = {
    mode.name: mode
    for mode in (
        Mode("count", "Count", "states: instances · transitions: total count", FIGURES),
        Mode("age", "Oldest", "states: time in state of the oldest instance", LENGTHS),
        Mode("flow", "Flow", "transitions: count per minute · states: instances", RATES, moving=True),
        Mode("failures", "Failures",
             "states: instances with a dead job or a postponed timer · queues: dead jobs", FIGURES),
        Mode("time", "Time in state",
             "states: mean time in state, estimated from the count and the exits per minute", LENGTHS, moving=True),
        Mode("tests", "Tests",
             "transitions: ✓ tested, ✕ never tested, and how often instances took them", TESTS, scaled=False),
    )
}  # fmt: skip
DEFAULT = MODES["count"]


def mode_of(name: str) -> Mode:
    return MODES.get(name, DEFAULT)


def format_duration(ms: float) -> str:
    """Format one unit in at most seven characters: ``45 s``, ``3 min``, ``2 h``, ``45 d``."""
    for least, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if ms >= least:
            return f"{int(ms // least)} {unit}"
    return f"{int(ms // 1000)} s"


def format_rate(rate: float) -> str:
    """Format how often a minute: ``0.1``, ``9.4``, ``12k``; never 0.0 for what was taken at all."""
    return f"{max(0.1, rate):.1f}" if rate < 9.95 else format_count(round(rate))


def format_count(number: int) -> str:
    """Format a number in at most seven characters: ``12,345``, ``345k``, ``1.2M``."""
    for least, unit, letter in ((999_500_000, 10**9, "G"), (999_500, 10**6, "M"), (99_999.5, 10**3, "k")):
        if number >= least:
            scaled = number / unit
            return f"{scaled:.1f}{letter}" if scaled < 10 else f"{scaled:,.0f}{letter}"
    return f"{number:,}"


def format_share(share: float) -> str:
    """Format ``84 %``; a small one never as 0 %, and one that lacks a little never as 100 %."""
    if 0 < share < 0.01 or 0.99 < share < 1:
        return "<1 %" if share < 0.5 else ">99 %"
    return f"{share:.0%}".replace("%", " %")
