"""Queues and jobs as an operator works with them, and what happens to them elsewhere shows by itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from machines.jobs.failures.duties import PacedActions
from machines.models import AuditEntry, FailureAction
from tests.browser.conftest import is_live

QUEUE = "/queues/new_device/start/"


@pytest.fixture
def supervisor(as_):
    return as_("supervisor", "sue")


@pytest.fixture
def dead(engine, unhandled) -> str:
    """Three dead jobs on ``start``: 0-1, 0-2, 0-3."""
    for number in range(3):
        engine.create(unhandled, f"d{number}")
    for job in engine.take(unhandled, "start", "w", count=3):
        engine.fail(job, "no such device", kind="LookupError", retry=False)
    return unhandled


def count(page, place: str):
    return page.locator(f".tabs [data-place='{place}']")


def test_pausing_redriving_and_purging(supervisor, engine, dead):
    page = supervisor
    page.goto(QUEUE)
    page.get_by_role("button", name="Pause queue…").click()
    sheet = page.locator(":popover-open")
    sheet.get_by_label("reason").fill("the provider is down")
    sheet.get_by_role("button", name="Pause queue", exact=True).click()
    expect(page.locator("div.head")).to_contain_text(re.compile(r"paused \d+ s ago by sue: the provider is down"))

    page.get_by_role("button", name="Actions for job 0-3").click()
    sheet.get_by_label("reason").fill("the device is there now")
    sheet.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("Job 0-3 retried")).to_be_visible()
    expect(count(page, "ready")).to_have_text("1")

    page.get_by_role("button", name="Purge all dead jobs…").click()
    sheet.get_by_label("enter 2 to confirm").fill("3")
    sheet.get_by_label("reason").fill("a test")
    sheet.get_by_role("button", name="Purge all dead jobs").click()
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("You entered 3; 2 dead jobs are there now.")
    notice.get_by_label("enter 2 to confirm").fill("2")
    notice.get_by_role("button", name="Purge all dead jobs").click()
    expect(page.get_by_text("2 dead jobs of start purged")).to_be_visible()
    assert engine.stats(dead)["start"].depth == {"ready": 1, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}
    told = [(entry.action, entry.outcome) for entry in AuditEntry.objects.exclude(action="login").order_by("id")]
    assert told == [
        ("queue.pause", "done"),
        ("job.redrive", "done"),
        ("queue.purge", "refused"),
        ("queue.purge", "done"),
    ]


def test_what_others_do_shows_on_an_open_queue_page_without_a_reload(supervisor, engine, dead):
    page, who = supervisor, {"actor": "bob", "reason": "it is back"}
    page.goto(f"{QUEUE}?place=dead")
    is_live(page)
    page.evaluate("document.body.dataset.marked = 'yes'")
    engine.redrive(dead, "start", "0-2", **who)
    expect(page.locator("tr[data-job='0-2']")).to_have_count(0)
    expect(count(page, "ready")).to_have_text("1")
    engine.pause(dead, "start", **who)
    expect(page.locator("div.head")).to_contain_text("by bob: it is back")
    engine.limit(dead, "start", concurrency=7, **who)
    expect(page.locator("[data-region='limits']")).to_have_text("7 concurrent")
    assert page.evaluate("document.body.dataset.marked") == "yes"


def test_progress_and_renewed_leases_show_in_the_list_though_no_count_changes(supervisor, engine, devices):
    page = supervisor
    engine.create(devices, "one")
    (job,) = engine.take(devices, "start", "w", lease=4000)
    page.goto(f"{QUEUE}?place=leased")
    is_live(page)
    engine.extend(job, 3_600_000)
    expect(page.locator("[data-cell='lease']")).to_contain_text("min")
    engine.progress(job, 3, 12, "packing")
    engine.create(devices, "two")
    expect(page.locator("[data-cell='progress']")).to_contain_text("3 of 12")
    engine.progress(job, 4, 12, "packing")
    expect(page.locator("[data-cell='progress']")).to_contain_text("4 of 12")


def test_rows_do_not_move_under_a_hand(supervisor, engine, dead):
    page = supervisor
    page.goto(f"{QUEUE}?place=dead")
    is_live(page)
    page.locator("tr[data-job='0-1']").hover()
    engine.redrive(dead, "start", "0-3", actor="bob", reason="it is back")
    expect(page.get_by_text("The list has changed.")).to_be_visible()
    expect(page.locator("tr[data-job='0-3']")).to_have_count(1)
    page.get_by_role("button", name="Reload list").click()
    expect(page.locator("tr[data-job='0-3']")).to_have_count(0)
    expect(page.get_by_text("The list has changed.")).to_be_hidden()


def test_all_queues_follow_and_rates_come_of_what_was_seen(supervisor, engine, devices):
    page = supervisor
    page.goto("/queues/")
    is_live(page)
    row = page.locator("tr[data-queue='new_device/start']")
    for number in (1, 2):  # the first may be in the first value already
        engine.create(devices, f"d{number}")
        expect(row.locator("[data-place='ready']")).to_have_text(str(number))
    expect(row.locator("[data-total='enqueued']")).to_have_text("2")
    expect(row.locator("[data-rate='in']")).to_have_text(re.compile(r"^[01]\.\d /s$"))
    engine.pause(devices, "start", actor="bob", reason="it is down")
    expect(row).to_contain_text("by bob: it is down")


def test_a_job_page_and_an_instance_page_follow_their_job(supervisor, engine, devices):
    engine.create(devices, "one")
    page, other = supervisor, supervisor.context.new_page()
    page.goto("/jobs/new_device/0-1/")
    other.goto("/machines/new_device/instances/one/")
    for one in (page, other):
        is_live(one)
    (job,) = engine.take(devices, "start", "box:17:aa")
    expect(page.locator("div.head")).to_contain_text("worker box:17:aa")
    engine.progress(job, 3, 12, "packing")
    for one in (page, other):
        expect(one.locator("[data-progress]")).to_contain_text("3 of 12")
        expect(one.locator("progress")).to_have_attribute("value", "3")
    engine.complete(job)
    expect(page.get_by_text("This job is finished or withdrawn.")).to_be_visible()
    page.get_by_role("link", name="history of one").click()
    expect(page).to_have_url("/machines/new_device/instances/one/#history")


def test_rates_are_differences_and_never_wrong_after_a_restart(page):
    script = """async () => {
        const { Counters } = await import("/static/signalbox/js/shared/rates.js");
        const seen = new Counters(), told = [];
        const tell = (now) => told.push(seen.rate("in", now));
        seen.add(10_000, { in: 100 }, "a");
        tell(11_000);                               // too little was seen
        tell(14_000);                               // nothing came
        seen.add(14_000, { in: 120 }, "a");
        tell(14_000);                               // 20 in 4 s
        tell(18_000);                               // 20 in 8 s
        tell(60_000);                               // nothing in the last 30 s
        seen.add(60_000, { in: 7 }, "a");           // went back: another server, or an older file
        tell(61_000);
        tell(64_000);
        seen.add(64_000, { in: 15 }, "b");          // a new run of numbers
        tell(65_000);
        seen.add(63_000, { in: 16 }, "b");          // an older clock
        tell(64_000);
        for (let at = 70_000; at <= 100_000; at += 50) seen.add(at, { in: at }, "c");
        tell(100_000);                              // 20 a second seen, 1000 a second counted
        return told;
    }"""
    page.goto("/queues/")
    assert page.evaluate(script) == [None, 0, 5, 2.5, 0, None, 0, None, None, 1000]


def test_without_script_a_queue_is_paused_and_purged_all_the_same(as_, engine, dead):
    page = as_("supervisor", "sue", java_script_enabled=False)
    page.goto(QUEUE)
    page.get_by_role("button", name="Purge all dead jobs…").click()
    page.get_by_label("enter 3 to confirm").fill("3")
    page.locator("#act-purge-reason").fill("a test")
    page.get_by_role("button", name="Purge all dead jobs", exact=True).click()
    expect(page.get_by_text("3 dead jobs of start purged")).to_be_visible()
    expect(page.locator("[data-total='enqueued']")).to_have_text("3")


def test_a_group_is_limited_and_paused_from_the_list_of_groups(supervisor, engine, dead):
    for group, number in (("acme", 300), ("beta", 2)):
        items = [{"machine": dead, "src": "work", "queue": "start", "group": group} for _ in range(number)]
        engine.enqueue_many(items)
    page = supervisor
    page.goto(QUEUE)
    page.get_by_role("link", name="Groups").click()
    first = page.locator("tbody tr").first
    expect(first).to_contain_text("acme")
    first.get_by_role("button", name="Set limits…").click()
    sheet = page.locator(":popover-open")
    sheet.get_by_label("max concurrent jobs").fill("2")
    sheet.get_by_label("rate").fill("5/s burst 20")
    sheet.get_by_label("reason").fill("their own wish")
    sheet.get_by_role("button", name="Set limits").click()
    expect(first).to_contain_text("2 at a time and 5/s burst 20")
    first.get_by_role("button", name="Pause…").click()
    sheet.get_by_label("reason").fill("no money")
    sheet.get_by_role("button", name="Pause", exact=True).click()
    expect(first).to_contain_text("by sue: no money")
    assert {job.group for job in engine.take(dead, "start", "w", count=50)} == {"beta"}


def test_found_jobs_are_acted_on_together(supervisor, engine, dead):
    page = supervisor
    page.goto(f"{QUEUE}?place=dead")
    page.get_by_text("Find jobs").click()
    page.get_by_label("last error").fill("no such device")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.get_by_text("3 found in 3 of 3")).to_be_visible()
    page.get_by_role("link", name="Act on all found…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("3 dead jobs found")
    act = page.locator("form").filter(has=page.get_by_role("button", name="Retry 3 jobs"))
    act.get_by_label("reason").fill("the device is there now")
    act.get_by_role("button", name="Retry 3 jobs").click()
    expect(page.locator("[data-region=progress]")).to_contain_text("0 of 3 of start")
    FailureAction.objects.update(updated=0)
    PacedActions(engine).look()
    expect(page.locator("[data-region=progress]")).to_contain_text("3 of 3 of start", timeout=20_000)
    assert engine.stats(dead)["start"].depth["ready"] == 3


def test_found_jobs_are_moved_to_another_queue_after_a_preview(supervisor, engine, dead):
    page = supervisor
    for number in range(3):
        engine.enqueue(dead, "start", {"order": number}, queue="start", group="acme")
    engine.enqueue(dead, "start", queue="spare")
    page.goto(f"{QUEUE}?place=ready&group=acme")
    page.get_by_role("link", name="Act on all found…").click()
    expect(page.get_by_role("heading", name="3 ready jobs found")).to_be_visible()
    page.locator("summary", has_text="Move 3 jobs").click()
    form = page.locator("form").filter(has=page.get_by_role("button", name="Move 3 jobs"))
    form.get_by_label("queue").select_option("spare")
    form.get_by_label("reason").fill("start is full")
    form.get_by_role("button", name="Move 3 jobs").click()
    expect(page.get_by_text("Started: 3 jobs, at most 20 a second")).to_be_visible()
    now = FailureAction.objects.get().started
    for second in range(1, 4):
        PacedActions(engine).look(now + second * 1000)
    assert engine.queues(dead)["spare"]["ready"] == 4
    expect(page.get_by_text("Move to another queue: spare")).to_be_visible()
    expect(page.get_by_text("3 moved")).to_be_visible()
