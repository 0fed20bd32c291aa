"""The operations of the API: one module ``api`` of a room, or several, for each group.

The rooms import the framework of this one, so they are named here and not imported.
"""

from importlib import import_module

MODULES = (
    "account.api.people", "account.api.sessions",
    "overview.api", "alarms.api", "overview.activity_api",
    "machines.api", "versions.drafts_api", "versions.plans_api", "versions.rollouts_api",
    "instances.api", "instances.repairs_api", "jobs.queues.api", "jobs.api", "workers.api", "failures.api", "bulks.api",
    "schedules.api", "approvals.api", "audit.api", "overview.statistics_api", "webhooks.api",
    "account.api.notes", "account.api.saved_views", "account.api.links", "instances.sm.api",
)  # fmt: skip
"""Modules of ``dashboard``, in the order of the document."""
GROUPS = tuple(import_module(f"dashboard.{name}").group for name in MODULES)
