"""The audit page: every action leaves an entry, and whoever may look finds it again."""

from __future__ import annotations

import csv
import io
import re
import time
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import AsyncClient

from dashboard.audit.sentences import describe_attempt, list_choices
from dashboard.audit.views import CHUNK
from dashboard.shared.csv_export import escape_cell
from machines.audit.entries import ACTIONS, NOT_WRITTEN, record
from machines.engine import WorkerInfo
from machines.models import AuditEntry
from tests.cases import for_each
from tests.pages.reading import read

INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"
NOON = datetime(2021, 11, 20, 12, tzinfo=UTC)
WHY = {"reason": "a test", "expect": "2"}


def only() -> AuditEntry:
    return AuditEntry.objects.get()


@pytest.mark.parametrize(
    ("action", "form", "outcome", "told"),
    [
        ("fire", {"event": "entitle", "payload-token": "MTOB1J"}, "done", ("Waiting", "Active", 3)),
        ("fire", {"event": "activate", "payload-token": "x"}, "refused", "SB430"),
        ("fire", {"event": "entitle", "payload-token": "x", "expect": "1"}, "refused", "SB440"),
        ("force", {"state": "Active"}, "done", ("Waiting", "Active", 3)),
        ("force", {"state": "Active", "data": '{"unknown": 1}'}, "refused", "SB410"),
        ("suspend", {}, "done", (None, "Waiting", 3)),
        ("delete", {"sure": "on"}, "done", ("Waiting", None, 2)),
        ("delete", {"sure": "on", "expect": "1"}, "refused", "SB440"),
    ],
)
def test_each_action_of_an_instance_leaves_an_entry(as_, waiting, action, form, outcome, told):
    as_("supervisor", "sue").post(f"{INSTANCE}{action}/", WHY | form, REMOTE_ADDR="10.0.0.7")
    entry = only()
    assert (entry.actor, entry.action, entry.outcome, entry.reason) == ("sue", action, outcome, "a test")
    assert (entry.machine, entry.instance, entry.source) == ("activation", waiting.id, "page 10.0.0.7")
    if outcome == "refused":
        assert entry.detail["code"] == told
    else:
        assert tuple(entry.detail.get(name) for name in ("before", "after", "revision")) == told


def test_resuming_and_creating_leave_entries(as_, engine, waiting):
    engine.suspend("activation", waiting.id, actor="bob", reason="a test")
    client = as_("supervisor")
    client.post(f"{INSTANCE}resume/", {"reason": "go on", "expect": "3", "overdue": "fire"})
    for _ in range(2):
        client.post("/machines/activation/create/", {"id": "new one"})
    made, resumed = AuditEntry.objects.filter(outcome="done")
    assert (made.action, made.instance, made.detail["after"]) == ("create", "new one", "New")
    assert (resumed.action, resumed.reason, resumed.detail["overdue"]) == ("resume", "go on", "fire")
    assert AuditEntry.objects.get(outcome="refused").detail["code"] == "SB422"


@pytest.mark.parametrize(
    ("action", "form"),
    [
        ("fire", {"event": "entitle", "payload-token": "MTOB1J", "expect": "2", "check": "on"}),
        ("force", {"state": "Active", "expect": "2", "reason": ""}),
    ],
    ids=["a look ahead", "a form with a mistake"],
)
def test_what_is_no_action_leaves_none(as_, waiting, action, form):
    as_("supervisor").post(f"{INSTANCE}{action}/", form)
    assert not AuditEntry.objects.exists()


def test_the_operator_is_told_when_it_could_not_be_written_and_the_step_stands(as_, engine, waiting):
    client = as_("supervisor")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE machines_auditentry RENAME TO elsewhere")
    answer = client.post(f"{INSTANCE}fire/", WHY | {"event": "entitle", "payload-token": "MTOB1J"})
    assert answer.url == INSTANCE
    assert engine.get("activation", waiting.id).state == "Active"
    page = read(client.get(INSTANCE)).text
    assert "entitle: Waiting → Active" in page
    assert NOT_WRITTEN in page


