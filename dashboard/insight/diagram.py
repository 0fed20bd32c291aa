"""Draws how instances went on the diagram of a version: a figure of each state and transition, with links to the
instances behind it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from django.utils.safestring import SafeString

from dashboard.shared.diagram_modes import FIGURES, LENGTHS, Mode, format_count, format_share
from dashboard.shared.diagram_modes import format_duration as format_short
from dashboard.shared.version_view import Overlay, VersionView
from machines.insight.records import Comparison, Difference, Paths, Spread, TransitionFigure
from machines.insight.statistics.ages import format_duration

SHARES = ((0.0001, ">0"), (0.05, "5 %"), (0.2, "20 %"), (0.5, "50 %"), (0.9, "90 %"))
POINTS = ((0.0001, ">0"), (0.02, "2"), (0.05, "5"), (0.1, "10"), (0.2, "20 points"))
_TIMES = "states: time in the state · transitions: time in the source before the step"
MODES = {
    mode.name: mode
    for mode in (
        Mode("share", "Share", "states: share of the instances · transitions: share of the steps out of one", SHARES),
        Mode("count", "Count", "states: instances that were in it · transitions: steps", FIGURES),
        Mode("p50", "p50", f"median · {_TIMES}", LENGTHS),
        Mode("p95", "p95", f"95 of 100 are shorter · {_TIMES}", LENGTHS),
        Mode("p99", "p99", f"99 of 100 are shorter · {_TIMES}", LENGTHS),
    )
}
DIFFERENCE = Mode("difference", "Difference", "second share less the first, in points · ≈ noise", POINTS)
Link = Callable[..., str]
"""Takes ``at``, or ``source``, ``target`` and ``event``, and returns the address of the instances."""


def draw_paths(view: VersionView, found: Paths, mode: Mode, link: Link) -> SafeString:
    """Draw the figures of a mode. States of other versions, and times of several leaves at once, have no place on the
    diagram: they are in the table."""
    overlay = Overlay()
    for figure in found.leaves or found.states:
        if part := view.index["states"].get(figure.state):
            number, text = _read_figure(mode, figure.instances, figure.share, figure.stay)
            _write(overlay, part, overlay.counts, text, mode.heat(number) if text else 0)
            overlay.links[part] = link(at=figure.state)
            overlay.names[part] = f"{figure.state}: {describe_figure(figure.instances, figure.share, figure.stay)}"
    for part, figures in _group_by_line(view, found.transitions).items():
        number, text = _join_figures(mode, figures)
        _write(overlay, part, overlay.flows, text, mode.heat(number) if text else 0)
        if len(figures) == 1:
            overlay.links[part] = link(source=figures[0].source, target=figures[0].target, event=figures[0].event)
    return overlay.draw_on(view.svg)


def draw_difference(view: VersionView, found: Comparison, first: Paths) -> SafeString:
    """Draw the difference of two searches; what is noise has no colour. ``first``: names the lines of transitions."""
    overlay = Overlay()
    for row in found.states:
        if part := view.index["states"].get(row.name):
            _write_difference(overlay, part, overlay.counts, [row])
    lines = {(one.source, one.target, one.event): part
             for part, figures in _group_by_line(view, first.transitions).items() for one in figures}  # fmt: skip
    grouped: dict[str, list[Difference]] = defaultdict(list)
    for row in found.transitions:
        if part := lines.get((row.source, row.target, row.event)):
            grouped[part].append(row)
    for part, rows in grouped.items():
        _write_difference(overlay, part, overlay.flows, rows)
    return overlay.draw_on(view.svg)


def describe_figure(count: int, share: float, spread: Spread) -> str:
    """Describe all figures in words: ``1,204 (84 %), p50 3 min, p95 2 h``."""
    times = (
        f", p50 {format_duration(spread.p50)}, p95 {format_duration(spread.p95)}, p99 {format_duration(spread.p99)}"
        if spread.count
        else ""
    )
    return f"{count:,} ({format_share(share)}){times}"


def _read_figure(mode: Mode, count: int, share: float, spread: Spread) -> tuple[float, str]:
    """Return the figure of a mode as a number and in words."""
    if mode.name == "share":
        return share, format_share(share)
    if mode.name == "count":
        return count, format_count(count)
    number: int = getattr(spread, mode.name)
    return number, format_short(number) if spread.count else ""


def _join_figures(mode: Mode, figures: Sequence[TransitionFigure]) -> tuple[float, str]:
    """Read the figure of a line. Of several transitions it is the sum, the share of all steps out of their sources, or
    at most the longest time."""
    out = {figure.source: figure.count / figure.share for figure in figures if figure.share}
    count = sum(figure.count for figure in figures)
    longest = max((figure.wait for figure in figures), key=lambda wait: int(getattr(wait, mode.name, 0)))
    number, text = _read_figure(mode, count, count / sum(out.values()) if out else 0.0, longest)
    return number, f"≤{text}" if text and len(figures) > 1 and mode.bounds is LENGTHS else text


def _group_by_line(view: VersionView, figures: Iterable[TransitionFigure]) -> Mapping[str, list[TransitionFigure]]:
    """Group figures by the line that they are drawn at. Steps of other versions belong to the line with the same
    source, target and event."""
    lines, found = view.index["transitions"], defaultdict(list)
    alike: dict[tuple[str, str, str], str] = {}
    for state in view.outline.states:
        for one in state.transitions:
            for target in one.targets or ((one.target or state.name),):
                alike |= {(state.name, target, event): lines[one.id] for event in one.events if one.id in lines}
    for figure in figures:
        ids = (key.partition(":")[2] for key in figure.keys if key.startswith(f"{view.version}:"))
        parts = {lines[id] for id in ids if id in lines}
        for part in parts or {alike.get((figure.source, figure.target, figure.event), "")} - {""}:
            found[part].append(figure)
    return found


def _write(overlay: Overlay, part: str, texts: dict[str, str], text: str, heat: int) -> None:
    texts[part] = text
    if heat:
        overlay.mark(part, f"heat-{heat}")


def _write_difference(overlay: Overlay, part: str, texts: dict[str, str], rows: list[Difference]) -> None:
    largest = max(rows, key=lambda row: (not row.is_noise, abs(row.second - row.first)))
    change = largest.second - largest.first
    text = "≈" if largest.is_noise else format_points(change)
    _write(overlay, part, texts, text, 0 if largest.is_noise else DIFFERENCE.heat(abs(change)))


def format_points(change: float) -> str:
    """Format a difference of shares in points: ``+4.2``, ``−0.3``."""
    return f"{change * 100:+.1f}".replace("-", "−")
