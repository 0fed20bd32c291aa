"""Every address of the site, who may open it, and what they get. One that is not here fails the suite.

404 for what is not there, 403 for what you may not do, the login page for who is not logged in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from django.urls import reverse

OF_INSTANCE = {"machine": "activation", "id": "ATV-123:NBCSports"}
OF_QUEUE = {"machine": "new_device", "queue": "todo"}
OF_JOB = {"machine": "new_device", "id": "0-1"}
OF_KEY = {"key": "signalbox-test:access:door"}
OF_BULK = {"id": "3f2a"}
OF_SCHEDULE = {"name": "nightly"}
OF_APPROVAL = {"id": "7"}
OF_WEBHOOK = {"id": 7}
OF_ROUTE = {"id": 7}
OF_ERROR = {"id": 7}
OF_RETRY = {"number": 7}
OF_DRAFT = {"machine": "activation", "id": 7}
OF_PLAN = {"machine": "new_device", "id": 7}
OF_WORKER = {"worker": "box:1/2"}
DOOR = '{"initial":"shut","current":"","reason":"","map":{"shut":["open"],"open":["shut"]}}'
EVERYONE, OWN, SOME, MACHINE, ALL = "everyone", "own", "some", "machine", "all"
OF_THE_SITE = ("admin-login", "favicon")  # of the product's own site; all others are in the namespace signalbox


class Entry(NamedTuple):
    """One address: the right it needs, and the code it gives those who hold it, for GET and for an empty POST.

    ``of``: on what the right is asked for. EVERYONE: nobody has to be logged in. OWN: of no machine, and somebody's own
    or everybody's. SOME: open to who sees any machine, and about those alone. MACHINE: of the one in the arguments, or
    the one that the thing in them is of. ALL: only for who holds the right on every machine.
    """

    right: str | None
    get: int
    post: int
    arguments: dict[str, Any] = {}
    query: str = ""
    of: str = ""

    def url(self, name: str, **others: Any) -> str:
        """``others``: arguments in place of its own."""
        return (
            reverse(name if name in OF_THE_SITE else f"signalbox:{name}", kwargs=self.arguments | others) + self.query
        )


def _entries() -> dict[str, Entry]:
    """With ``of`` where an entry does not say it: what takes arguments is of a machine, what takes none of many."""
    return {name: entry if entry.of else entry._replace(of=_usual(entry)) for name, entry in _TABLE.items()}


def _usual(entry: Entry) -> str:
    if entry.right is None:
        return OWN
    return MACHINE if entry.arguments else SOME


_TABLE = {
    "overview": Entry("view", 200, 200),
    "charts": Entry("view", 200, 405),
    "wall": Entry("view", 200, 200),
    "machine": Entry("view", 200, 200, {"machine": "activation"}),
    "completion": Entry("view", 200, 405, {"machine": "activation"}),
    "machine-charts": Entry("view", 200, 405, {"machine": "activation"}),
    "reconcile": Entry("operate", 302, 400, {"machine": "activation"}),
    "diagram": Entry("view", 200, 200, {"machine": "activation"}),
    "versions": Entry("view", 200, 200, {"machine": "activation"}),
    "version": Entry("view", 200, 200, {"machine": "activation", "number": 1}),
    "version-diff": Entry("view", 200, 200, {"machine": "new_device"}),
    "version-rollout": Entry("publish", 302, 400, {"machine": "activation"}),
    "version-pin": Entry("publish", 302, 400, {"machine": "activation"}),
    "version-withdraw": Entry("publish", 302, 400, {"machine": "activation"}),
    "version-policy": Entry("publish", 302, 400, {"machine": "activation"}),
    "version-replay": Entry("view", 200, 200, {"machine": "activation"}),
    "version-step": Entry("view", 200, 200, {"machine": "activation"}, "?version=1"),
    "studio-new": Entry("publish", 200, 400, of=ALL),
    "studio-check-new": Entry("publish", 405, 200, of=ALL),
    "studio-verify-new": Entry("publish", 405, 200, of=ALL),
    "studio-play-new": Entry("publish", 405, 200, of=ALL),
    "studio": Entry("view", 200, 200, {"machine": "activation"}),
    "studio-submit": Entry("publish", 302, 400, {"machine": "activation"}),
    "studio-check": Entry("view", 405, 200, {"machine": "activation"}),
    "studio-verify": Entry("view", 405, 200, {"machine": "activation"}),
    "studio-play": Entry("view", 405, 200, {"machine": "activation"}),
    "studio-save": Entry("publish", 405, 200, {"machine": "activation"}),
    "studio-presence": Entry("publish", 405, 200, {"machine": "activation"}),
    "try": Entry("view", 200, 200, {"machine": "activation"}),
    "try-step": Entry("view", 302, 400, {"machine": "activation"}),
    "try-scenario": Entry("view", 200, 200, {"machine": "activation"}),
    "draft": Entry("publish", 200, 200, OF_DRAFT),
    "draft-publish": Entry("publish", 302, 400, OF_DRAFT),
    "draft-rebase": Entry("publish", 302, 302, OF_DRAFT),
    "draft-discard": Entry("publish", 302, 302, OF_DRAFT),
    "plan-new": Entry("view", 200, 400, {"machine": "new_device"}),
    "plan": Entry("view", 200, 200, OF_PLAN),
    "plan-dry-run": Entry("operate", 302, 302, OF_PLAN),
    "plan-move": Entry("operate", 302, 400, OF_PLAN),
    "plan-back": Entry("operate", 302, 400, OF_PLAN),
    "plan-refused": Entry("view", 200, 200, OF_PLAN),
    "insight": Entry("view", 200, 200, {"machine": "activation"}),
    "insight-xes": Entry("view", 409, 405, {"machine": "activation"}),
    "insight-parquet": Entry("audit", 409, 405, {"machine": "activation"}),
    "archived": Entry("view", 200, 200, {"machine": "activation"}),
    "rows": Entry("view", 200, 200, {"machine": "activation"}),
    "instances-csv": Entry("view", 200, 405, {"machine": "activation"}),
    "instances-json": Entry("view", 200, 405, {"machine": "activation"}),
    "view-save": Entry("view", 405, 400, of=OWN),
    "view-rename": Entry("view", 405, 404, {"id": "7"}, of=OWN),
    "view-delete": Entry("view", 405, 404, {"id": "7"}, of=OWN),
    "create": Entry("fire", 302, 302, {"machine": "activation"}),
    "instance": Entry("view", 200, 200, OF_INSTANCE),
    "history-csv": Entry("view", 200, 405, OF_INSTANCE),
    "history-json": Entry("view", 200, 405, OF_INSTANCE),
    "fire": Entry("fire", 302, 400, OF_INSTANCE),
    "force": Entry("operate", 200, 400, OF_INSTANCE),
    "edit": Entry("operate", 200, 400, OF_INSTANCE),
    "reset": Entry("operate", 200, 400, OF_INSTANCE),
    "retry": Entry("operate", 200, 400, OF_INSTANCE),
    "skip": Entry("operate", 200, 400, OF_INSTANCE),
    "cancel": Entry("operate", 200, 400, OF_INSTANCE),
    "suspend": Entry("operate", 200, 400, OF_INSTANCE),
    "resume": Entry("operate", 200, 400, OF_INSTANCE),
    "delete": Entry("operate", 200, 400, OF_INSTANCE),
    "sm": Entry("view", 200, 200, of=ALL),
    "sm-key": Entry("view", 200, 200, OF_KEY, of=ALL),
    "sm-mutate": Entry("fire", 302, 400, OF_KEY, of=ALL),
    "sm-force": Entry("operate", 302, 400, OF_KEY, of=ALL),
    "queues": Entry("view", 200, 200),
    "queue": Entry("view", 200, 200, OF_QUEUE),
    "queue-charts": Entry("view", 200, 405, OF_QUEUE),
    "queue-groups": Entry("view", 200, 200, OF_QUEUE),
    "queue-search": Entry("operate", 200, 404, OF_QUEUE),
    "queue-pause": Entry("operate", 302, 400, OF_QUEUE),
    "queue-resume": Entry("operate", 302, 400, OF_QUEUE),
    "queue-limit": Entry("operate", 302, 400, OF_QUEUE),
    "queue-purge": Entry("operate", 302, 400, OF_QUEUE),
    "queue-move": Entry("operate", 302, 400, OF_QUEUE),
    "job": Entry("view", 200, 200, OF_JOB),
    "job-redrive": Entry("operate", 302, 400, OF_JOB),
    "job-move": Entry("operate", 302, 400, OF_JOB),
    "job-withdraw": Entry("operate", 302, 400, OF_JOB),
    "bulk-list": Entry("view", 200, 200),
    "bulk-new": Entry("operate", 200, 400, {"machine": "activation"}),
    "bulk": Entry("view", 200, 200, OF_BULK),
    "bulk-run": Entry("operate", 302, 302, OF_BULK),
    "bulk-pause": Entry("operate", 302, 302, OF_BULK),
    "bulk-resume": Entry("operate", 302, 302, OF_BULK),
    "bulk-retry": Entry("operate", 302, 302, OF_BULK),
    "bulk-stop": Entry("operate", 302, 302, OF_BULK),
    "bulk-remove": Entry("operate", 302, 302, OF_BULK),
    "bulk-again": Entry("operate", 302, 400, OF_BULK),
    "bulk-rate": Entry("operate", 302, 302, OF_BULK),
    "schedules": Entry("view", 200, 200),
    "schedule-new": Entry("operate", 200, 400, {"machine": "activation"}),
    "schedule": Entry("view", 200, 200, OF_SCHEDULE),
    "schedule-change": Entry("operate", 200, 400, OF_SCHEDULE),
    "schedule-take-over": Entry("operate", 302, 302, OF_SCHEDULE),
    "schedule-pause": Entry("operate", 302, 302, OF_SCHEDULE),
    "schedule-resume": Entry("operate", 302, 302, OF_SCHEDULE),
    "schedule-run": Entry("operate", 302, 302, OF_SCHEDULE),
    "schedule-backfill": Entry("operate", 302, 400, OF_SCHEDULE),
    "schedule-remove": Entry("operate", 302, 302, OF_SCHEDULE),
    "alarms": Entry("view", 200, 200),
    "alarm-history": Entry("view", 200, 200),
    "alarm-acknowledge": Entry("operate", 302, 400, of=OWN),
    "alarm-assign": Entry("operate", 302, 400, of=OWN),
    "alarm-snooze": Entry("operate", 302, 400, of=OWN),
    "alarm-wake": Entry("operate", 302, 400, of=OWN),
    "approvals": Entry("view", 200, 200),
    "approval": Entry("view", 200, 200, OF_APPROVAL),
    "approval-approve": Entry("operate", 302, 302, OF_APPROVAL),
    "approval-decline": Entry("operate", 302, 400, OF_APPROVAL),
    "approval-withdraw": Entry("view", 302, 403, OF_APPROVAL),
    "run-retry": Entry("operate", 302, 404, OF_INSTANCE),
    "run-remove": Entry("operate", 302, 404, OF_INSTANCE),
    "bulk-results": Entry("view", 200, 200, OF_BULK),
    "workers": Entry("view", 200, 200),
    "errors": Entry("view", 200, 200),
    "error-retry": Entry("operate", 200, 400),
    "error-retry-stop": Entry("operate", 302, 302, OF_RETRY, of=SOME),
    "error-group": Entry("view", 200, 200, OF_ERROR),
    "error-assign": Entry("operate", 302, 302, OF_ERROR),
    "error-mute": Entry("operate", 302, 400, OF_ERROR),
    "error-resolve": Entry("operate", 302, 400, OF_ERROR),
    "error-reopen": Entry("operate", 302, 400, OF_ERROR),
    "error-redrive": Entry("operate", 302, 400, OF_ERROR),
    "error-skip": Entry("operate", 302, 400, OF_ERROR),
    "error-stop": Entry("operate", 302, 400, OF_ERROR),
    "direct": Entry("operate", 302, 400, OF_WORKER, of=ALL),
    "audit": Entry("audit", 200, 200),
    "audit-export": Entry("audit", 200, 200),
    "webhooks": Entry("operate", 200, 200, of=ALL),
    "webhook-make": Entry("operate", 302, 400, of=ALL),
    "webhook": Entry("operate", 200, 200, OF_WEBHOOK, of=ALL),
    "webhook-change": Entry("operate", 302, 400, OF_WEBHOOK, of=ALL),
    "webhook-pause": Entry("operate", 302, 302, OF_WEBHOOK, of=ALL),
    "webhook-resume": Entry("operate", 302, 302, OF_WEBHOOK, of=ALL),
    "webhook-rotate": Entry("operate", 302, 200, OF_WEBHOOK, of=ALL),
    "webhook-test": Entry("operate", 302, 302, OF_WEBHOOK, of=ALL),
    "webhook-delete": Entry("operate", 302, 302, OF_WEBHOOK, of=ALL),
    "alarm-routes": Entry("operate", 200, 200, of=ALL),
    "alarm-route-make": Entry("operate", 302, 400, of=ALL),
    "alarm-route": Entry("operate", 200, 200, OF_ROUTE, of=ALL),
    "alarm-route-change": Entry("operate", 302, 400, OF_ROUTE, of=ALL),
    "alarm-route-pause": Entry("operate", 302, 302, OF_ROUTE, of=ALL),
    "alarm-route-resume": Entry("operate", 302, 302, OF_ROUTE, of=ALL),
    "alarm-route-rotate": Entry("operate", 302, 200, OF_ROUTE, of=ALL),
    "alarm-route-test": Entry("operate", 302, 302, OF_ROUTE, of=ALL),
    "alarm-route-delete": Entry("operate", 302, 302, OF_ROUTE, of=ALL),
    "alarm-route-redeliver": Entry("operate", 302, 302, OF_ROUTE | {"delivery": 8}, of=ALL),
    "webhook-redeliver": Entry("operate", 302, 302, OF_WEBHOOK | {"delivery": 7}, of=ALL),
    "patterns": Entry("view", 200, 200, of=OWN),
    "patterns-act": Entry("fire", 302, 302, {"section": "ids"}, of=OWN),
    "account": Entry(None, 200, 400),
    "tokens": Entry(None, 200, 400),
    "token-revoke": Entry(None, 405, 404, {"handle": "0123456789ab"}),
    "sessions-end": Entry(None, 405, 302),
    "session-end": Entry(None, 405, 404, {"handle": "0123456789abcdef"}),
    "account-zone": Entry(None, 405, 302),
    "account-theme": Entry(None, 405, 302),
    "account-tour": Entry(None, 405, 302),
    "search": Entry("view", 200, 200),
    "search-suggestions": Entry("view", 200, 200),
    "login": Entry(None, 200, 200, of=EVERYONE),
    "admin-login": Entry(None, 200, 200, of=EVERYONE),
    "logout": Entry(None, 405, 302, of=EVERYONE),
    "healthz": Entry(None, 200, 405, of=EVERYONE),
    "readyz": Entry(None, 200, 405, of=EVERYONE),
    "favicon": Entry(None, 302, 405, of=EVERYONE),
    "instances": Entry(None, 301, 301, {"machine": "activation"}, of=EVERYONE),
    "metrics": Entry("view", 200, 405),
    "api-live": Entry("view", 200, 405, query="?topic=overview"),
    "api-docs": Entry("view", 200, 200),
}
TABLE = _entries()
NOT_FOR_BROWSERS = {"api-live", "metrics"}  # who is not logged in gets a 401 there, not a login page
