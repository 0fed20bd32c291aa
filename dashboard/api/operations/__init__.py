"""The operations, one module for each group; ``monitoring``, ``job_queues`` and ``account`` hold several."""

from . import approvals, bulks, instances, machines, repairs, sm_keys, webhooks
from .account import links, notes, people, saved_views, sessions
from .job_queues import jobs, queues, workers
from .monitoring import activity, audit, overview, statistics

GROUPS = tuple(
    module.group
    for module in (
        people, sessions,
        overview, activity,
        machines, instances, repairs, queues, jobs, workers, bulks, approvals, audit, statistics, webhooks,
        notes, saved_views, links, sm_keys,
    )
)  # fmt: skip

__all__ = ["GROUPS"]
