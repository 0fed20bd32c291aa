"""Every page, light and dark, wide and narrow: nothing complains, nothing runs off the side, everything has a name,
marks have a glyph, one is no plural, and axe-core finds nothing that keeps anybody out: contrast, names, landmarks,
sizes of what is touched.
"""

from __future__ import annotations

import time

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from machines.audit.entries import record
from machines.engine import WorkerInfo
from machines.instances.bulks import Bulk, Order
from machines.models import AlarmRoute, Approval, FailureGroup, FailurePart, Webhook
from machines.patterns import Locks
from machines.schedules import Schedules
from tests.pages.conftest import delivery, order, paying

from .accessibility import AXE, ones, squares, violations

__all__ = ["delivery", "order", "paying"]

PAGES = [
    "/",
    "/?system=1",
    "/wall/",
    "/machines/activation/",
    "/machines/activation/?state=Waiting",
    "/machines/activation/archived/?id=ATV",
    "/machines/activation/insight/",
    "/machines/new_device/",
    "/machines/activation/instances/ATV-123:NBCSports/",
    "/machines/activation/instances/ATV-123:NBCSports/edit/",
    "/machines/activation/instances/ATV-123:NBCSports/reset/",
    "/machines/new_device/instances/one/",
    "/machines/new_device/instances/one/skip/",
    "/machines/delivery/instances/R-1/force/",
    "/machines/delivery/instances/R-1/delete/",
    "/machines/delivery/",
    "/machines/delivery/?view=top&state=Packed",
    "/machines/activation/?mode=failures",
    "/machines/activation/?mode=time",
    "/machines/activation/try/",
    "/machines/delivery/versions/",
    "/machines/activation/edit/",
    "/machines/delivery/versions/diff/?a=1&b=1",
    "/machines/delivery/versions/replay/",
    "/machines/delivery/instances/R-1/",
    "/machines/delivery/instances/held/",
    "/queues/",
    "/queues/new_device/start/",
    "/queues/new_device/start/groups/",
    "/queues/new_device/start/?place=dead&error=x",
    "/queues/new_device/start/search/?place=dead",
    "/jobs/new_device/0-1/",
    "/jobs/new_device/0-99/",
    "/machines/activation/?state=Waiting&actor=alice&older=1s&version=x",
    "/machines/activation/bulk/?state=Waiting",
    "/machines/activation/bulk/?state=Waiting&do=fire&event=entitle",
    "/machines/activation/bulk/?do=force",
    "/bulk/3f2a/",
    "/workers/",
    "/alarms/",
    "/errors/",
    "/errors/retry/",
    "/errors/{group}/",
    "/alarms/history/",
    "/sm/",
    "/audit/",
    "/audit/?machine=activation&since=2021-11-20",
    "/approvals/",
    "/approvals/{approval}/",
    "/schedules/",
    "/schedules/nightly/",
    "/machines/new_device/schedules/new/?do=fire_all",
    "/webhooks/",
    "/webhooks/{webhook}/",
    "/alarms/routes/",
    "/alarms/routes/{route}/",
    "/account/",
    "/account/tokens/",
    "/patterns/",
    "/search/?q=act",
    "/api/v1/docs",
    "/components/",
    "/machines/nothing/",
]
PARTS = 6  # of the pages, so that each test ends in its time on a busy machine, too
NAMES = "label-content-name-mismatch"  # a name has the words that are seen, which a width and a theme may change
UNNAMED = """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a[href]")]
    .filter((e) => e.checkVisibility() || !e.closest("svg"))
    .filter((e) => !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim() || e.title))
    .map((e) => e.outerHTML.slice(0, 120))"""
DOUBLE_IDS = """() => { const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
    return ids.filter((id, place) => ids.indexOf(id) !== place); }"""


