"""What is drawn on a diagram: the right figures on the right parts, and nothing a user wrote becomes markup."""

from __future__ import annotations

from dashboard.catalog.diagram import draw_machine
from dashboard.shared import version_view
from dashboard.shared.diagram_modes import format_count
from dashboard.shared.version_view import Overlay
from tests.cases import for_each
from tests.pages.reading import read_text


@for_each(
    "number, text",
    [
        (0, "0"),
        (999, "999"),
        (12_345, "12,345"),
        (99_999, "99,999"),
        (100_000, "100k"),
        (345_600, "346k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (1_234_567, "1.2M"),
        (45_678_901, "46M"),
        (1_500_000_000, "1.5G"),
    ],
)
def test_a_figure_fits_into_seven_characters(number, text):
    assert format_count(number) == text
    assert len(text) <= 7


def test_counts_stand_on_their_states_and_flow_on_its_edges(engine, waiting, activation):
    live = engine.live(activation)
    drawing = read_text(draw_machine(version_view.load_version(activation, 1), live, None))
    counts = {part["data-state"]: part.one(class_="count").text for part in drawing.all(class_="state")}
    assert counts == {"New": "0", "Waiting": "1", "Active": "0", "Suspended": "0"}
    flow = {part["data-transition"]: part.one(class_="flow").text for part in drawing.all(class_="transition")}
    assert flow["t1"] == "1"
    assert set(flow.values()) == {"1", ""}


def test_only_states_with_instances_are_lit(engine, waiting, activation):
    drawing = read_text(draw_machine(version_view.load_version(activation, 1), engine.live(activation), None))
    assert [part["data-state"] for part in drawing.all(class_="occupied")] == ["Waiting"]


def test_a_state_leads_to_its_instances_and_a_chosen_one_back_to_all(engine, waiting, activation):
    drawing = read_text(draw_machine(version_view.load_version(activation, 1), engine.live(activation), "Waiting"))
    links = {part["data-state"]: part["href"] for part in drawing.all("a", class_="state")}
    assert links["New"] == "/machines/activation/?state=New#instances"
    assert links["Waiting"] == "/machines/activation/#instances"
    assert [part["data-state"] for part in drawing.all(class_="chosen")] == ["Waiting"]


def test_a_queue_shows_its_ready_jobs_and_leads_to_them(engine, devices):
    engine.create(devices, "one")
    drawing = read_text(draw_machine(version_view.load_version(devices, 1), engine.live(devices), None))
    queue = drawing.one(id="queue-start")
    assert queue.one(class_="count").text == "1"
    assert queue["href"] == "/queues/new_device/start/"
    assert queue.has("class", "occupied")


def test_the_state_an_instance_is_in_is_lit_and_no_count_is_shown(engine, waiting, activation):
    drawing = read_text(
        version_view.draw_instance(version_view.load_version(activation, 1), waiting, {"t2": "depends", "t3": "fails"})
    )
    assert [part["data-state"] for part in drawing.all(class_="current")] == ["Waiting"]
    assert [part["data-transition"] for part in drawing.all(class_="possible")] == ["t2"]
    assert {part.text for part in drawing.all(class_="count")} == {""}


def test_every_part_is_still_there_after_marking(engine, devices):
    view = version_view.load_version(devices, 1)
    coloured = read_text(draw_machine(view, engine.live(devices), None))
    ids = {part["id"] for part in coloured.all() if "id" in part.attributes}
    assert {id for kind in ("states", "transitions", "queues") for id in view.index[kind].values()} <= ids


HOSTILE = '<text class="count"></text></g>"><script>alert(1)</script>'


def test_a_name_made_to_look_like_a_place_for_marks_stays_text(engine, db):
    engine.publish({"id": "odd", "initial": HOSTILE, "states": {HOSTILE: {"on": {"go": HOSTILE}}}})
    svg = draw_machine(version_view.load_version("odd", 1), engine.live("odd"), HOSTILE)
    drawing = read_text(svg)
    assert "<script" not in svg
    assert drawing.one(class_="state")["data-state"] == HOSTILE
    assert len(drawing.all(class_="count")) == 1


def test_what_is_drawn_is_escaped():
    overlay = Overlay(counts={"state-1": "<b>"}, links={"state-1": '"><script>'})
    svg = '<svg><g id="state-1" class="node state"><text x="1" class="count" /></g></svg>'
    assert overlay.draw_on(svg) == (
        '<svg><a href="&quot;&gt;&lt;script&gt;" id="state-1" class="node state">'
        '<text x="1" class="count">&lt;b&gt;</text></a></svg>'
    )
