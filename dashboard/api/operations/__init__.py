"""The operations, one module for each group; four folders (``versions`` and others) hold several."""

from . import approvals, bulks, instances, machines, repairs, schedules, sm_keys, webhooks
from .account import links, notes, people, saved_views, sessions
from .job_queues import jobs, queues, workers
from .monitoring import activity, alarms, audit, failures, overview, statistics
from .versions import drafts, plans, rollouts

GROUPS = tuple(
    module.group
    for module in (
        people, sessions,
        overview, alarms, activity,
        machines, drafts, plans, rollouts,
        instances, repairs, queues, jobs, workers, failures, bulks, schedules, approvals, audit, statistics, webhooks,
        notes, saved_views, links, sm_keys,
    )
)  # fmt: skip

__all__ = ["GROUPS"]
