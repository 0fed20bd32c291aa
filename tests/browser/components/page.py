"""Shows every component in every state on one page, to check its looks in light, dark and narrow."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from dashboard.instances.presenters import Deadline, Route
from dashboard.jobs.workers import views as workers
from dashboard.shared.charts import Chart, Charts, Figure
from dashboard.shared.counts import PLACES, Depth, Figures
from dashboard.shared.permissions import require
from dashboard.shared.rendering import render_page
from dashboard.shared.times import TimeFields
from machines import __version__
from machines.engine import Job, Pause, QueueStats, Step, WorkerInfo
from machines.engine.definitions import FieldOutline
from machines.insight.statistics.series import Line, Series
from machines.instances.forms import TypedForm
from machines.models import Approval

NOW = 1_700_000_000_000  # ms: the page shows the same at any time
HOSTILE = """<script>alert("1")</script> {{ x }} ../%2F 🚦"""


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    return render_page(request, "components.html", _make_context() | {"now_ms": NOW})


def _make_context() -> dict[str, Any]:
    return {
        "depths": [Depth("new_device", "todo", 12, 4, 0, 0), Depth("new_device", "provision", 0, 0, 3, 2)],
        "places": PLACES,
        "paused": Pause(NOW - 200_000, "sue", HOSTILE),
        "figures": _make_figures(),
        "availabilities": ["open", "depends", "refused", "held", "idle"],
        "routes": _make_routes(),
        "ages": [NOW - ms for ms in (500, 45_000, 200_000, 7_500_000, 400_000_000, 4_000_000_000)],
        "later": [NOW + 12_000, NOW - 3_000],
        "form": _make_form(None),
        "wrong": _make_form({"payload-count": "many", "payload-tags": "[1,", "payload-free": "x", "payload-*": "3"}),
        "steps": _make_steps(),
        "stamps": TimeFields([FieldOutline("expires", ("integer",), "unix seconds")]),
        "instance": {
            "children": {
                "payment": {"machine": "payment", "id": "R-2001~payment~1.1"},
                "other": {"machine": HOSTILE, "id": HOSTILE},
            }
        },
        "deadlines": [
            Deadline(NOW + 12_000, "after 45 s", where="On its way"),
            Deadline(NOW - 1_000, "ping", to=HOSTILE),
        ],
        "jobs": [_make_job("leased", "", 1), _make_job("dead", "the provider did not answer", 3)],
        "workers": [
            _make_worker("working", 2_000),
            _make_worker("quiet", 2_000),
            _make_worker("stopping", 1_000),
            _make_worker("blocked", 1_000),
            _make_worker("exhausted", 1_000),
            _make_worker("", 60_000),
        ],
        "may_direct": True,
        "requests": Approval.State.choices,
        "charts": _make_charts(),
        "values": ["MTOB1J", "", 3, 2.5, True, None, [1, "two"], {"deep": {"er": []}}, HOSTILE],
    }


def _make_charts() -> Charts:
    """Make one chart with figures and one without. This page does not load the script that draws them."""
    at = [NOW // 1000 - 60 * ago for ago in range(4, 0, -1)]
    lines = [Line("enqueued", [120.0, 90.5, None, 4.0], 215), Line(HOSTILE, [0.4, 1204.0, None, 2.0], 1207)]
    shown = Series("sample", "hour", "/min", 60, at, lines, measured=NOW // 1000 - 8)
    figures = [Figure(Chart("sample", "Jobs"), shown, lines)]
    figures.append(Figure(Chart("none", "Failures"), Series("none", "hour", "/min", 60, at, []), []))
    return Charts("hour", figures, [("hour", "#charts"), ("day", "#charts"), ("month", "#charts")], "")


def _make_figures() -> Figures:
    stats = QueueStats(
        queue="todo", now=NOW, depth={"ready": 12, "leased": 4, "delayed": 0, "dead": 2}, oldest=NOW - 200_000,
        enqueued=1_204_018, taken=1_204_006, completed=1_204_000, failed=37, lost=2, died=2, withdrawn=0, purged=0,
        waits={3: 1000, 8: 20}, runs={9: 900, 12: 120}, concurrency=4, rate="100/s",
    )  # fmt: skip
    return Figures("new_device", stats)


def _make_routes() -> list[Route]:
    return [
        Route("t1", "depends", "Active", "event.token == token", "the right code"),
        Route("t2", "fails", None, "failed < 3", "a wrong code", ["failed < 3 is false: failed = 3"]),
        Route("t3", "error", "Active", "expires >= now", "", ["expires >= now fails: nothing cannot be compared"]),
        Route("t4", "holds", "Suspended", None, "one wrong code too many"),
        Route("t5", "later", HOSTILE, None, ""),
        Route("t6", "outdone", "Cancelled", None, "", source="Invoice"),
    ]


def _make_form(data: dict[str, str] | None) -> TypedForm:
    kinds = [("token", ("string",)), ("count", ("integer",)), ("rate", ("number",)), ("sure", ("boolean",))]
    kinds += [("tags", ("array",)), ("free", ("any",))]
    outlines = [FieldOutline(name, types, f"takes {' or '.join(types)}") for name, types in kinds]
    outlines.append(FieldOutline("needed", ("string",), required=True))
    return TypedForm(outlines, is_open=True, id_prefix="wrong" if data else "blank", data=data)


def _make_steps() -> list[Step]:
    def step(version: int, ago: int, event: str, source: str | None, state: str, **rest: Any) -> Step:
        given = {"actor": "", "reason": "", "payload": {}, "changes": {}} | rest
        return Step(version, NOW - ago, event, [source] if source else None, [state], transitions=[], **given)

    lasting = {"expires": NOW // 1000 + 28 * 86400}
    return [
        step(4, 3_000, "entitle", "Waiting", "Active", actor="alice", payload={"token": "MTOB1J"}, changes=lasting),
        step(3, 60_000, "entitle", "Waiting", "Waiting", actor="alice", changes={"failed": 1, "note": HOSTILE}),
        step(2, 90_000, "activate", "New", "Waiting", reason="the customer called", changes={"token": None}),
        step(1, 95_000, "create", None, "New"),
    ]


def _make_job(place: str, error: str, attempt: int) -> Job:
    return Job(
        id="0-17", machine="new_device", root="", queue="todo", src="do_activate", instance="ATV-123:NBCSports",
        invoke="todo", input=None, data={}, attempt=attempt, attempts=3, token="",
        lease_until=NOW + 21_000, lease=30_000,
        created=NOW - 60_000, place=place, worker="box:17:3f", error=error, kind="TimeoutError" if error else "",
        trace="Traceback (most recent call last):\n  ...\nTimeoutError: the provider did not answer" if error else "",
        progress={"done": 1204, "total": 3600, "note": "packing", "at": NOW} if place == "leased" else None,
    )  # fmt: skip


def _make_worker(status: str, seen_ago: int) -> workers.Worker:
    holds = {"id": "0-17", "machine": "new_device", "queue": "todo", "src": "do_activate", "attempt": 1}
    row = WorkerInfo(
        f"box:17:{status or 'silent'}", "box", 17, ["new_device/todo", "new_device/provision"],
        in_hand=4, started=NOW - 7_200_000, seen=NOW - seen_ago, version=__version__,
        note="" if status == "working" else "no handler here for provision",
        status=status or "working", memory=84_200_000, concurrency=8, done=12_404, failed=0 if status else 3,
        hanging={"new_device/todo": ["do_activate"]} if status in ("blocked", "exhausted") else {},
        holding=[holds | {"instance": name, "since": NOW - 800} for name in ("ATV-123:NBCSports", HOSTILE)],
    )  # fmt: skip
    return workers.make_worker(row, NOW)