@pytest.fixture
def entries(db) -> list[str]:
    """Four of them, one an hour from noon on; newest first, as the page has them."""
    for number, (actor, action, about) in enumerate([
        ("alice", "fire", {"machine": "activation", "instance": "a/1", "target": "entitle"}),
        ("bob", "force", {"machine": "activation", "instance": "b", "outcome": "refused"}),
        ("alice", "queue.purge", {"machine": "new_device", "queue": "todo"}),
        ("carol", "worker.quiet", {"target": "box:1", "reason": "<b>why</b>"}),
    ]):  # fmt: skip
        record(actor, action, **about)
        _date(action, NOON + timedelta(hours=number))
    return ["worker.quiet", "queue.purge", "force", "fire"]


def _date(action: str, at: datetime) -> None:
    """The past, which nothing in the product can write."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE machines_auditentry SET at = %s WHERE action = %s", [at.replace(tzinfo=None), action])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["worker.quiet", "queue.purge", "force", "fire"]),
        ("?actor=alice", ["queue.purge", "fire"]),
        ("?action=force", ["force"]),
        ("?outcome=refused", ["force"]),
        ("?machine=activation", ["force", "fire"]),
        ("?machine=activation&instance=a/1", ["fire"]),
        ("?queue=todo", ["queue.purge"]),
        ("?target=box:1", ["worker.quiet"]),
        ("?since=2021-11-20T13:00", ["worker.quiet", "queue.purge", "force"]),
        ("?until=2021-11-20T13:00", ["fire"]),
        ("?since=2021-11-20T14:00:00%2B01:00&until=2021-11-21", ["worker.quiet", "queue.purge", "force"]),
        ("?actor=nobody", []),
    ],
)
def test_the_page_shows_what_the_address_asks_for_newest_first(as_, entries, query, found):
    page = read(as_("supervisor").get(f"/audit/{query}"))
    rows = [element for element in page.all("tr") if "data-entry" in element.attributes]
    assert [row["data-action"] for row in rows] == found
    assert ("No matching entries." in page.text) is (not found)


def test_an_entry_links_to_what_it_is_about_and_its_text_stays_text(as_, entries):
    page = read(as_("supervisor").get("/audit/"))
    links = [link["href"] for link in page.all("a", class_="key")]
    assert links == [
        "/workers/#worker-box%3A1", "/machines/new_device/", "/queues/new_device/todo/", "/machines/activation/",
        "/machines/activation/instances/b/", "/machines/activation/", "/machines/activation/instances/a~2F1/",
    ]  # fmt: skip
    assert "<b>why</b>" in page.text


@pytest.mark.parametrize("since", ["yesterday", "2026-02-30", "0001-01-01T00:00+14:00"])
def test_a_time_that_is_none_is_marked_in_its_form(as_, entries, since):
    for address in ("/audit/", "/audit/entries.csv"):
        answer = as_("supervisor", address).get(address, {"since": since})
        assert answer.status_code == 400
        assert "Write a time as" in read(answer).text


@pytest.mark.parametrize("cursor", ["x", "1", "1-", "-1-1", "²-1"])
def test_a_place_no_page_begins_at_is_a_404(as_, entries, cursor):
    assert as_("supervisor").get("/audit/", {"before": cursor}).status_code == 404


def test_pages_follow_each_other_without_a_gap_while_entries_come(as_, db):
    at = NOON
    AuditEntry.objects.bulk_create(
        # Several in one moment: the page boundary falls among them.
        AuditEntry(at=at + timedelta(seconds=n // 7), actor="a", action="fire", target=str(n), outcome="done")
        for n in range(120)
    )
    client, address, seen = as_("supervisor"), "/audit/?actor=a", []
    while address:
        page = read(client.get(address))
        seen += [td.one("span", class_="key").text for td in page.all("td", class_="what")]
        record("a", "fire", target="new")
        further = page.all("a", rel="next")
        address = further[0]["href"] if further else ""
    assert seen == [str(n) for n in reversed(range(120))]


def test_the_instance_page_leads_to_its_own_entries(as_, entries, waiting):
    record("alice", "fire", machine="activation", instance=waiting.id)
    client = as_("supervisor")
    (link,) = [a["href"] for a in read(client.get(INSTANCE)).all("a") if a["href"].startswith("/audit/?")]
    page = read(client.get(link))
    assert len([row for row in page.all("tr") if "data-entry" in row.attributes]) == 1


@pytest.mark.parametrize(("role", "may"), [("supervisor", True), ("operator", False)])
def test_only_who_may_look_is_led_there(as_, waiting, role, may):
    for address in ("/", INSTANCE):
        assert any(a["href"].startswith("/audit/") for a in read(as_(role, address).get(address)).all("a")) is may


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_has_words_in_one_group_of_the_filter(action):
    found = [words for _, choices in list_choices() for name, words in choices if name == action]
    assert len(found) == 1
    assert re.fullmatch(r"[a-z-]+( [a-z-]+)*", found[0])
    assert describe_attempt(action, "refused") == f"tried to {found[0]}" or action.startswith("login.")


def test_an_entry_is_a_sentence(as_, entries):
    record("dora", "approval.approve", machine="order", instance="o-1", target="refund", detail={"approval": 7})
    record("dora", "retry", machine="order", instance="o-1", target="0-9")
    record("dora", "failure.redrive", machine="order", queue="pay", detail={"groups": 2})
    record("dora", "failure.redrive", outcome="refused")
    page = read(as_("supervisor").get("/audit/"))
    assert [" ".join(cell.text.split()) for cell in page.all("td", class_="what")] == [
        "dora tried to retry dead jobs of any error group",
        "dora retried dead jobs of 2 error groups on order / pay",
        "dora retried 0-9 of order / o-1",
        "dora approved request 7 of order / o-1",
        "carol quieted the worker box:1",
        "alice purged the queue new_device / todo",
        "bob tried to force the state on activation / b",
        "alice sent the event entitle to activation / a/1",
    ]


def rows_of(answer) -> list[list[str]]:
    return list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))


def test_what_is_shown_can_be_downloaded(as_, entries):
    answer = as_("supervisor").get("/audit/entries.csv?machine=activation")
    assert re.fullmatch(r'attachment; filename="audit-\d{8}-\d{6}\.csv"', answer["Content-Disposition"])
    head, *rows = rows_of(answer)
    assert [dict(zip(head, row, strict=True))["action"] for row in rows] == ["force", "fire"]
    assert rows[1][:2] == ["2021-11-20T12:00:00.000+00:00", "alice"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n=cmd|' /C calc'!A0", "＝1"])
def test_a_spreadsheet_finds_no_formula_in_it(as_, db, text):
    record(text.strip(), "fire", target=text, reason=text)
    _, row = rows_of(as_("supervisor").get("/audit/entries.csv"))
    assert row.count(f"'{text}") >= 2
    assert not [value for value in row if value.lstrip()[:1] in tuple("=+-@＝")]


@for_each("text", ["", "plain", "a=b", "2026-11-21", "'quoted"])
def test_what_is_no_formula_stays_as_it_is(text):
    assert escape_cell(text) == text


def test_more_entries_than_are_read_at_a_time_all_come(as_, db):
    AuditEntry.objects.bulk_create(
        AuditEntry(at=NOON, actor="a", action="fire", target=str(n), outcome="done") for n in range(CHUNK + 5)
    )
    rows = rows_of(as_("supervisor").get("/audit/entries.csv"))[1:]
    assert [row[7] for row in rows] == [str(n) for n in reversed(range(CHUNK + 5))]


@pytest.mark.django_db(transaction=True)
def test_the_asynchronous_server_streams_it_too(user_of, prefix, entries):
    supervisor = user_of("supervisor")

    async def download() -> bytes:
        client = AsyncClient()
        await client.aforce_login(supervisor)
        answer = await client.get("/audit/entries.csv")
        assert answer.is_async
        return b"".join([part async for part in answer.streaming_content])

    lines = list(csv.reader(io.StringIO(async_to_sync(download)().decode())))
    assert [line[3] for line in lines[1:]] == entries


def test_an_order_to_a_worker_leaves_an_entry(as_, engine):
    now = int(time.time() * 1000)
    engine.beat(WorkerInfo("box:1", "box", 1, [], in_hand=0, started=now, seen=now))
    client = as_("supervisor", "sue")
    for worker in ("box:1", "gone"):
        client.post(f"/workers/{worker}/", {"order": "quiet", "reason": "a new release"})
    gone, done = AuditEntry.objects.all()
    assert (done.actor, done.action, done.target, done.reason) == ("sue", "worker.quiet", "box:1", "a new release")
    assert (gone.target, gone.outcome) == ("gone", "refused")


def test_a_list_is_written_in_words(as_):
    record("ann", "version.policy", machine="activation", detail={"before": [], "after": ["migrate"]})
    page = read(as_("supervisor").get("/audit/")).text
    assert "— → migrate" in page
    assert "['migrate'" not in page
