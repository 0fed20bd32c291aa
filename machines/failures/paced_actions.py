"""The background duty that carries out re-drives and skips of groups, each at its rate.

Each job is asked again whether it is still dead by the death that was counted, so a pass that is repeated after a kill
moves nothing twice; jobs that the killed pass had moved then count as passed over.
"""

from __future__ import annotations

import logging
import time

from machines.conf.database_retry import DatabaseRetry
from machines.engine import Engine, EngineUnavailable, Job, Permit, SignalboxError

from .dead_jobs import DeadJobs, JobRef
from .models import FailedJob, FailureAction
from .open_jobs import refresh

log = logging.getLogger(__name__)

BUSY, IDLE = 0.2, 2.0  # seconds between two passes
BATCH = 100  # jobs of one pass
BURST = 2  # seconds' worth of jobs that may be moved after a pause


class PacedActions:
    """One worker at a time runs it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs = DeadJobs(engine)
        self._database = DatabaseRetry(log, "actions on failures wait for the database: %s")
        self._busy = False

    def once(self) -> bool:
        """Run one pass; there is never more to do at once, since the rate says when: return False."""
        with self._database.around():
            self.look()
        return False

    def pause(self) -> float:
        return BUSY if self._busy else IDLE

    def look(self, now: int | None = None) -> int:
        """Run one pass; return how many jobs were dealt with. ``now``: ms."""
        now = int(time.time() * 1000) if now is None else now
        running = list(FailureAction.objects.filter(state=FailureAction.State.RUNNING).order_by("started")[:20])
        self._busy = bool(running)
        return sum(self._go_on(action, now) for action in running)

    def _go_on(self, action: FailureAction, now: int) -> int:
        since = max(action.updated, now - BURST * 1000)
        quota = min(BATCH, action.rate * (now - since) // 1000)
        if quota <= 0:
            return 0
        ids = action.jobs[action.position : action.position + quota]
        rows = FailedJob.objects.in_bulk(ids)
        refs = [JobRef(row.machine, row.job, row.died) for id in ids if (row := rows.get(id))]
        still = self._jobs.find_open(refs)
        done, error = 0, action.error
        for ref in refs:
            if ref not in still:
                continue
            try:
                done += self._move(action, ref)
            except EngineUnavailable:
                raise
            except SignalboxError as refusal:
                error = refusal.code
        self._note(action, len(ids), done, error, since + 1000 * quota // action.rate)
        refresh(self._jobs, list(rows.values()), now=now)
        return len(ids)

    def _move(self, action: FailureAction, ref: JobRef) -> bool:
        who = {
            "actor": action.actor,
            "reason": action.reason,
            "permit": Permit(None) if action.person else None,
        }
        job: Job = self._engine.job(ref.machine, ref.job)
        if action.action == "redrive":
            return self._engine.redrive(ref.machine, job.queue, job, **who) > 0
        if not job.instance or not job.invoke:
            return False
        key = f"failure-{action.pk}-{ref.job}"
        self._engine.skip(ref.machine, job.instance, job.invoke, action.terms.get("result"), key=key, **who)
        return True

    @staticmethod
    def _note(action: FailureAction, looked: int, done: int, error: str, updated: int) -> None:
        position = action.position + looked
        state = FailureAction.State.DONE if position >= action.total else FailureAction.State.RUNNING
        facts = {
            "position": position, "done": action.done + done, "passed": action.passed + looked - done, "error": error,
            "updated": updated,
        }  # fmt: skip
        rows = FailureAction.objects.filter(pk=action.pk)
        rows.update(**facts)
        rows.filter(state=FailureAction.State.RUNNING).update(state=state)  # one that was stopped stays stopped