# What is pressed and lower or narrower than 44 px; a link within a sentence, or one that stands over others, is none.
SMALL = """() => {
    const PRESSED = "a[href], button, input:not([type=hidden]), select, textarea, summary";
    const LEFT_OUT = "svg, .unseen, .skip, p, pre, .sb-diagram";
    const inText = (e) => e.tagName === "A" && [...e.parentElement.childNodes].some((n) => n.data?.trim());
    const target = (e) => (e.matches("[type=checkbox], [type=radio]") ? e.closest("label") ?? e : e);
    return [...document.querySelectorAll(PRESSED)]
        .filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest(LEFT_OUT) && !inText(e))
        .map((e) => [e, target(e).getBoundingClientRect()])
        .filter(([, box]) => box.width > 1 && (box.height < 43.5 || box.width < 23.5))
        .map(([e, box]) => `small: ${Math.round(box.width)}x${Math.round(box.height)} ${e.outerHTML.slice(0, 100)}`);
}"""
BESIDE = """width => document.documentElement.scrollWidth <= width ? [] :
    [...document.querySelectorAll("main *, header *")].filter((e) => e.getBoundingClientRect().right > width + 1
        && !e.closest(".scroll, .diagram, pre, nav")).slice(0, 3).map((e) => `beside: ${e.outerHTML.slice(0, 90)}`)"""


# The reference of the API has hundreds of operations, fields and codes: those that are built of nothing that one before
# them lacks tell axe-core nothing.
REPEATED = """() => {
    const seen = new Set();
    const kind = (e, root) => (e === root ? "" : kind(e.parentElement, root) + ">")
        + [e.tagName, e.className, ...e.getAttributeNames()].join(" ");
    for (const root of document.querySelectorAll(".reference :is(.operation, tr)")) {
        const kinds = [root, ...root.querySelectorAll("*")].map((e) => kind(e, root)).filter((one) => !seen.has(one));
        if (!kinds.length) root.remove();
        kinds.forEach((one) => seen.add(one));
    }
}"""


def beside(page, width: int) -> list[str]:
    """What makes the page wider than the window."""
    return page.evaluate(BESIDE, width)


def busy(engine) -> None:
    """A worker with much to say."""
    now = int(time.time() * 1000)
    job = {"id": "0-1", "machine": "activation", "queue": "q", "src": "s" * 64, "instance": "x" * 200, "attempt": 1}
    engine.beat(WorkerInfo(
        "w" * 100, "h" * 63, 17, [f"{'m' * 64}/{'q' * 64}"] * 3, in_hand=7, started=now, seen=now,
        version="0.1.0", note=f"no handler: {'s' * 64}", memory=84_200_000, concurrency=8,
        holding=[job | {"since": now}], done=12_404, failed=3,
    ))  # fmt: skip


@pytest.fixture
def everything(engine, waiting, devices, order) -> dict[str, int]:
    """Something long and something odd on each page; the numbers that addresses need."""
    engine.create(devices, "one", {"service": "x" * 300})
    engine.create("delivery", "held")
    engine.force("delivery", "held", "On its way", actor="sue", reason="a test")
    engine.suspend("delivery", "held", actor="sue", reason="a test")
    engine.create("activation", "x" * 200)
    busy(engine)
    Locks(engine.client, engine.keys.prefix).lock("house.mender", ttl=60, owner="w" * 100).acquire()
    record("sue", "force", machine="activation", instance="x" * 200, reason="r" * 200, detail={"data": "d" * 200})
    record("sue", "worker.quiet", target="w" * 100, outcome="refused", detail={"error": "e" * 200, "code": "SB423"})
    what = {"do": "enqueue", "machine": "new_device", "src": "start", "input": {"text": "x" * 200}}
    schedule = {"name": "nightly", "when": {"cron": "30 2 * * *"}, "zone": "Europe/Zurich", "what": what}
    Schedules(engine).put(schedule)
    forced = Order("activation", "force", "sue", "r" * 200, {"state": "Waiting"}, states=("Active",))
    Bulk.start(engine, forced, id="3f2a")
    asked = Approval.objects.create(
        machine="activation", instance="x" * 200, action="delete", asker="ann", reason="r" * 200
    )  # fmt: skip
    hook = Webhook.objects.create(name="n" * 60, url=f"https://example.org/{'u' * 200}", secret="x", maker="sue")
    receiver = Webhook.objects.create(
        name="r" * 60, url=f"slack://{'u' * 200}", secret="x", maker="sue", types=[], for_alarms=True
    )
    route = AlarmRoute.objects.create(
        receiver=receiver, machines=["m" * 64], kinds=["dead"], hours="mon-fri 08:00-18:00"
    )
    group = FailureGroup.objects.create(
        key="k", handler="h" * 64, kind="K" * 60, shape="s" * 200, first_seen=1, last_seen=2
    )
    FailurePart.objects.create(group=group, machine="activation", count=3, attempts=9, first_seen=1, last_seen=2)
    return {"approval": asked.pk, "webhook": hook.pk, "route": route.pk, "group": group.pk}


