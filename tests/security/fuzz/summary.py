"""What a run has to say, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .runner import Report

SHOWN = 160  # characters of an input
LISTED = 40  # answers


def lines(report: Report, kind: str, seed: int) -> Iterator[str]:
    again = f"python -m tests.security.fuzz --kind {kind} --seed {seed} --only"
    yield f"{kind}: {report.inputs} inputs of seed {seed}, {len(report.wrong)} wrong"
    for answer, count in report.answers.most_common(LISTED):
        yield f"  {count:8} {answer}"
    for slow in sorted(report.slow, reverse=True):
        yield f"  {slow.ms:8.1f} ms {slow.function}  {again} {slow.index}  {_short(slow.case)}"
    for wrong in report.wrong:
        yield f"  WRONG {again} {wrong.index}  {_short(wrong.case)}"
        yield from (f"      {line}" for why in wrong.why for line in why.splitlines())


def _short(case: object) -> str:
    text = json.dumps(case, ensure_ascii=True)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
