"""What happens elsewhere shows on an open page, without a reload."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest
from playwright.sync_api import expect

from tests.faults.processes import LONG
from tests.worker.builders import Running, registry_of

from .conftest import is_live

log = logging.getLogger(__name__)
OTHER_PROCESS = """
import json, sys
from machines.engine import Engine
url, prefix, *calls = sys.argv[1:]
engine = Engine.from_url(url, prefix=prefix)
for call in calls:
    name, *arguments = json.loads(call)
    getattr(engine, name)(*arguments)
"""


@pytest.fixture
def elsewhere(redis_url: str, prefix: str):
    """Calls of the engine made by another process, one after the other."""

    def run(*calls: str) -> None:
        command = [sys.executable, "-c", OTHER_PROCESS, redis_url, prefix, *calls]
        subprocess.run(command, check=True, timeout=30)

    return run


def unloaded(page) -> None:
    """Marks the document; the mark is gone after any reload."""
    page.evaluate("document.body.dataset.marked = 'yes'")


def is_the_same(page) -> bool:
    return page.evaluate("document.body.dataset.marked") == "yes"


def test_counts_change_without_a_reload_when_another_process_fires(page, waiting, elsewhere):
    page.goto("/machines/activation/")
    is_live(page)
    unloaded(page)
    active = page.locator(".sb-diagram [data-state='Active'] .count")
    expect(active).to_have_text("0")
    elsewhere('["fire", "activation", "ATV-123:NBCSports", "entitle", {"token": "MTOB1J"}]')
    expect(active).to_have_text("1")
    expect(page.locator(".sb-diagram [data-state='Waiting'] .count")).to_have_text("0")
    expect(page.locator("tr[data-state='Active'] [data-count]")).to_have_text("1")
    expect(page.locator(".tabs [data-state='Active'] [data-count]")).to_have_text("1")
    expect(page.locator("[data-transition='t2'] .flow")).to_have_text("1")
    expect(page.locator("table.instances .state")).to_have_text("Active")
    assert is_the_same(page)


def test_each_step_comes_by_the_socket(page, engine, waiting):
    """By a message of its own, and not when the page asks again; ``benchmarks/RESULTS.md`` has how long it takes."""
    messages = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: messages.append(frame)))
    page.goto("/machines/activation/")
    is_live(page)
    count = page.locator(".sb-diagram [data-state='New'] .count")
    for number in range(5):
        messages.clear()
        engine.create("activation", f"n{number}")
        expect(count).to_have_text(str(number + 1))
        assert any("machine:activation" in str(message) for message in messages)


def test_a_queue_that_fills_shows_on_the_diagram_and_in_the_table(page, devices, elsewhere):
    page.goto("/machines/new_device/")
    is_live(page)
    elsewhere('["create", "new_device", "one"]', '["create", "new_device", "two"]')
    expect(page.locator("#queue-start .count")).to_have_text("2")
    expect(page.locator("tr[data-queue='new_device/start'] [data-place='ready']")).to_have_text("2")


def test_the_overview_counts_and_raises_the_alarm(page, engine, devices):
    page.goto("/")
    is_live(page)
    unloaded(page)
    engine.create(devices, "one")
    expect(page.locator("tr[data-machine='new_device'] [data-total]")).to_have_text("1")
    expect(page.locator("tr[data-queue='new_device/start'] [data-place='ready']")).to_have_text("1")
    expect(page.locator(".alarm").get_by_role("link", name="1 job ready on new_device/start")).to_be_visible()
    assert is_the_same(page)


def test_an_instance_page_follows_its_instance(page, engine, waiting):
    page.goto("/machines/activation/instances/ATV-123:NBCSports/")
    is_live(page)
    unloaded(page)
    engine.fire("activation", waiting.id, "entitle", {"token": "MTOB1J"}, actor="bob")
    expect(page.locator("div.head .lit")).to_have_text("Active")
    expect(page.locator(".sb-diagram .current")).to_have_attribute("data-state", "Active")
    expect(page.locator("table.steps tbody tr").first).to_contain_text("bob")
    expect(page.locator("input[name=expect]").first).to_have_value("3")
    assert is_the_same(page)


def test_a_form_someone_fills_in_is_not_taken_away(page, engine, waiting):
    page.goto("/machines/activation/instances/ATV-123:NBCSports/")
    is_live(page)
    page.get_by_label("token").first.fill("half typ")
    engine.fire("activation", waiting.id, "entitle", {"token": "MTOB1J"}, actor="bob")
    expect(page.get_by_text("The instance moved to Active (revision 3) while you were typing.")).to_be_visible()
    expect(page.get_by_label("token").first).to_have_value("half typ")
    expect(page.locator("div.head .lit")).to_have_text("Active")


def test_a_deleted_instance_says_so(page, engine, waiting):
    page.goto("/machines/activation/instances/ATV-123:NBCSports/")
    is_live(page)
    engine.delete("activation", waiting.id)
    expect(page.get_by_text("The instance was deleted or archived while this page was open.")).to_be_visible()


def test_a_new_version_is_announced_and_the_old_drawing_stays(page, engine, waiting):
    page.goto("/machines/activation/")
    is_live(page)
    definition = engine.definition("activation")
    definition["states"]["Retired"] = {"type": "final"}
    definition["states"]["Suspended"]["on"]["retire"] = "Retired"
    engine.publish(definition)
    expect(page.get_by_text("Version 2 is available.")).to_be_visible()
    page.get_by_role("link", name="Reload").click()
    expect(page.locator(".sb-diagram [data-state='Retired']")).to_be_visible()


def test_jobs_move_through_the_places_of_an_open_queue_page(page, engine, unhandled):
    engine.create(unhandled, "one")
    page.goto("/queues/new_device/start/?place=dead")
    is_live(page)
    (job,) = engine.take(unhandled, "start", "w")
    engine.fail(job, "no such device", kind="LookupError", retry=False)
    expect(page.locator(".tabs [data-place='dead']")).to_have_text("1")
    expect(page.get_by_text("LookupError: no such device")).to_be_visible()


def test_ages_tick(page, engine, activation):
    engine.create(activation, "one")
    page.goto("/machines/activation/")
    age = page.locator("table.instances time").first
    before = age.inner_text()
    expect(age).not_to_have_text(before)


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("/queues/", "tr[data-queue='new_device/start'] [data-place='ready']"),
        ("/", "tr[data-machine='new_device'] [data-total]"),
    ],
    ids=["queues", "overview"],
)
def test_a_count_that_comes_while_the_page_is_rendered_anew_stays(page, engine, devices, path, count):
    held = []
    page.goto(path)
    is_live(page)
    place = page.locator(count)
    expect(place).to_have_text("0")
    page.route(f"**{path}", lambda route: held.append((route, route.fetch())))
    engine.create(devices, "first")
    expect(place).to_have_text("1")
    while not held:  # the first instance changes more than a count, so that the page is asked for
        page.wait_for_timeout(20)
    engine.create(devices, "second")
    expect(place).to_have_text("2")
    page.locator(count).evaluate("element => element.dataset.marked = 'yes'")
    route, rendered = held[0]
    route.fulfill(response=rendered)
    expect(page.locator(f"{count}[data-marked]")).to_have_count(0)
    expect(place).to_have_text("2")


def test_what_a_handler_says_shows_on_the_page_of_its_job_while_it_runs(page, engine, devices):
    go, on = threading.Event(), threading.Event()

    def start_device(job):
        for number in range(100):
            log.warning("waiting %d", number)
        go.wait(LONG)
        log.warning("it has answered")
        on.wait(LONG)

    engine.create("new_device", "one")
    with Running(engine, registry_of(do_start=start_device), job_logs=1000):
        try:
            page.goto("/jobs/new_device/0-1/")
            is_live(page)
            unloaded(page)
            said = page.locator("[data-region='output'] pre")
            expect(said).to_contain_text("waiting 99", timeout=LONG * 1000)
            said.evaluate("(text) => text.scrollTo({ top: 40 })")
            go.set()
            expect(said).to_contain_text("it has answered", timeout=LONG * 1000)
            assert said.evaluate("(text) => text.scrollTop") == 40
        finally:
            go.set()
            on.set()
    assert is_the_same(page)
