"""Background duties of the error inbox, each run by one worker at a time.

The follower counts dead jobs: it reads what died since the position of each queue. Dead jobs stay in Redis until they
are retried, withdrawn or purged, so nothing is lost while the database is away, and the path of a job does no work
for this. Deaths are exact; attempts are those of jobs that died. A job that is retried or purged within a few seconds
of its death may not be counted.

Paced actions carry out retries and skips of groups, each at its rate. Each job is asked again whether it is still
dead by the death that was counted, so a pass that is repeated after a kill moves nothing twice; jobs that the killed
pass had moved then count as passed over.
"""

import logging
import time
from functools import partial

from machines.conf import conf
from machines.conf.database import DatabaseDuty, delete_some, prepare_check
from machines.conf.retention_policy import parse_policy
from machines.engine import Engine, EngineFault, EngineUnavailable, Job, LookupFailed, Permit, SignalboxError
from machines.engine.jobs.queue_operations import QueueOptions

from . import recording
from .dead_jobs import DeadJobs, JobRef, Place, refresh, refresh_some
from .found_jobs import make_stamp
from .models import FailedJob, FailureAction, FailureGroup, FailureHour

log = logging.getLogger(__name__)

PAGE = 200  # jobs of one transaction
PAGES = 20  # of one pass: the other duties get their turn
OVERLAP = 60_000  # ms before the position that are read again: a server that took over may have an older clock
REMEMBERED = 50_000  # queues
WHOLE = 600.0  # seconds after which all queues are looked at, whatever the servers remember


class FailureFollower(DatabaseDuty):
    """One worker at a time runs it."""

    MESSAGE = "failures are not counted while the database is away: %s"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs = DeadJobs(engine)
        self._seen: dict[tuple[str, int, str], tuple[str, int]] = {}
        self._changes = engine.wakeups.watch_changes(whole=WHOLE)
        self._changed: set[str] = set()  # roots of partitions that changed and were not read to their end

    def look(self) -> bool:
        """Run one pass; return whether more is left."""
        partitions = self._engine.wakeups.recent_roots()
        self._changed |= self._changes.find(partitions)
        places = self._jobs.places({root: partitions[root] for root in self._changed if root in partitions})
        pages = PAGES
        if len(self._seen) > REMEMBERED:
            self._seen.clear()
        for place, newest in zip(places, self._jobs.newest(places), strict=True):
            name = (place.machine, place.number, place.queue)
            if not newest[1] or self._seen.get(name) == newest:
                continue
            if pages <= 0:
                return True
            pages -= self._read(place)
            self._seen[name] = newest
        self._changed.clear()
        refresh_some(self._jobs, now=_read_clock())
        return False

    def _read(self, place: Place) -> int:
        """Count what is new in one queue; return how many pages were read. A pass that is killed begins again at the
        position of its last whole page."""
        try:
            hidden = bool(self._engine.sensitive(place.machine))
        except LookupFailed:
            return 1
        since, skip, pages = max(0, recording.read_position(place) - OVERLAP), 0, 0
        while True:
            try:
                found = self._jobs.list_ids(place, since, skip, PAGE)
                jobs = self._jobs.read(place, [id for id, _ in found])
            except EngineFault as error:
                log.error("failures of %s in %s cannot be read: %s", place.queue, place.partition.root, error)
                return pages + 1
            pages += 1
            if found:
                recording.record(place, jobs, found[-1][1], hidden=hidden, now=_read_clock())
            if len(found) < PAGE:
                return pages
            last = found[-1][1]
            since, skip = (last, 0) if last > since else (since, skip + len(found))


BUSY, IDLE = 0.2, 3.0  # seconds between two passes
BATCH = 100  # jobs of one pass
BURST = 2  # seconds' worth of jobs that may be moved after a pause


_RUNNING = FailureAction.objects.filter(state=FailureAction.State.RUNNING)
_has_running = prepare_check(_RUNNING)


