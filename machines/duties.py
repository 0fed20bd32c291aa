"""Background duties of workers beside jobs and timers: some run in every worker, the others in one worker at a time."""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType

from machines.alarms import recording, routes, sending
from machines.approvals import actions as approvals
from machines.audit import entries
from machines.catalog import publishing
from machines.conf.database import DatabaseDuty
from machines.engine import Engine, Rollout
from machines.insight.ingestion import InsightDuty
from machines.insight.statistics import recording as statistics
from machines.instances import plans
from machines.integrations.attached.reconcile import ReconcileDuty
from machines.integrations.binding.outbox import OutboxSender
from machines.integrations.binding.projection import Projection
from machines.jobs.failures import digest as error_digest
from machines.jobs.failures import duties as failures
from machines.retention import duty
from machines.retention.duty import RetentionDuty
from machines.schedules.declarations import Declarations
from machines.webhooks.audit_stream import AuditStream
from machines.webhooks.fan_out import FanOut, prune
from machines.webhooks.sender import Sender
from machines.worker.duties.engine_duties import ACTOR, RolloutGuard, make_engine_duties
from machines.worker.duties.exclusive_duties import Duty
from machines.worker.options import Options

log = logging.getLogger(__name__)

DUTIES: Mapping[str, str] = MappingProxyType(
    {
        "alarms": "records which alarms are raised and cleared, lets snoozes expire, and sends alarms by their routes",
        "approvals": "expires approval requests",
        "audit stream": "sends new audit entries to the receivers of SIGNALBOX_AUDIT_STREAM",
        "catalog": "records versions that scripts published, and redraws old diagrams",
        "error digest": "sends the digest of the error inbox",
        "failure actions": "retries or skips the jobs of a failure group at its rate",
        "failures": "groups dead jobs for the error inbox",
        "growth": "finishes moves between partitions that a killed `machine repartition` has left half done",
        "indexer": "builds new data indexes",
        "insight": "adds new steps to the facts of insight",
        "mender": "checks all jobs and repairs damaged ones",
        "plans": "records the outcome of migrations",
        "retention": "archives finished instances and removes them, dead jobs and log entries beyond their bounds",
        "rollouts": "stops roll-outs whose new version does worse, and counts instances by version",
        "sampler": "records statistics once a minute",
        "statistics prune": "removes old statistics",
        "table prune": "removes audit entries, archived instances and failures beyond their bounds",
        "webhook prune": "removes old webhook deliveries",
    }
)
"""The exclusive duties: name -> description for people. One worker at a time runs each."""


class SmallDuty(DatabaseDuty):
    """Something small that is done in the database again and again."""

    def __init__(self, work: Callable[[], object], *, pause: float, message: str) -> None:
        self._work, self.EVERY, self.MESSAGE = work, pause, message

    def look(self) -> bool:
        """Make one pass. There is never more to do at once: False."""
        self._work()
        return False


def make_exclusive_duties(engine: Engine, options: Options) -> dict[str, Duty]:
    """Return those of which each is one worker's at a time; DUTIES has their names."""
    return {
        **make_engine_duties(engine, options),
        "alarms": SmallDuty(_care_for_alarms, pause=10.0, message="alarms cannot be recorded: %s"),
        "approvals": SmallDuty(approvals.expire, pause=30.0, message="requests cannot be closed: %s"),
        "audit stream": AuditStream(),
        "catalog": SmallDuty(CatalogUpdate(), pause=15.0, message="versions cannot be recorded: %s"),
        "error digest": SmallDuty(error_digest.send_due, pause=60.0, message="the error digest cannot be made: %s"),
        "failure actions": failures.PacedActions(engine),
        "failures": failures.FailureFollower(engine),
        "insight": InsightDuty(engine),
        "plans": SmallDuty(plans.keep_outcomes, pause=30.0, message="outcomes of plans cannot be recorded: %s"),
        "retention": RetentionDuty(engine),
        "rollouts": RolloutGuard(engine, report_stopped),
        "sampler": statistics.Sampler(engine),
        "statistics prune": SmallDuty(_prune_measured, pause=60.0, message="old statistics cannot be removed: %s"),
        "table prune": SmallDuty(_prune_tables, pause=60.0, message="old rows cannot be removed: %s"),
        "webhook prune": SmallDuty(_prune_deliveries, pause=60.0, message="old deliveries cannot be removed: %s"),
    }


def make_shared_duties(engine: Engine) -> dict[str, Duty]:
    """Return those that every worker has, side by side."""
    return {
        "reconcile": ReconcileDuty(engine),
        "row outbox": OutboxSender(),
        "row projection": Projection(engine),
        "schedule declarations": Declarations(engine),
        "webhook pump": FanOut(engine),
        "webhook sender": Sender(),
    }


def write_columns(engine: Engine) -> None:
    """Write the states of rows, for a worker that ends with its work; where another worker has a field, it does so."""
    Projection(engine, wait=0.0).finish()


def report_stopped(rollout: Rollout) -> None:
    """Write the audit entry of a roll-out that its guard stopped."""
    detail = {"version": rollout.version, "base": rollout.base, "figures": rollout.figures}
    who = {"machine": rollout.machine, "target": f"v{rollout.version}", "reason": rollout.reason}
    entries.record(ACTOR, "rollout.stop", **who, detail=detail, source="worker guard")


def _care_for_alarms() -> None:
    recording.record_alarms()
    sending.send_alarms()  # first: whatever the settings declare, the routes there are have it
    routes.declare()


class CatalogUpdate:
    """Records published versions. Diagrams of another release are redrawn until none is left, and looked for again when
    something was published."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._is_drawn = False

    def __call__(self) -> None:
        is_news = publishing.adopt_published(self._known)
        if is_news or not self._is_drawn:
            self._is_drawn = publishing.redraw() == 0


def _prune_tables() -> None:
    duty.prune()
    failures.prune()


def _prune_measured() -> None:
    age = duty.read_policy().table("statistics").age
    statistics.prune(int(time.time() * 1000), *([] if age is None else [age // 1000]))


def _prune_deliveries() -> None:
    age = duty.read_policy().table("webhooks").age
    prune(*([] if age is None else [timedelta(milliseconds=age)]))
