"""Measures how fast a bulk action goes and how long it will take, from the steps of its instance.

The rate is measured, never guessed: without two points in time there is none, and then no time left either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from machines.engine import Instance, Step

STEPS = 20  # of the history that the rate is measured over
QUIET = 30_000  # ms without a batch before a bulk counts as stalled, at least
FIELDS = {"previewing": "checked", "running": "tried"}  # state -> the field that counts on
BATCHES = ("done.invoke.preview", "done.invoke.act")


@dataclass(frozen=True, slots=True)
class Progress:
    """Holds how far a bulk is. ``total``: instances that matched; ``done``: those that have their result in its stage.

    ``rate``: measured instances a second, None where unknown; ``left``: ms until the stage ends, None where unknown;
    ``stalled``: ms since the last batch, where that is unusually long ago.
    """

    total: int
    done: int
    previews: bool
    rate: float | None = None
    left: int | None = None
    stalled: int | None = None

    @property
    def pace(self) -> str:
        """Return ``4.2/s`` or ``1,200/s``, "" where the rate is unknown."""
        if self.rate is None:
            return ""
        return f"{self.rate:.1f}/s" if self.rate < 10 else f"{self.rate:,.0f}/s"


def measure_progress(bulk: Instance, steps: Sequence[Step] = (), *, now: float = 0) -> Progress:
    """Measure a bulk. ``steps``: the latest of its history, newest first; ``now``: ms."""
    runs = bulk.data["stage"] == "running"
    total, done = bulk.data["found"], bulk.data["tried" if runs else "checked"]
    name = FIELDS.get(bulk.state, "")
    points = _read_points(steps, name) if name and not bulk.suspended else []
    if len(points) < 2:
        return Progress(total, done, not runs)
    (latest, reached), (begun, before) = points[0], points[-1]
    seconds = (latest - begun) / 1000
    rate = (reached - before) / seconds if seconds > 0 and reached > before else None
    quiet = now - latest
    stalled = quiet > max(QUIET, 3 * (latest - begun) / (len(points) - 1))
    left = None if rate is None or stalled else int(max(total - done, 0) / rate * 1000)
    return Progress(total, done, not runs, rate, left, int(quiet) if stalled else None)


def _read_points(steps: Sequence[Step], name: str) -> list[tuple[int, int]]:
    """Read when how many were done, newest first: the batches since it last started, and that start."""
    points: list[tuple[int, int]] = []
    for place, step in enumerate(steps):
        if step.event in BATCHES and isinstance(value := step.changes.get(name), int):
            points.append((step.at, value))
            if value == 0:  # its stage began with this step
                break
        else:
            earlier = (older.changes[name] for older in steps[place:] if isinstance(older.changes.get(name), int))
            points.append((step.at, next(earlier, 0)))
            break
    return points