class PacedActions(DatabaseDuty):
    """One worker at a time runs it."""

    MESSAGE = "actions on failures wait for the database: %s"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs = DeadJobs(engine)
        self._busy = False

    def run_once(self) -> bool:
        """Run one pass; there is never more to do at once, since the rate says when: return False."""
        super().run_once()
        return False

    def pause(self) -> float:
        return BUSY if self._busy else IDLE

    def look(self, now: int | None = None) -> int:
        """Run one pass; return how many jobs were dealt with. ``now``: ms."""
        now = _read_clock() if now is None else now
        running = list(_RUNNING.order_by("started")[:20]) if _has_running() else []
        self._busy = bool(running)
        return sum(self._go_on(action, now) for action in running)

    def _go_on(self, action: FailureAction, now: int) -> int:
        since = max(action.updated, now - BURST * 1000)
        quota = min(BATCH, action.rate * (now - since) // 1000)
        if quota <= 0:
            return 0
        ids = action.jobs[action.position : action.position + quota]
        rows = {} if "place" in action.terms else FailedJob.objects.in_bulk(ids)
        moves = [partial(self._act, action, each) for each in ids if "place" in action.terms]
        refs = [JobRef(row.machine, row.job, row.died) for id in ids if (row := rows.get(id))]
        still = self._jobs.find_open(refs)
        moves += [partial(self._move, action, ref) for ref in refs if ref in still]
        done, error = 0, action.error
        for move in moves:
            try:
                done += move()
            except EngineUnavailable:
                raise
            except SignalboxError as refusal:
                error = refusal.code
        self._note(action, len(ids), done, error, since + 1000 * quota // action.rate)
        refresh(self._jobs, list(rows.values()), now=now)
        return len(ids)

    def _act(self, action: FailureAction, chosen: str) -> bool:
        """Act on a job that a search found, if it is still where it was."""
        machine, queue, place = (action.terms[name] for name in ("machine", "queue", "place"))
        try:
            job: Job = self._engine.job(machine, chosen.partition(" ")[0])
        except LookupFailed:
            return False
        if (job.queue, job.place, make_stamp(job)) != (queue, place, chosen):
            return False
        if action.action == "withdraw":
            return self._engine.withdraw(machine, job, unchanged=True, **_list_options(action))
        if to := action.terms.get("to"):
            return self._engine.reschedule(machine, job, queue=to, unchanged=True, **_list_options(action))
        if delay := action.terms.get("delay"):
            until = self._engine.read_clock() + delay
            if until <= job.due:
                return False
            return self._engine.reschedule(machine, job, until=until, unchanged=True, **_list_options(action))
        move = self._engine.redrive if action.action == "redrive" else self._engine.move_now
        return move(machine, queue, job, unchanged=True, **_list_options(action)) > 0

    def _move(self, action: FailureAction, ref: JobRef) -> bool:
        who = _list_options(action)
        job: Job = self._engine.job(ref.machine, ref.job)
        if job.finished != ref.died:
            return False
        if action.action == "redrive":
            return self._engine.redrive(ref.machine, job.queue, job, unchanged=True, **who) > 0
        if not job.instance or not job.invoke:
            return False
        key = f"failure-{action.pk}-{ref.job}"
        self._engine.skip(ref.machine, job.instance, job.invoke, action.terms.get("result"), key=key, **who)
        return True

    @staticmethod
    def _note(action: FailureAction, looked: int, done: int, error: str, updated: int) -> None:
        position = action.position + looked
        facts = {
            "position": position, "done": action.done + done, "passed": action.passed + looked - done, "error": error,
            "updated": updated,
        }  # fmt: skip
        rows = FailureAction.objects.filter(pk=action.pk)
        rows.update(**facts)
        if position >= action.total:  # one that was stopped stays stopped
            rows.filter(state=FailureAction.State.RUNNING).update(state=FailureAction.State.DONE, jobs=[])


def _list_options(action: FailureAction) -> QueueOptions:
    permit = Permit(None) if action.person else None
    return {"actor": action.actor, "reason": action.reason, "permit": permit}


KEEP = 90 * 86_400_000  # ms, where the setting RETAIN says nothing
HOURS = 24 * 30  # hours of trend that are kept at most
SOME = 500  # rows of one statement


def prune(now: int | None = None) -> None:
    """Remove what is beyond the bound ``failures`` of ``SIGNALBOX_RETAIN``. Groups with open jobs and running actions
    stay. ``now``: ms."""
    now = _read_clock() if now is None else now
    bound = parse_policy(conf.RETAIN).table("failures")
    before = now - (KEEP if bound.age is None else bound.age)
    hours = max(before, now - HOURS * 3_600_000) // 3_600_000
    delete_some(FailureHour.objects.filter(hour__lt=hours).order_by("pk"), SOME)
    delete_some(FailedJob.objects.filter(open=False, died__lt=before).order_by("pk"), SOME)
    ended = FailureAction.objects.filter(group=None, updated__lt=before).exclude(state=FailureAction.State.RUNNING)
    delete_some(ended.order_by("pk"), SOME)
    old = FailureGroup.objects.filter(last_seen__lt=before).exclude(jobs__open=True).order_by("last_seen")
    if bound.most is not None and (excess := FailureGroup.objects.count() - bound.most) > 0:
        closed = FailureGroup.objects.exclude(jobs__open=True).order_by("last_seen")
        delete_some(closed, min(excess, SOME))
    delete_some(old, SOME)


def _read_clock() -> int:
    return int(time.time() * 1000)
