"""How many public machines each reader reads without an edit, and what stops the rest: the last section of the page.

The texts are other people's and not part of this project; they were counted on 23 November 2026.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """``stops``: what stops the rest, with how many machines."""

    reader: str
    where: str
    machines: int
    read: int
    stops: tuple[tuple[int, str], ...]


ROWS = (
    Row(
        "XState 5 (`xstate`)",
        "the library's examples and templates, two courses",
        62,
        47,
        (
            (5, "a method of an array with a function that would have to loop, outside of an assignment"),
            (5, "initial data, a constant or a function from another file"),
            (2, "a function that does more than declare, ask and return"),
            (1, "another actor of the system"),
            (1, "the whole input as one field"),
            (1, "a delay without a length"),
        ),
    ),
    Row("Mermaid (`mermaid`)", "documentation of nine projects", 32, 32, ()),
)

_HEAD = """## Public machines

Machines that people published, read as they stand. A machine counts as read when there is no error in it, so that it
could be published; what a reader took a name or an arrow for is a warning. The texts are not part of this project.

| reader | from | machines | read | what stops the rest |
|---|---|---:|---:|---|
"""


def section() -> str:
    """The last section of the page."""
    return _HEAD + "".join(_line(row) for row in ROWS)


def _line(row: Row) -> str:
    stops = "; ".join(f"{count}: {what}" for count, what in row.stops)
    return f"| {row.reader} | {row.where} | {row.machines} | {row.read} | {stops} |\n"
