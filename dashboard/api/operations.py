"""The operations of the API: a module ``api`` of each room, with one group for each noun or several.

The rooms import the framework of this one, so they are named here and not imported.
"""

from django.utils.module_loading import import_string

NAMES = (
    "account.api.callers_group", "account.api.sessions_group",
    "overview.api.group", "alarms.api.group", "overview.api.activity_group",
    "machines.api.group", "versions.api.drafts_group", "versions.plans_api.group", "versions.api.rollouts_group",
    "instances.api.group", "instances.api.repairs_group", "jobs.queues.api.group", "jobs.api.group",
    "workers.api.group", "failures.api.group", "bulks.api.group",
    "schedules.api.group", "approvals.api.group", "audit.api.group", "overview.api.statistics_group",
    "webhooks.api.group", "account.api.note_group", "account.api.views_group", "account.api.links_group",
    "instances.sm.api.group",
)  # fmt: skip
"""Groups of operations in ``dashboard``, in the order of the document."""
GROUPS = tuple(import_string(f"dashboard.{name}") for name in NAMES)