WIDE, NARROW = 1400, 390
ZOOMED = (1024, 320)  # zoomed in, a window has fewer pixels: 1400 at 200 %, 1280 at 400 %


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_fits_and_nothing_complains(as_, engine, everything, part):
    """Each page is loaded once, wide and narrow in turn, and then gets the other widths."""
    page = as_("supervisor", color_scheme="light", reduced_motion="reduce")
    page.add_init_script(path=AXE)
    child, wrong = engine.find("payment").instances[0], {}
    addresses = [*PAGES, reverse("signalbox:instance", args=["payment", child.id])][part::PARTS]
    for number, address in enumerate(addresses):
        busy(engine)  # a worker that was silent for 15 s is gone, and the page of workers loads anew
        resize(page, NARROW if number % 2 else WIDE)
        page.goto(address.format_map(everything) if "{" in address else address)
        found = page.evaluate(DOUBLE_IDS)
        for width in (*ZOOMED, NARROW, WIDE):
            resize(page, width)
            found += [*page.evaluate(UNNAMED), *beside(page, width)]
            found += page.evaluate(SMALL) if width == NARROW else []
        found += ones(page)
        found += squares(page) if address != "/components/" else []  # which has a letter that few fonts have
        page.evaluate(REPEATED)
        resize(page, NARROW)  # what a width changes is places
        found += violations(page, "target-size", NAMES)
        resize(page, WIDE)
        found += violations(page)
        page.emulate_media(color_scheme="dark")  # what a theme changes is colours
        found += violations(page, "color-contrast", NAMES)
        page.emulate_media(color_scheme="light")
        if found or page.locator("h1").count() != 1:
            wrong[address] = found
    assert wrong == {}


def resize(page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})


def test_the_focus_can_be_seen_wherever_it_is_also_in_forced_colours(as_, waiting):
    page = as_("supervisor", forced_colors="active")
    page.goto("/machines/activation/instances/ATV-123:NBCSports/")
    seen = """() => { const e = document.activeElement, style = getComputedStyle(e);
        const plate = e.querySelector?.(".plate");
        return e === document.body || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2)
            || (plate && parseFloat(getComputedStyle(plate).strokeWidth) >= 3) ? "" : e.outerHTML.slice(0, 120); }"""
    for _ in range(40):
        page.keyboard.press("Tab")
        assert page.evaluate(seen) == ""


def test_dark_is_dark_and_light_is_light(as_, waiting):
    def ground(theme: str) -> int:
        page = as_("viewer", f"viewer-{theme}", color_scheme=theme)
        page.goto("/")
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))

    assert ground("dark") < 120 < 600 < ground("light")


def test_a_person_chooses_the_theme_and_charts_follow(as_, waiting):
    page = as_("viewer", color_scheme="light")
    page.goto("/")
    colours = """() => [getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.body).getPropertyValue("--line-a").trim()]"""
    light = page.evaluate(colours)
    page.locator(".bar").get_by_text("More").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = page.evaluate(colours)
    assert light != dark
    assert dark[1] == "rgb(108, 182, 245)"  # a colour that a canvas takes
    page.emulate_media(color_scheme="dark")
    page.locator(".bar").get_by_text("More").click()
    page.get_by_role("button", name="Light").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert page.evaluate(colours) == light


def test_who_wants_no_motion_gets_none(as_, waiting):
    page = as_("viewer", reduced_motion="reduce")
    page.goto("/machines/activation/")
    moving = """() => [...document.querySelectorAll("*")].filter((e) => { e.classList.add("changed");
        const style = getComputedStyle(e); return style.animationName !== "none"; }).length"""
    assert page.evaluate(moving) == 0


def test_the_keyboard_reaches_the_states_of_the_diagram(page, waiting):
    page.goto("/machines/activation/")
    page.locator(".sb-diagram a[data-state='Waiting']").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url("/machines/activation/?state=Waiting#instances")


def test_the_first_tab_skips_to_the_content(page):
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
