"""A few jobs of each contender before anything is measured: one that does not work here is left out, and says why."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from .contenders import Contender
from .stage import Stage

JOBS = 20
SAID = 300  # characters of what it said


def trial(stage: Stage, contenders: Sequence[Contender]) -> tuple[list[Contender], list[str]]:
    """Those that did their jobs; and a line for each other one. Ours must work: its failure ends the run."""
    found, missing = [], []
    for contender in contenders:
        try:
            _work(stage, contender)
        except (RuntimeError, OSError, subprocess.SubprocessError) as why:
            if contender.ours:
                raise
            missing.append(f"{contender.title} left out: {' '.join(str(why).split())[-SAID:]}")
        else:
            found.append(contender)
    return found, missing


def _work(stage: Stage, contender: Contender) -> None:
    stage.clear(contender)
    stage.produce(contender, "many", JOBS)
    with stage.worker(contender, JOBS) as worker:
        worker.stamps()
        stage.wait_finished(contender, JOBS)
