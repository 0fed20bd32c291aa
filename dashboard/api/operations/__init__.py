"""The operations of the API, one module for each noun."""

from . import (
    activity,
    approvals,
    audit,
    bulks,
    instances,
    jobs,
    links,
    machines,
    notes,
    overview,
    people,
    queues,
    repairs,
    sessions,
    sm_keys,
    statistics,
    views,
    webhooks,
    workers,
)

GROUPS = tuple(
    module.group
    for module in (
        people, sessions,
        overview, activity,
        machines, instances, repairs, queues, jobs, workers, bulks, approvals, audit, statistics, webhooks,
        notes, views, links, sm_keys,
    )
)  # fmt: skip

__all__ = ["GROUPS"]
