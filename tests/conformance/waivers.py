"""What documents may ask for and are refused for on purpose, told by the codes of the findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from machines.engine.definitions.findings import Finding


@dataclass(frozen=True, slots=True)
class Waiver:
    """``reason`` stands beside the case, ``why`` on the page."""

    codes: frozenset[str]
    reason: str
    why: str


WAIVERS = (
    Waiver(
        frozenset({"SB142"}),
        "HTTP event processor",
        "the document talks to the basic HTTP event processor, which the recommendation leaves optional",
    ),
    Waiver(
        frozenset({"SB143"}),
        "DOM data",
        "the document keeps XML as a value; a machine's data is plain JSON",
    ),
    Waiver(
        frozenset({"SB144"}),
        "invalid document",
        "the recommendation asks for such a document to be refused",
    ),
)


def reason(errors: Sequence[Finding]) -> str:
    """Why a document with these findings is waived; empty when one of them is no reason to."""
    found: list[str] = []
    for error in errors:
        waiver = next((waiver for waiver in WAIVERS if error.code in waiver.codes), None)
        if waiver is None:
            return ""
        if waiver.reason not in found:
            found.append(waiver.reason)
    return "; ".join(found)
