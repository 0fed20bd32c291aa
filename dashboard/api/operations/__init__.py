"""The operations, one module for each noun."""

from . import (
    approvals,
    audit,
    bulks,
    instances,
    jobs,
    keys,
    machines,
    overview,
    people,
    queues,
    repairs,
    statistics,
    views,
    webhooks,
    workers,
)

GROUPS = tuple(
    module.group
    for module in (
        people,
        overview,
        machines, instances, repairs, queues, jobs, workers, bulks, approvals, audit, statistics, webhooks,
        views, keys,
    )
)  # fmt: skip

__all__ = ["GROUPS"]
