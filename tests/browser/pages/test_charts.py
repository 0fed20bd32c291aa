"""Charts are drawn from what was measured, in the page's colours, and the next minute comes by itself."""

from __future__ import annotations

import re
import time

from playwright.sync_api import expect

from machines.models import Measurement, SamplingTurn

# Whether the picture has a pixel of the colour that a token names, give or take what smoothing does.
DRAWN = """([box, token]) => {
    const canvas = document.querySelector(`${box} canvas`);
    if (!canvas) return false;
    const probe = document.body.appendChild(document.createElement("span"));
    probe.style.color = `var(${token})`;
    const [r, g, b] = getComputedStyle(probe).color.match(/[0-9]+/g).map(Number);
    probe.remove();
    // Copied first: the chart's own canvas is not made for being read again and again, and the browser would say so.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4) {
        const near = [r, g, b].every((part, place) => Math.abs(data[at + place] - part) < 12);
        if (near && data[at + 3] > 200) return true;
    }
    return false;
}"""
BOX = "[data-chart='transitions']"


def measured(ago: int, count: int, machine: str = "new_device") -> None:
    """So many transitions in the minute that began so many minutes ago."""
    at = int(time.time()) // 60 * 60 - ago * 60
    Measurement.objects.create(machine=machine, period=60, at=at, covered=60_000, transitions=count)
    SamplingTurn.objects.update_or_create(pk=1, defaults={"at": (at + 60) * 1000, "began": 1})


def drawn(page, token: str = "--line-a") -> None:
    page.wait_for_function(DRAWN, arg=[BOX, token])


def test_lines_are_drawn_and_the_next_minute_comes_without_a_reload(page, devices):
    for ago in (4, 3, 2):
        measured(ago, 100 * ago)
    page.goto("/")
    drawn(page)
    page.evaluate("document.body.dataset.marked = 'yes'")
    value = page.locator(f"{BOX} [data-value]")
    expect(value).to_have_text("200")
    measured(1, 777)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(value).to_have_text("777")
    assert page.evaluate("document.body.dataset.marked") == "yes"
    page.locator(f"{BOX} summary").click()
    expect(page.locator(f"{BOX} tbody tr")).to_have_count(4)
    plot = page.locator(f"{BOX} [data-plot]").bounding_box()
    told = set()
    for step in range(40, 0, -1):  # along the line, from right to left: the legend tells what is under the cursor
        page.mouse.move(plot["x"] + plot["width"] - 18 - step * 2, plot["y"] + plot["height"] / 2)
        told.add(value.text_content())
    assert told & {"200", "300", "400"}
    page.mouse.move(5, 5)
    expect(value).to_have_text("777")
    page.emulate_media(color_scheme="dark")
    drawn(page)
    page.get_by_role("link", name="day").click()
    expect(page).to_have_url(re.compile(r"span=day#charts$"))
    drawn(page)


def test_what_nobody_has_measured_yet_appears_once_a_worker_does(as_, devices):
    page = as_("viewer", viewport={"width": 390, "height": 800})
    page.goto("/machines/new_device/")
    expect(page.get_by_text("No data yet. Workers record")).to_be_visible()
    expect(page.locator("[data-chart='instances']")).to_be_hidden()
    Measurement.objects.create(
        machine="new_device", period=60, at=int(time.time()) // 60 * 60 - 60, covered=60_000, instances=3
    )
    SamplingTurn.objects.create(pk=1, at=int(time.time() * 1000), began=1)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_text("No data yet. Workers record")).to_have_count(0)
    expect(page.locator("[data-chart='instances'] [data-value]")).to_have_text("3")
    page.wait_for_function(DRAWN, arg=["[data-chart='instances']", "--line-a"])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no wider than the phone"


# Remembers what is written on a canvas: the labels of the axes.
WRITTEN = """() => {
    window.written = [];
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        window.written.push(text);
        return write.call(this, text, ...rest);
    };
}"""


def test_the_axis_of_a_count_has_whole_numbers(page, devices):
    for ago in (4, 3, 2):
        measured(ago, 1)
    page.add_init_script(f"({WRITTEN})()")
    page.goto("/")
    drawn(page)
    labels = page.evaluate("window.written.filter((text) => /^[0-9.]+$/.test(text))")
    assert set(labels) == {"0", "1"}
