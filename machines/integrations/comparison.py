"""What a comparison of rows with instances found, whichever of the two decides."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

PAGE = 500  # rows, or instances, of one page
EXAMPLES = 5  # of each kind of difference
EQUAL, MISSING, ROWLESS = "equal", "missing", "without a row"


@dataclass
class Comparison:
    """What was found, by kind: how many, and examples. ``mended``: differences that are gone now. ``meanings``: of the
    kinds, in the order of the report."""

    meanings: ClassVar[Mapping[str, str]]
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    mended: int = 0

    def add(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if kind != EQUAL and len(found := self.examples.setdefault(kind, [])) < EXAMPLES:
            found.append(text)

    def rows(self) -> list[tuple[str, int, str, list[str]]]:
        """Return what there is of each kind: kind, count, meaning and examples."""
        return [
            (kind, self.counts[kind], meaning, self.examples.get(kind, []))
            for kind, meaning in self.meanings.items()
            if self.counts[kind]
        ]

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        found = []
        for kind, count, meaning, examples in self.rows():
            found += [f"{count:>8}  {kind}: {meaning}", *(f"          {text}" for text in examples)]
        return found or ["       0  rows and instances"]
