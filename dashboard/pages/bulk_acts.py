"""What operators do to a bulk: run, pause, resume, stop, retry, again for those that failed; and its CSV."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from dashboard.access import Forbidden, require
from dashboard.pages.audit_export import cell, streamed, writer
from dashboard.pages.bulks import bulk_page, id_of, may, order_of
from machines.auditing import audited
from machines.bulk import Bulk, NotNow, Order, Row
from machines.bulk.order import MAX_REASON
from machines.connections import get_engine
from machines.engine import Instance, errors

TOLD = {
    "run": "It runs",
    "pause": "It is paused: at most those just in hand are still moved",
    "resume": "It goes on",
    "retry": "It goes on where it broke",
    "stop": "It is stopped for good",
}
COLUMNS = ("instance", "state", "version", "verdict", "verdict_why", "outcome", "outcome_why")


@require("operate")
def run(request: HttpRequest, id: str) -> HttpResponse:
    return _do(request, id, "run", "bulk.run")


@require("operate")
def pause(request: HttpRequest, id: str) -> HttpResponse:
    return _do(request, id, "pause", "bulk.pause")


@require("operate")
def resume(request: HttpRequest, id: str) -> HttpResponse:
    return _do(request, id, "resume", "bulk.resume")


@require("operate")
def retry(request: HttpRequest, id: str) -> HttpResponse:
    return _do(request, id, "retry", "bulk.resume")


@require("operate")
def stop(request: HttpRequest, id: str) -> HttpResponse:
    return _do(request, id, "stop", "bulk.stop")


def _do(request: HttpRequest, id: str, name: str, action: str) -> HttpResponse:
    """Does it, and goes back to the page; what is not possible now is said there."""
    if request.method != "POST":
        return redirect("bulk", id)
    bulk = Bulk(get_engine(), id)
    before, order = _asked(request, bulk)
    try:
        with audited(request, action, machine=order.machine, target=id) as deed:
            after = getattr(bulk, name)(request.user.get_username())
            deed.moved(before.state, after)
    except (NotNow, errors.Suspended) as error:
        messages.error(request, f"Not done: {error.message} ({error.code})")
    else:
        messages.success(request, TOLD[name])
    return redirect("bulk", id)


@require("operate")
def again(request: HttpRequest, id: str) -> HttpResponse:
    """A new bulk of the same kind with those that failed."""
    if request.method != "POST":
        return redirect("bulk", id)
    bulk = Bulk(get_engine(), id)
    _, order = _asked(request, bulk)
    reason = request.POST.get("reason", "").strip()
    if not reason or len(reason) > MAX_REASON:
        return bulk_page(request, id, mistake=f"Say why, in at most {MAX_REASON} characters.", status=400)
    with audited(request, "bulk.start", machine=order.machine, reason=reason) as deed:
        deed.note(does=f"{order.action} {order.target}".strip(), again=id)
        made = bulk.again(request.user.get_username(), reason, id=id_of(request))
        deed.name(target=made.id)
    return redirect("bulk", made.id)


def _asked(request: HttpRequest, bulk: Bulk) -> tuple[Instance, Order]:
    """The bulk as it is, and its order; 404 and 403 where there is none, or where it is not for this person."""
    now, order = bulk.get(), order_of(bulk)
    if not may(request.user, order):
        raise Forbidden("fire")
    return now, order


@require("view")
def results(request: HttpRequest, id: str) -> HttpResponseBase:
    bulk = Bulk(get_engine(), id)
    bulk.get()  # one that is not there is a page that says so, not half a file
    return streamed(request, _chunks(bulk), f"bulk-{id}.csv")


def _chunks(bulk: Bulk) -> Iterator[str]:
    write = writer()
    yield write(COLUMNS)
    for rows in bulk.pages():
        yield "".join(write([cell(text) for text in _texts(row)]) for row in rows)


def _texts(row: Row) -> Iterator[str]:
    yield from (row.item.id, row.item.state, str(row.item.version))
    for note in (row.verdict, row.outcome):
        yield from (note.word, note.why) if note else ("", "")
