"""What an operator meets first on the pages of trouble: what needs attention stands at the top and is readable, figures
mean what they stand at, and pages follow by themselves."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from machines.audit.entries import record
from machines.models import Approval, FailureGroup
from machines.schedules import Schedules
from tests.engine.builders import machine
from tests.jobs.failures.conftest import die, follow
from tests.schedules.clock import WHAT
from tests.schedules.conftest import REPORT

from .conftest import is_live, keys_work, log_in
from .test_every_page import beside

__all__ = ["die", "follow"]

PHONE = {"width": 390, "height": 844}
HOURLY = {"name": "hourly-re-drive", "when": {"cron": "30 * * * *"}, "zone": "Europe/Zurich", "what": WHAT}
REFUND = machine(
    "refund",
    {"Held": {"on": {"pay": {"target": "Paid", "guard": "amount > 0"}}}, "Paid": {}},
    context={"type": "object", "properties": {"amount": {"type": "integer"}, "iban": {"type": "string"}}},
)
MENDER = {"Idle": {"on": {"go": "Broken"}}, "Broken": {"invoke": {"src": "mend", "retry": {"attempts": 1}}}}
# Keeps what a change does to an element while it lasts: its name, and what it is drawn with.
CHANGES = """() => { window.changes = []; document.addEventListener("animationstart", ({ target, animationName }) => {
    if (!/changed/.test(animationName)) return;
    const { color, fill, backgroundColor, boxShadow, textDecorationLine } = getComputedStyle(target);
    target.classList.remove("changed");
    const still = getComputedStyle(target);
    const same = [color, fill, backgroundColor].join() === [still.color, still.fill, still.backgroundColor].join();
    const line = target.closest("svg") ? textDecorationLine === "underline" : boxShadow !== "none";
    window.changes.push([target.closest("svg") ? "drawn" : "written", same, line]);
}); }"""
HYPHEN = """(element, digits) => { const { firstChild } = element, range = document.createRange();
    if (digits) element.style.fontVariantNumeric = digits;
    range.setStart(firstChild, firstChild.data.indexOf("-"));
    range.setEnd(firstChild, firstChild.data.indexOf("-") + 1);
    return range.getBoundingClientRect().width; }"""
CUT = """() => [...document.querySelectorAll(".bar *")]
    .filter((e) => e.checkVisibility() && !e.closest(".unseen") && getComputedStyle(e).overflowX !== "visible")
    .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.outerHTML.slice(0, 90))"""


@pytest.fixture
def queues(engine) -> None:
    """One queue with a dead job, after thirty idle ones by the alphabet."""
    for number in range(30):
        engine.publish(machine(f"a{number:02}", MENDER))
    engine.publish(machine("zeta", MENDER))
    engine.create("zeta", "one")
    engine.fire("zeta", "one", "go")
    (queue,) = engine.queues("zeta")
    (job,) = engine.take("zeta", queue, "w")
    engine.fail(job, "no such device")


def mark(page: Page) -> None:
    page.evaluate("document.body.dataset.marked = 'yes'")


def is_marked(page: Page) -> bool:
    """Whether the document is still the one that was marked."""
    return page.evaluate("document.body.dataset.marked") == "yes"


def test_dead_jobs_come_first_and_idle_queues_are_folded(as_, engine, queues):
    page = as_("supervisor", "sue", viewport={"width": 1280, "height": 900})
    page.goto("/queues/")
    rows = page.locator("tr[data-queue]")
    expect(rows).to_have_count(31)
    expect(rows.first).to_have_attribute("data-queue", "zeta/mend")
    expect(rows.filter(visible=True)).to_have_count(1)
    page.get_by_text("30 idle queues").click()
    expect(rows.filter(visible=True)).to_have_count(31)
    page.get_by_role("button", name="Actions for mend of a07").click()
    expect(page.locator(":popover-open h2")).to_contain_text("a07")


def test_on_a_phone_dead_jobs_are_on_the_first_screen(as_, queues):
    page = as_("viewer", viewport=PHONE)
    page.goto("/queues/")
    dead = page.locator("tr[data-queue='zeta/mend'] [data-place=dead]")
    expect(dead).to_have_text("1")
    box = dead.bounding_box()
    assert box["y"] + box["height"] <= PHONE["height"]


def test_an_idle_queue_that_gets_a_job_comes_out_by_itself(as_, engine, queues):
    page = as_("viewer")
    page.goto("/queues/")
    is_live(page)
    mark(page)
    engine.create("a07", "one")
    engine.fire("a07", "one", "go")
    expect(page.locator("tr[data-queue='a07/mend']")).to_be_visible()
    assert is_marked(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_changed_count_keeps_its_colours_and_is_underlined(as_, engine, waiting, theme):
    page = as_("viewer", color_scheme=theme)
    page.goto("/machines/activation/")
    is_live(page)
    page.evaluate(f"({CHANGES})()")
    engine.create("activation", "second")
    expect(page.locator(".sb-diagram [data-state='New'] .count")).to_have_text("1")
    page.wait_for_function("new Set(window.changes.map(([where]) => where)).size === 2")
    assert {tuple(change) for change in page.evaluate("window.changes")} == {
        ("drawn", True, True),
        ("written", True, True),
    }


def test_hyphens_are_as_wide_as_in_any_text(as_, engine):
    engine.publish(REPORT)
    Schedules(engine).put(HOURLY)
    page = as_("viewer")
    page.goto("/schedules/")
    name = page.get_by_role("link", name="hourly-re-drive")
    drawn = name.evaluate(HYPHEN, "")
    assert drawn == name.evaluate(HYPHEN, "normal") < name.evaluate(HYPHEN, "tabular-nums")
    engine.publish({"id": "re-order", "initial": "Open", "states": {"Open": {}}})
    page.goto("/wall/")
    tile = page.locator(".tile .name", has_text="re-order")
    expect(tile).to_be_visible()
    drawn, normal = tile.evaluate(f"(tile) => ['', 'normal'].map((digits) => ({HYPHEN})(tile, digits))")
    assert drawn == normal


def test_the_trend_of_an_error_fills_its_panel(as_, die, follow):
    die("a", error="order 17 not found")
    follow()
    page = as_("viewer", viewport={"width": 1280, "height": 900})
    page.goto(f"/errors/{FailureGroup.objects.get().pk}/")
    trend = page.locator("section[aria-labelledby=trend]")
    drawing, panel = trend.locator("svg.trend").bounding_box(), trend.bounding_box()
    assert drawing["width"] > 0.9 * panel["width"]


def test_a_backfill_asks_and_lists_in_the_zone_of_the_schedule(as_, engine):
    engine.publish(REPORT)
    Schedules(engine).put(HOURLY)
    page = as_("supervisor", "sue", timezone_id="Asia/Tokyo")
    page.goto("/schedules/hourly-re-drive/")
    page.get_by_role("button", name="Backfill…").click()
    page.get_by_label("from, in Europe/Zurich").fill("2026-11-01T00:00")
    page.get_by_label("until, in Europe/Zurich").fill("2026-11-01T06:00")
    page.get_by_role("button", name="Backfill", exact=True).click()
    form = page.locator("form").filter(has=page.get_by_label("until"))
    expect(form.get_by_role("button", name="Run 6 now")).to_be_visible()
    expect(form.get_by_label("from")).to_have_value("2026-11-01T00:00")
    expect(form.locator("li")).to_have_text([f"2026-11-01T0{hour}:30:00+01:00" for hour in range(6)])
    form.get_by_role("button", name="Run 6 now").click()
    expect(page.locator("[data-region=next]")).to_contain_text("waiting")
    assert Schedules(engine).get("hourly-re-drive").waiting


@pytest.mark.parametrize(("role", "address", "opener", "label"), [
    ("supervisor", "/schedules/hourly-re-drive/", "Pause…", "Reason"),
    ("publisher", "/machines/activation/versions/", "", "reason"),
])  # fmt: skip
def test_while_the_server_is_down_a_page_that_is_not_live_keeps_what_was_entered(
    chromium, site, user_of, engine, waiting, role, address, opener, label
):
    engine.publish(REPORT)
    Schedules(engine).put(HOURLY)
    user_of(role, "sue")
    with chromium.new_context(base_url=site) as context:  # one that may complain about the network
        page = context.new_page()
        log_in(page, "sue")
        expect(page.locator("[data-place=account]")).to_be_visible()
        page.route_web_socket("**/ws/live/", lambda socket: socket.close())
        page.goto(address)
        keys_work(page)
        if opener:
            page.get_by_role("button", name=opener).click()
        field = page.get_by_label(label, exact=True).locator("visible=true").last
        field.fill("the printer is away")
        page.route("**/*", lambda route: route.abort())  # the browser is online, and nothing answers
        field.press("Enter")
        said = page.get_by_role("alert").filter(has_text="The server cannot be reached. Nothing was sent").last
        expect(said).to_be_visible()
        page.unroute("**/*")
        page.route("**/healthz", lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))
        with page.expect_response("**/healthz"):
            field.press("Enter")
        expect(said).to_be_visible()
        expect(field).to_have_value("the printer is away")
        page.unroute("**/healthz")
        with page.expect_navigation():
            field.press("Enter")


def test_schedules_requests_and_audit_follow_by_themselves(as_, engine):
    engine.publish(REPORT)
    schedules = Schedules(engine)
    schedules.put(HOURLY)
    pages = {}
    for name in ("schedules", "approvals", "audit"):
        pages[name] = page = as_("supervisor", f"sue-{name}")
        page.goto(f"/{name}/")
        is_live(page)
        mark(page)
    schedules.put(HOURLY | {"name": "second"})
    Approval.objects.create(machine="report", instance="r1", action="delete", asker="ann", reason="a double")
    record("ann", "force", machine="report", instance="r1", reason="it was stuck")
    for name, text in (("schedules", "second"), ("approvals", "a double"), ("audit", "it was stuck")):
        expect(pages[name].get_by_role("main")).to_contain_text(text)
        assert is_marked(pages[name])


def test_without_a_job_to_skip_there_is_no_preview(as_, engine, waiting):
    page = as_("supervisor", "sue")
    page.goto(f"/machines/activation/instances/{waiting.id}/skip/")
    expect(page.get_by_text("No matching job.")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)


def test_in_the_mode_of_failures_lines_have_no_totals(page, waiting):
    flows = page.locator(".sb-diagram [data-transition] .flow")
    page.goto("/machines/activation/")
    expect(flows.filter(has_text="1")).not_to_have_count(0)
    page.goto("/machines/activation/?mode=failures")
    is_live(page)
    assert {text.strip() for text in flows.all_text_contents()} == {""}


def test_a_list_of_a_state_is_filtered_by_a_field_without_an_index(page, engine):
    engine.publish(REFUND)
    for iban in ("DE4", "FR1"):
        engine.create("refund", f"of-{iban}", {"amount": 5, "iban": iban})
    page.goto("/machines/refund/?state=Held&data=iban%3DDE4")
    expect(page.locator("table.instances a.key")).to_have_text(["of-DE4"])


def test_a_first_version_is_offered_to_all_new_instances(as_, engine):
    page = as_("publisher", "sue")
    page.goto("/machines/new/?template=order")
    expect(page.locator("form[data-checked]")).to_be_attached()
    page.get_by_role("button", name="Save draft").click()
    page.get_by_role("link", name="Review and publish").click()
    expect(page.get_by_role("heading", name="Publish")).to_be_visible()
    expect(page.get_by_label("percent of new instances")).to_have_count(0)
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.locator(".facts").first).to_be_visible()
    expect(page.get_by_role("button", name="Publish", exact=True)).to_have_count(0)
    assert (engine.live("order").version, engine.rollout("order")) == (1, None)


def test_a_trial_asks_for_the_data_to_begin_with(as_, engine):
    engine.publish(REFUND)
    page = as_("publisher", "sue")
    page.goto("/machines/refund/edit/")
    page.get_by_role("tab", name="Try it").click()
    trial = page.locator("#try .trial")
    trial.get_by_label("amount").fill("5")
    trial.get_by_role("button", name="Begin", exact=True).click()
    trial.get_by_role("button", name="pay").click()
    expect(page.locator(".picture .state.current")).to_have_attribute("data-state", "Paid")


@pytest.mark.parametrize("width", [360, 390])
def test_the_header_is_whole_on_a_phone(as_, waiting, width):
    page = as_("supervisor", "a-long-name-of-a-person", viewport={"width": width, "height": 800})
    for address in ("/", "/machines/activation/", "/queues/"):
        page.goto(address)
        is_live(page)
        assert page.evaluate(CUT) == []
        assert beside(page, width) == []


def test_the_header_of_a_page_that_is_not_live_is_no_higher(as_, waiting):
    page = as_("viewer", viewport=PHONE)
    page.goto("/queues/")
    is_live(page)
    height = page.locator("header.bar").bounding_box()["height"]
    page.goto("/search/")
    assert page.locator("header.bar").bounding_box()["height"] <= height
