"""Presents a machine on the overview."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.shared.figures.state_counts import StateCounts
from dashboard.shared.figures.version_counts import VersionCounts
from machines.catalog.partitions import MissingPartitions, count_missing
from machines.engine import Live
from machines.statistics.present import Present


@dataclass(frozen=True, slots=True)
class Facts:
    """Holds the figures of one machine.

    ``flow`` and ``refused``: per minute, ``flow`` None without measurements; ``oldest``: ms at which the oldest
    instance entered its state; ``late``: instances over a service level; ``dead``: jobs; ``versions``: the versions of
    its instances.
    """

    flow: float | None
    state: str
    oldest: int | None
    late: int
    dead: int
    refused: int
    missing: MissingPartitions | None = None
    versions: VersionCounts | None = None

    @property
    def pace(self) -> str:
        """Return ``42 /min`` or ``0.3 /min``; a dash without measurements."""
        if self.flow is None:
            return "–"
        return f"{self.flow:,.0f} /min" if self.flow >= 10 or self.flow == 0 else f"{self.flow:.1f} /min"


def summarize(track: StateCounts, live: Live, rates: Present | None, versions: VersionCounts | None = None) -> Facts:
    """Summarize a machine. The oldest instance is one in a state that is not final."""
    final = {state.name for state in track.view.outline.states if state.type == "final"}
    waiting = {state: since for state, since in live.oldest.items() if state not in final}
    state = min(waiting, key=lambda name: waiting[name], default="")
    return Facts(
        flow=rates and rates.transitions,
        state=state,
        oldest=waiting.get(state),
        late=sum(live.breaches.values()),
        dead=sum(depth.dead for depth in track.depths),
        refused=round(sum(rates.refused.values())) if rates else 0,
        missing=count_missing(live.missing),
        versions=versions,
    )
