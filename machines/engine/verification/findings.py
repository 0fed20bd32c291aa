"""The findings of a verification: one code for each kind, and their record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from machines.engine.definitions import Finding

FOUND: Literal["found"] = "found"
PROVEN: Literal["proven"] = "proven"
UNDECIDED: Literal["undecided"] = "undecided"


@dataclass(frozen=True, slots=True)
class Check:
    """A kind of finding: what is right where nothing is wrong, and what to do."""

    code: str
    holds: str
    advice: str


CHECKS = {
    check.code: check
    for check in (
        Check("SB801", "every state is reached", "add a way to it, or remove it"),
        Check("SB802", "every transition is taken", "correct its guard or those before it, or remove it"),
        Check("SB803", "something can happen until the end", 'add a way out, or `"type": "final"`'),
        Check("SB804", "every step comes to rest", "let a guard end the circle"),
        Check("SB805", "an end stays within reach", "add a way to a final state"),
        Check("SB806", "every timer can fire", "shorten it, or remove it"),
        Check("SB807", "every invoke is listened to", "add onDone"),
        Check("SB808", "`allow` lets somebody pass", "name the group on the first one"),
        Check("SB809", "fields are set before they are read", "give it a value"),
        Check("SB810", "guards do not fail", "test for that before"),
        Check("SB811", "the property holds", "follow the run"),
    )
}


@dataclass(frozen=True, slots=True)
class VerificationFinding(Finding):
    """One result of ``verify``.

    ``verdict``: "found" (the run shows it, and was repeated on the interpreter), "proven" (the opposite holds for all
    runs) or "undecided" (not decided within the budget, or because of values that cannot all be tried; the message says
    why). ``run``: inputs for ``simulate``, the fewest that show it; for what never happens, the way to the place where
    it would. ``data``: what the instance is given at its creation.
    """

    verdict: Literal["found", "proven", "undecided"] = "undecided"
    run: tuple[Any, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        run = [list(one) if isinstance(one, tuple) else one for one in self.run]
        return asdict(self) | {"run": run, "data": dict(self.data)}
