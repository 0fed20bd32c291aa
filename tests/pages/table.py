"""Every address of the site, who may open it, and what they get. One that is not here fails the suite.

404 for what is not there, 403 for what you may not do, the login page for who is not logged in.
"""

from __future__ import annotations

from typing import NamedTuple

from django.urls import reverse

OF_INSTANCE = {"machine": "activation", "id": "ATV-123:NBCSports"}
OF_QUEUE = {"machine": "new_device", "queue": "todo"}
OF_JOB = {"machine": "new_device", "id": "0-1"}
OF_KEY = {"key": "signalbox-test:access:door"}
OF_BULK = {"id": "3f2a"}
OF_APPROVAL = {"id": "7"}
OF_WEBHOOK = {"id": 7}
OF_WORKER = {"worker": "box:1/2"}
OF_PATTERN = {"section": "throttle"}
DOOR = '{"initial":"shut","current":"","reason":"","map":{"shut":["open"],"open":["shut"]}}'


class Entry(NamedTuple):
    """One address: the right it needs, and the code it gives those who hold it, for GET and for an empty POST."""

    right: str | None
    get: int
    post: int
    arguments: dict[str, str] = {}
    query: str = ""

    def url(self, name: str) -> str:
        return reverse(name, kwargs=self.arguments) + self.query


TABLE = {
    "overview": Entry("view", 200, 200),
    "charts": Entry("view", 200, 405),
    "machine": Entry("view", 200, 200, {"machine": "activation"}),
    "machine-charts": Entry("view", 200, 405, {"machine": "activation"}),
    "diagram": Entry("view", 200, 200, {"machine": "activation"}),
    "instances": Entry("view", 200, 200, {"machine": "activation"}),
    "counts": Entry("view", 200, 200, {"machine": "activation"}),
    "rows": Entry("view", 200, 200, {"machine": "activation"}),
    "view-save": Entry("view", 405, 400),
    "note": Entry("fire", 200, 400),
    "view-rename": Entry("view", 405, 404, {"id": "7"}),
    "view-delete": Entry("view", 405, 404, {"id": "7"}),
    "link": Entry("view", 404, 404, {"token": "0.0123456789abcdef.x"}),
    "link-make": Entry("view", 302, 400),
    "link-renew": Entry(None, 302, 404, {"handle": "0123456789abcdef"}),
    "link-revoke": Entry(None, 405, 404, {"handle": "0123456789abcdef"}),
    "create": Entry("fire", 302, 302, {"machine": "activation"}),
    "instance": Entry("view", 200, 200, OF_INSTANCE),
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
    "sm": Entry("view", 200, 200),
    "sm-key": Entry("view", 200, 200, OF_KEY),
    "sm-mutate": Entry("fire", 302, 400, OF_KEY),
    "sm-force": Entry("operate", 302, 400, OF_KEY),
    "queues": Entry("view", 200, 200),
    "queue": Entry("view", 200, 200, OF_QUEUE),
    "queue-charts": Entry("view", 200, 405, OF_QUEUE),
    "queue-pause": Entry("operate", 302, 400, OF_QUEUE),
    "queue-resume": Entry("operate", 302, 400, OF_QUEUE),
    "queue-limit": Entry("operate", 302, 400, OF_QUEUE),
    "queue-purge": Entry("operate", 302, 400, OF_QUEUE),
    "queue-redrive": Entry("operate", 302, 400, OF_QUEUE),
    "queue-move": Entry("operate", 302, 400, OF_QUEUE),
    "job": Entry("view", 200, 200, OF_JOB),
    "job-redrive": Entry("operate", 302, 400, OF_JOB),
    "job-move": Entry("operate", 302, 400, OF_JOB),
    "job-withdraw": Entry("operate", 302, 400, OF_JOB),
    "bulk-new": Entry("operate", 200, 400, {"machine": "activation"}),
    "bulk": Entry("view", 200, 200, OF_BULK),
    "bulk-run": Entry("operate", 302, 302, OF_BULK),
    "bulk-pause": Entry("operate", 302, 302, OF_BULK),
    "bulk-resume": Entry("operate", 302, 302, OF_BULK),
    "bulk-retry": Entry("operate", 302, 302, OF_BULK),
    "bulk-stop": Entry("operate", 302, 302, OF_BULK),
    "bulk-again": Entry("operate", 302, 400, OF_BULK),
    "bulk-rate": Entry("operate", 302, 302, OF_BULK),
    "approvals": Entry("view", 200, 200),
    "approval": Entry("view", 200, 200, OF_APPROVAL),
    "approval-approve": Entry("operate", 302, 302, OF_APPROVAL),
    "approval-decline": Entry("operate", 302, 400, OF_APPROVAL),
    "approval-withdraw": Entry("view", 302, 403, OF_APPROVAL),
    "bulk-results": Entry("view", 200, 200, OF_BULK),
    "workers": Entry("view", 200, 200),
    "direct": Entry("operate", 302, 400, OF_WORKER),
    "audit": Entry("audit", 200, 200),
    "audit-export": Entry("audit", 200, 200),
    "webhooks": Entry("operate", 200, 200),
    "webhook-make": Entry("operate", 302, 400),
    "webhook": Entry("operate", 200, 200, OF_WEBHOOK),
    "webhook-change": Entry("operate", 302, 400, OF_WEBHOOK),
    "webhook-pause": Entry("operate", 302, 302, OF_WEBHOOK),
    "webhook-resume": Entry("operate", 302, 302, OF_WEBHOOK),
    "webhook-rotate": Entry("operate", 302, 200, OF_WEBHOOK),
    "webhook-test": Entry("operate", 302, 302, OF_WEBHOOK),
    "webhook-delete": Entry("operate", 302, 302, OF_WEBHOOK),
    "webhook-redeliver": Entry("operate", 302, 302, OF_WEBHOOK | {"delivery": 7}),
    "patterns": Entry("view", 200, 200),
    "patterns-section": Entry("view", 200, 200, OF_PATTERN),
    "patterns-act": Entry("fire", 302, 302, OF_PATTERN | {"act": "hit"}),
    "components": Entry("view", 200, 200),
    "account": Entry(None, 200, 400),
    "tokens": Entry(None, 200, 400),
    "token-revoke": Entry(None, 405, 404, {"handle": "0123456789ab"}),
    "sessions-end": Entry(None, 405, 302),
    "session-end": Entry(None, 405, 404, {"handle": "0123456789abcdef"}),
    "account-zone": Entry(None, 405, 302),
    "search": Entry("view", 200, 200),
    "login": Entry(None, 200, 200),
    "admin-login": Entry(None, 200, 200),
    "logout": Entry(None, 405, 302),
    "healthz": Entry(None, 200, 405),
    "readyz": Entry(None, 200, 405),
    "favicon": Entry(None, 302, 405),
    "metrics": Entry("view", 200, 405),
    "api-live": Entry("view", 200, 405, query="?topic=overview"),
    "api-docs": Entry("view", 200, 200),
}
NOT_FOR_BROWSERS = {"api-live", "metrics"}  # who is not logged in gets a 401 there, not a login page
