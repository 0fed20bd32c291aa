"""An instance at a moment of its past: where it stood, what its step took, and its data then, as far as it is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from dashboard.pages.shared.diagram_overlay import find_state_parts, find_transition_parts
from dashboard.shared.version_view import NO_VIEW, VersionView
from machines.engine import BadInput, Instance, Step

MAX_STEPS = 500  # steps a page can go back to, at most
DIGITS = 15


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A data field at one moment. Not ``known``: the step that set it is no longer kept; not ``present``: not set."""

    known: bool = True
    present: bool = True
    value: Any = None


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A data field at two moments, the earlier one first."""

    name: str
    description: str
    before: FieldValue
    after: FieldValue

    @property
    def differs(self) -> bool:
        return self.before.known and self.before != self.after


@dataclass(frozen=True, slots=True)
class Replay:
    """What the page shows of an instance's past. ``steps``: those that are kept, newest first.

    ``at``: the step that led to the moment shown, None for now; ``other``: the one it is compared with, None for now;
    ``lost``: versions that were asked for and are not kept, or not there yet.
    """

    plan: VersionView
    instance: Instance
    steps: Sequence[Step]
    at: Step | None = None
    other: Step | None = None
    lost: tuple[int, ...] = ()

    @classmethod
    def asked(cls, request: HttpRequest, plan: VersionView, instance: Instance, steps: Sequence[Step]) -> Replay:
        """From ``?at=12&with=7``, both versions; raises BadInput for what is no version."""
        kept = {step.version: step for step in steps if step.version <= instance.version}
        wanted = {name: read_revision(request, name) for name in ("at", "with")}
        at, other = (None if version is None else kept.get(version) for version in wanted.values())
        lost = tuple(version for version in wanted.values() if version is not None and version not in kept)
        return cls(plan, instance, list(kept.values()), at, other if at else None, lost)

    @property
    def cut(self) -> bool:
        """Are there steps that are not kept any more?"""
        return bool(self.steps) and self.oldest > 1

    @property
    def oldest(self) -> int:
        return self.steps[-1].version if self.steps else self.instance.version

    @property
    def latest(self) -> int:
        return self.steps[0].version if self.steps else self.instance.version

    @property
    def shown(self) -> int:
        return self.at.version if self.at else self.latest

    @property
    def since(self) -> int:
        """Steps taken after the moment shown."""
        return self.instance.version - self.shown

    @property
    def earlier(self) -> Step | None:
        """Of the two moments whose data stand side by side."""
        pair = [step for step in (self.at, self.other) if step]
        return min(pair, key=lambda step: step.version) if pair else None

    @property
    def later(self) -> Step | None:
        """The other of them; None where that is now."""
        pair = [step for step in (self.at, self.other) if step]
        return max(pair, key=lambda step: step.version) if len(pair) > 1 else None

    @property
    def rows(self) -> list[FieldChange]:
        """Every declared field at the two moments."""
        return [
            FieldChange(
                field.name,
                field.description,
                self.datum(field.name, self.earlier and self.earlier.version),
                self.datum(field.name, self.later and self.later.version),
            )
            for field in self.plan.outline.data
        ]

    @property
    def differing(self) -> int:
        return sum(row.differs for row in self.rows)

    def datum(self, name: str, version: int | None) -> FieldValue:
        """A field as it was at a version, from what the steps changed; at None, as it is."""
        now = FieldValue(present=name in self.instance.data, value=self.instance.data.get(name))
        if version is None:
            return now
        set_by = [step for step in self.steps if name in step.changes]
        before = next((step for step in set_by if step.version <= version), None)
        if before is not None:
            value = before.changes[name]
            return FieldValue(present=value is not None, value=value)
        if not set_by:
            return now
        return FieldValue(known=not self.cut, present=False)

    def places(self, step: Step) -> list[str]:
        return [place.name for place in self.plan.places(step.configuration)]

    @property
    def trail(self) -> list[dict[str, Any]]:
        """For the page's script, oldest first: each moment with the parts of the drawing that it lights and took."""
        return [
            {
                "version": step.version,
                "at": step.at,
                "event": step.event,
                "state": ", ".join(step.configuration),
                "lit": find_state_parts(self.plan, step.configuration),
                "taken": find_transition_parts(self.plan, step.transitions),
            }
            for step in reversed(self.steps)
        ]

    @property
    def trail_json(self) -> str:
        return json.dumps(self.trail, ensure_ascii=False)

    # ---- addresses

    def url(self, **changes: Any) -> str:
        """The address of this page with some of its terms changed."""
        terms: dict[str, Any] = {
            **self.plan.view,
            "at": self.at and self.at.version,
            "with": self.other and self.other.version,
        }
        query = urlencode({name: term for name, term in (terms | changes).items() if term})
        address = reverse("instance", args=[self.instance.machine, self.instance.id])
        return f"{address}?{query}" if query else address

    @property
    def views(self) -> list[tuple[str, str]]:
        return [(label, self.drawn(view)) for label, view in self.plan.views]

    def drawn(self, view: Mapping[str, str]) -> str:
        """The address of this page with another drawing."""
        return self.url(**(NO_VIEW | dict(view)))

    @property
    def now_url(self) -> str:
        return self.url(at=None, **{"with": None})

    @property
    def alone_url(self) -> str:
        return self.url(**{"with": None})

    @property
    def back_url(self) -> str:
        return self.url(at=max(self.oldest, self.shown - 1))

    @property
    def on_url(self) -> str:
        return self.url(at=self.shown + 1) if self.shown < self.latest else self.now_url


def read_revision(request: HttpRequest, name: str) -> int | None:
    """A version in the query; None where none is given. Raises BadInput for something that is no version."""
    asked = request.GET.get(name, "")
    if not asked:
        return None
    if asked.isascii() and asked.isdigit() and len(asked) <= DIGITS:
        return int(asked)
    raise BadInput(f"{asked[:100]!r} is not a revision; a revision is a whole number")
