"""Every operation of the API: whom it is for, and a request that succeeds. One that is not here fails the suite."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DOOR = {
    "id": "door",
    "initial": "shut",
    "index": ["serial"],
    "context": {
        "type": "object",
        "properties": {
            "serial": {"type": "string"},
            "count": {"type": "integer", "default": 0},
            "pin": {"type": "string", "default": "", "sensitive": True},
        },
    },
    "approval": ["fire:melt"],
    "states": {
        "shut": {"on": {"open": "opened", "lock": {"target": "locked", "guard": "event.pin == pin"}, "melt": "jammed"}},
        "opened": {"on": {"shut": "shut"}},
        "locked": {
            "invoke": {"id": "oil", "src": "oil", "queue": "oiling", "onDone": "shut"},
        },
        "jammed": {},
    },
}  # fmt: skip
WHY = {"reason": "a test"}
NIGHTLY = {
    "name": "nightly", "when": {"cron": "30 2 * * *"},
    "what": {"do": "enqueue", "machine": "door", "src": "oil", "queue": "oiling"},
}  # fmt: skip
HERE = "/machines/door/instances/front"
KEY = "signalbox-test:api:door"
ALARM = "dead:door/oiling"
OF_QUEUE = "/machines/door/queues/oiling"


@dataclass(frozen=True)
class Case:
    """``path`` below ``/api/v1``; ``stands``: what has to be there: see the builders in conftest; ``session``: asked by
    a session of the token."""

    right: str
    path: str
    body: dict[str, Any] | None = None
    status: int = 200
    stands: str = "shut"
    everywhere: bool = False
    machine: bool = True
    session: bool = False
    headers: dict[str, str] = field(default_factory=dict)


def _insight() -> dict[str, Case]:
    """Questions about facts that nobody keeps here; ``tests/pages/insight`` has their answers."""
    names = ("Paths", "Durations", "Bottlenecks", "People", "Levels", "Conformance")
    paths = {f"getInsight{name}": name.lower() for name in names}
    paths |= {"getInsightFunnel": "funnel?stage=shut&stage=opened", "listInsightInstances": "instances"}
    found = {name: Case("view", f"/machines/door/insight/{path}", status=409) for name, path in paths.items()}
    both = {"first": {"version": "1"}, "second": {}}
    return found | {"compareInsight": Case("view", "/machines/door/insight/comparison", both, 409)}


def _repairs() -> dict[str, Case]:
    asked: dict[str, tuple[dict[str, Any], str]] = {
        "force": ({"state": "opened"}, "shut"),
        "edit": ({"changes": {"count": 3}}, "shut"),
        "reset": ({}, "shut"),
        "retry": ({"invoke": "oil"}, "dead"),
        "skip": ({"invoke": "oil", "result": None}, "locked"),
        "cancel": ({"invoke": "oil"}, "locked"),
        "suspend": ({}, "shut"),
        "resume": ({}, "suspended"),
        "delete": ({}, "shut"),
    }
    found = {}
    for name, (body, stands) in asked.items():
        found[f"{name}Instance"] = Case("operate", f"{HERE}/repairs/{name}", body | WHY, stands=stands)
        found[f"preview{name.title()}"] = Case("operate", f"{HERE}/repairs/{name}/preview", body, stands=stands)
    return found


TABLE: dict[str, Case] = {
    "getAccepts": Case("view", "/machines/door/accepts"),
    "getDocument": Case("view", "/openapi.json", machine=False),
    "getMe": Case("view", "/me", machine=False),
    "makeSession": Case("view", "/sessions", {"ttl": 60, "state": {"n": 1}}, 201, machine=False),
    "listSessions": Case("view", "/sessions", machine=False),
    "revokeSessions": Case("view", "/sessions", machine=False),
    "revokeSession": Case("view", "/sessions/0123456789abcdef", None, 404, machine=False),
    "getSession": Case("view", "/sessions/current", machine=False, session=True),
    "putSession": Case("view", "/sessions/current", {"state": {"n": 2}}, machine=False, session=True),
    "rotateSession": Case("view", "/sessions/current/rotate", {}, machine=False, session=True),
    "endSession": Case("view", "/sessions/current", machine=False, session=True),
    "listAlarms": Case("view", "/alarms", stands="dead", machine=False),
    "listAlarmEvents": Case("view", "/alarms/history", stands="dead", machine=False),
    "acknowledgeAlarm": Case("operate", "/alarms/acknowledge", {"key": ALARM}, stands="dead"),
    "assignAlarm": Case("operate", "/alarms/assign", {"key": ALARM, "owner": ""}, stands="dead"),
    "snoozeAlarm": Case("operate", "/alarms/snooze", {"key": ALARM, "minutes": 5, **WHY}, stands="dead"),
    "wakeAlarm": Case("operate", "/alarms/wake", {"key": ALARM}, stands="dead"),
    "search": Case("view", "/search?q=fron", machine=False),
    "countInstances": Case("view", "/machines/door/counts?state=shut"),
    "getProblems": Case("view", f"{HERE}/problems", stands="dead"),
    "listMachines": Case("view", "/machines", machine=False),
    "getMachine": Case("view", "/machines/door"),
    "getFigures": Case("view", "/machines/door/live"),
    "listVersions": Case("view", "/machines/door/versions"),
    "getDefinition": Case("view", "/machines/door/definition"),
    "getDiagram": Case("view", "/machines/door/diagram.svg"),
    "checkDefinition": Case("view", "/definitions/check", {"definition": DOOR}, machine=False),
    "publishMachine": Case(
        "publish", "/machines", {"definition": DOOR | {"description": "a door"}}, 201
    ),
    "listDrafts": Case("publish", "/machines/door/drafts", stands="draft"),
    "saveDraft": Case("publish", "/machines/door/drafts", {"text": "{}", "note": "a try"}, 201),
    "getDraft": Case("publish", "/drafts/{draft}", stands="draft"),
    "changeDraft": Case("publish", "/drafts/{draft}", {"text": "{}"}, stands="draft"),
    "checkDraft": Case("publish", "/drafts/{draft}/check", stands="draft"),
    "rebaseDraft": Case("publish", "/drafts/{draft}/rebase", {"onto": 1}, stands="draft"),
    "discardDraft": Case("publish", "/drafts/{draft}/discard", {}, stands="draft"),
    "publishDraft": Case("publish", "/drafts/{draft}/publish", {}, 201, stands="draft"),
    "compareDraft": Case("publish", "/drafts/{draft}/diff", stands="draft"),
    "replayDraft": Case("publish", "/drafts/{draft}/replay", {}, stands="draft"),
    "replayVersion": Case("operate", "/machines/door/replay", {"version": 1}),
    "compareVersions": Case("view", "/machines/door/diff?a=1&b=2", stands="plan"),
    "makePlan": Case("view", "/machines/door/plan", {"to": 2}, stands="plan"),
    "listPlans": Case("view", "/machines/door/plans", stands="plan"),
    "storePlan": Case("operate", "/machines/door/plans", {"to": 2, "note": "a try"}, 201, stands="plan"),
    "getPlan": Case("view", "/plans/{plan}", stands="plan"),
    "tryPlan": Case("operate", "/plans/{plan}/dry-run", stands="plan"),
    "movePlan": Case("operate", "/plans/{plan}/move", WHY, 201, stands="plan"),
    "movePlanBack": Case("operate", "/plans/{plan}/back", WHY, 409, stands="plan"),
    "getRollout": Case("view", "/machines/door/rollout", stands="rollout"),
    "getVersionFigures": Case("view", "/machines/door/versions/figures", stands="rollout"),
    "startRollout": Case("publish", "/machines/door/rollout", {"version": 2, "percent": 5, **WHY}, stands="plan"),
    "setRollout": Case("publish", "/machines/door/rollout", {"percent": 20, **WHY}, stands="rollout"),
    "stopRollout": Case("publish", "/machines/door/rollout/stop", WHY, stands="rollout"),
    "finishRollout": Case("publish", "/machines/door/rollout/finish", WHY, stands="rollout"),
    "pinVersion": Case("publish", "/machines/door/pin", {"version": 1, **WHY}),
    "withdrawVersion": Case("publish", "/machines/door/versions/2/withdraw", WHY, stands="plan"),
    "setVersionPolicy": Case("publish", "/machines/door/version-policy", {"actions": ["publish"], **WHY}),
    "pinInstance": Case("operate", f"{HERE}/pin", WHY),
    "findInstances": Case("view", "/machines/door/instances?state=shut"),
    "createInstance": Case("fire", "/machines/door/instances", {"id": "back", "data": {"serial": "D-2"}}, 201),
    "getInstance": Case("view", HERE),
    "fireEvent": Case("fire", f"{HERE}/events", {"event": "open"}),
    "fireEvents": Case("fire", "/machines/door/events", {"calls": [{"id": "front", "event": "open"}]}),
    "explainEvent": Case("view", f"{HERE}/explanations", {"event": "open"}),
    "getHistory": Case("view", f"{HERE}/history"),
    "getWaits": Case("view", f"{HERE}/waits", stands="locked"),
    **_repairs(),
    "listQueues": Case("view", "/queues", stands="locked", machine=False),
    "listMachineQueues": Case("view", "/machines/door/queues", stands="locked"),
    "getQueue": Case("view", OF_QUEUE, stands="locked"),
    "listJobs": Case("view", f"{OF_QUEUE}/jobs?place=ready", stands="locked"),
    "listGroups": Case("view", f"{OF_QUEUE}/groups?order=age", stands="locked"),
    "actOnJobs": Case(
        "operate", f"{OF_QUEUE}/act", {"place": "ready", "action": "withdraw", **WHY}, 201, stands="locked"
    ),
    "pauseQueue": Case("operate", f"{OF_QUEUE}/pause", WHY, stands="locked"),
    "resumeQueue": Case("operate", f"{OF_QUEUE}/resume", WHY, stands="locked"),
    "limitQueue": Case("operate", f"{OF_QUEUE}/limit", {"concurrency": 2, **WHY}, stands="locked"),
    "purgeQueue": Case("operate", f"{OF_QUEUE}/purge", {"place": "ready", "expect": 1, **WHY}, stands="locked"),
    "redriveQueue": Case("operate", f"{OF_QUEUE}/redrive", WHY, stands="dead"),
    "runQueueNow": Case("operate", f"{OF_QUEUE}/move", WHY, stands="locked"),
    "getJob": Case("view", "/machines/door/jobs/0-1", stands="locked"),
    "redriveJob": Case("operate", "/machines/door/jobs/0-1/redrive", WHY, stands="dead"),
    "runJobNow": Case("operate", "/machines/door/jobs/0-1/move", WHY, stands="delayed"),
    "withdrawJob": Case("operate", "/machines/door/jobs/0-1/withdraw", WHY, stands="locked"),
    "listWorkers": Case("view", "/workers", stands="worker", machine=False),
    "directWorker": Case(
        "operate", "/workers/box:1~2F2/orders", {"order": "quiet", **WHY}, stands="worker", everywhere=True,
        machine=False,
    ),
    "listErrors": Case("view", "/errors", stands="failure", machine=False),
    "getError": Case("view", "/errors/{failure}", stands="failure"),
    "assignError": Case("operate", "/errors/{failure}/assign", {"assignee": ""}, stands="failure"),
    "muteError": Case("operate", "/errors/{failure}/mute", WHY, stands="failure"),
    "resolveError": Case("operate", "/errors/{failure}/resolve", WHY, stands="failure"),
    "reopenError": Case("operate", "/errors/{failure}/reopen", WHY, stands="failure"),
    "redriveErrors": Case("operate", "/errors/redrive", WHY, 201, stands="failure", machine=False),
    "listRetries": Case("view", "/errors/retries", stands="failure", machine=False),
    "stopRetry": Case("operate", "/errors/retries/7/stop", WHY, stands="failure", machine=False),
    "redriveError": Case("operate", "/errors/{failure}/redrive", WHY, 201, stands="failure"),
    "skipError": Case("operate", "/errors/{failure}/skip", {"result": None, **WHY}, 201, stands="failure"),
    "stopErrorAction": Case("operate", "/errors/{failure}/stop", WHY, stands="failure"),
    "startBulk": Case(
        "operate", "/machines/door/bulks", {"action": "suspend", "filter": {"state": "shut"}, **WHY}, 201
    ),
    "getBulk": Case("view", "/bulks/b1", stands="bulk"),
    "listBulkResults": Case("view", "/bulks/b1/results", stands="bulk"),
    "runBulk": Case("operate", "/bulks/b1/run", {}, stands="previewed"),
    "pauseBulk": Case("operate", "/bulks/b1/pause", {}, stands="running"),
    "resumeBulk": Case("operate", "/bulks/b1/resume", {}, stands="paused"),
    "stopBulk": Case("operate", "/bulks/b1/stop", {}, stands="previewed"),
    "retryBulk": Case("operate", "/bulks/b1/retry", {}, 409, stands="bulk"),
    "removeBulk": Case("operate", "/bulks/b1/remove", {}, 409, stands="bulk"),
    "againBulk": Case("operate", "/bulks/b1/again", WHY, 201, stands="bulk"),
    "listApprovals": Case("view", "/approvals", stands="asked", machine=False),
    "getApproval": Case("view", "/approvals/{asked}", stands="asked"),
    "approve": Case("operate", "/approvals/{asked}/approve", {}, stands="asked"),
    "decline": Case("operate", "/approvals/{asked}/decline", {"note": "not now"}, stands="asked"),
    "withdraw": Case("view", "/approvals/{asked}/withdraw", {}, 403, stands="asked"),
    "listSchedules": Case("view", "/schedules", stands="schedule", machine=False),
    "putSchedule": Case("operate", "/schedules", {"schedule": NIGHTLY}),
    "getSchedule": Case("view", "/schedules/nightly", stands="schedule"),
    "listNextRuns": Case("view", "/schedules/nightly/next", stands="schedule"),
    "listRuns": Case("view", "/schedules/nightly/runs", stands="schedule"),
    "pauseSchedule": Case("operate", "/schedules/nightly/pause", WHY, stands="schedule"),
    "resumeSchedule": Case("operate", "/schedules/nightly/resume", WHY, stands="schedule"),
    "takeOverSchedule": Case("operate", "/schedules/nightly/take-over", WHY, stands="schedule"),
    "runSchedule": Case("operate", "/schedules/nightly/run", WHY, stands="schedule"),
    "backfillSchedule": Case(
        "operate", "/schedules/nightly/backfill", {"start": "2026-11-01", "end": "2026-11-08"}, stands="schedule"
    ),
    "removeSchedule": Case("operate", "/schedules/nightly", stands="schedule"),
    "rateBulk": Case("operate", "/bulks/b1/rate", {"rate": 5}, stands="previewed"),
    "getStatistics": Case("view", "/statistics?what=work&span=day", machine=False),
    "getMachineStatistics": Case("view", "/machines/door/statistics?what=edges"),
    "listWebhooks": Case("operate", "/webhooks", stands="hook", everywhere=True, machine=False),
    "listLogGaps": Case("operate", "/webhooks/gaps", everywhere=True, machine=False),
    "makeWebhook": Case(
        "operate", "/webhooks", {"name": "new", "url": "https://example.com/"}, 201, everywhere=True, machine=False
    ),
    "getWebhook": Case("operate", "/webhooks/{hook}", stands="hook", everywhere=True, machine=False),
    "changeWebhook": Case(
        "operate", "/webhooks/{hook}", {"types": ["x"]}, stands="hook", everywhere=True, machine=False
    ),
    "rotateWebhook": Case("operate", "/webhooks/{hook}/rotate", {}, stands="hook", everywhere=True, machine=False),
    "deleteWebhook": Case("operate", "/webhooks/{hook}", stands="hook", everywhere=True, machine=False),
    "testWebhook": Case("operate", "/webhooks/{hook}/test", {}, stands="hook", everywhere=True, machine=False),
    "listDeliveries": Case("operate", "/webhooks/{hook}/deliveries", stands="hook", everywhere=True, machine=False),
    "redeliver": Case(
        "operate", "/webhooks/{hook}/deliveries/{delivery}/redeliver", {}, stands="hook", everywhere=True, machine=False
    ),
    "pauseWebhook": Case("operate", "/webhooks/{hook}/pause", {}, stands="hook", everywhere=True, machine=False),
    "resumeWebhook": Case("operate", "/webhooks/{hook}/resume", {}, stands="hook", everywhere=True, machine=False),
    "listViews": Case("view", "/views", stands="view", machine=False),
    "saveView": Case(
        "view", "/views", {"name": "mine", "page": "/machines/door/", "query": "state=shut"}, machine=False
    ),
    "deleteView": Case("view", "/views/{view}", None, 404, stands="view", machine=False),
    "getKey": Case("view", f"/sm/{KEY}", stands="key", everywhere=True, machine=False),
    "mutateKey": Case(
        "fire", f"/sm/{KEY}/mutate", {"state": "open", "seen": "shut"}, stands="key", everywhere=True, machine=False
    ),
    "forceKey": Case(
        "operate", f"/sm/{KEY}/force", {"state": "open", "seen": "shut", **WHY}, stands="key", everywhere=True,
        machine=False,
    ),
    "listAudit": Case("audit", "/audit", machine=False),
    **_insight(),
}  # fmt: skip
