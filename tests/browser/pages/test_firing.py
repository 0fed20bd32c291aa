"""An operator at the actions, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import is_live, log_in

INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"


def action(page, event: str):
    return page.locator(".event-action").filter(has=page.locator(".event", has_text=event))


def test_an_event_is_fired_by_its_button(page, engine, waiting):
    page.goto(INSTANCE)
    action(page, "entitle").get_by_label("token").fill("MTOB1J")
    page.get_by_role("button", name="Fire entitle").click()
    expect(page.get_by_text("entitle: Waiting → Active, revision 3")).to_be_visible()
    expect(page.locator("div.head .lit")).to_have_text("Active")
    assert engine.history("activation", waiting.id)[0].actor == "alice"


def test_fields_of_a_new_instance_are_no_wider_than_can_be_read(page, waiting):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/machines/activation/")
    page.get_by_text("New instance", exact=True).click()
    form = page.locator("#create form")
    expect(form.get_by_label("reason")).to_be_visible()
    assert all(field.bounding_box()["width"] <= 46 * 16 for field in form.locator("input:visible").all())


def test_a_button_pressed_twice_fires_once(page, engine, waiting):
    page.goto(INSTANCE)
    page.get_by_role("button", name="Fire entitle").dblclick()
    expect(page.locator("div.head")).to_contain_text("revision 3")
    assert engine.get("activation", waiting.id).revision == 3


def test_what_would_happen_is_shown_first(page, engine, waiting):
    page.goto(INSTANCE)
    action(page, "entitle").get_by_label("token").fill("MTOB1J")
    action(page, "entitle").get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("Preview: Waiting → Active")
    assert engine.get("activation", waiting.id).revision == 2
    page.get_by_role("button", name="Fire entitle").click()
    expect(page.locator("div.head .lit")).to_have_text("Active")


def test_a_refused_event_is_explained(page, engine, waiting):
    page.goto(INSTANCE)
    page.get_by_text("1 event not accepted in Waiting").click()
    expect(action(page, "activate")).to_contain_text("not accepted in this state")
    action(page, "activate").get_by_text("Try anyway").click()
    page.get_by_role("button", name="Fire activate").click()
    expect(page.locator("#refused")).to_contain_text("The event activate is not accepted in state Waiting.")
    page.reload()
    expect(page.locator("div.head .lit")).to_have_text("Waiting")


def test_a_guard_that_fails_is_explained_with_its_values(page, engine, db):
    on = {"open": [{"target": "Open", "guard": "failed < 3"}]}
    engine.publish(
        {"id": "door", "initial": "Shut", "context": {"failed": 3}, "states": {"Shut": {"on": on}, "Open": {}}}
    )
    engine.create("door", "front")
    page.goto("/machines/door/instances/front/")
    expect(action(page, "open")).to_contain_text("blocked")
    action(page, "open").get_by_text("Try anyway").click()
    page.get_by_role("button", name="Fire open").click()
    expect(page.locator("#refused")).to_contain_text("failed < 3 is false: failed = 3")


def test_the_second_of_two_operators_gets_a_conflict_and_may_go_on_knowingly(as_, engine, waiting):
    alice, bob = as_("operator", "alice"), as_("operator", "bob")
    alice.goto(INSTANCE)
    is_live(alice)
    action(alice, "entitle").get_by_label("token").fill("late")
    bob.goto(INSTANCE)
    action(bob, "entitle").get_by_label("token").fill("MTOB1J")
    bob.get_by_role("button", name="Fire entitle").click()
    expect(bob.locator("div.head .lit")).to_have_text("Active")
    alice.get_by_role("button", name="Fire entitle").click()
    conflict = alice.locator("#conflict")
    expect(conflict).to_contain_text("The instance changed")
    expect(conflict).to_contain_text("bob")
    expect(action(alice, "entitle").get_by_label("token")).to_have_value("late")
    assert engine.get("activation", waiting.id).revision == 3
    conflict.get_by_role("button", name="Apply to revision 3 anyway").click()
    expect(alice.get_by_text("entitle: stays in Active, revision 4")).to_be_visible()


def test_an_old_page_from_the_browsers_memory_is_made_new(page, engine, waiting):
    page.goto(INSTANCE)
    page.get_by_role("button", name="Fire entitle").click()
    expect(page.locator("div.head")).to_contain_text("revision 3")
    page.go_back()
    expect(page.locator("input[name=expect]").first).to_have_value("3")


def test_an_instance_is_created_forced_and_deleted(as_, engine, activation):
    page = as_("supervisor", "sue")
    page.goto("/machines/activation/")
    page.get_by_label("id", exact=False).and_(page.locator("#create-id")).fill("by/hand")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("by/hand created, in New")).to_be_visible()
    page.get_by_text("Repairs").click()
    page.get_by_role("link", name="Force state").click()
    page.locator("#force-state").select_option("Suspended")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".preview-panel")).to_contain_text("New → Suspended")
    page.locator("#force-reason").fill("a test")
    page.get_by_role("button", name="Force state").click()
    expect(page.get_by_text("Forced: New → Suspended, revision 2")).to_be_visible()
    page.get_by_text("Repairs").click()
    page.get_by_role("link", name="Delete instance").click()
    page.locator("#delete-reason").fill("a test")
    page.locator("[name=sure]").check()
    page.get_by_role("button", name="Delete instance").click()
    expect(page.get_by_text("by/hand deleted; last state: Suspended")).to_be_visible()


def test_an_odd_id_is_reached_by_clicking_and_can_be_fired(page, engine, activation):
    for id in ("../..", ".", " %2F~2Fa/b?x=1#y<script>alert(1)</script>back\\slash🚦 "):
        engine.create(activation, id)
        page.goto("/machines/activation/")
        is_live(page)
        page.locator("table.instances a.key").click()
        assert page.locator("h1").text_content() == id
        page.get_by_role("button", name="Fire activate").click()
        expect(page.locator("div.head .lit")).to_have_text("Waiting")
        is_live(page)
        engine.force(activation, id, "Active", actor="bob", reason="elsewhere")
        expect(page.locator("div.head .lit")).to_have_text("Active")
        engine.delete(activation, id, actor="bob", reason="the next one")


def test_while_the_network_is_away_the_form_stays_and_can_be_sent_again(chromium, site, user_of, engine, waiting):
    user_of("operator", "bob")
    with chromium.new_context(base_url=site) as context:  # one that may complain about the network
        page = context.new_page()
        log_in(page, "bob")
        expect(page.locator("[data-place=account]")).to_be_visible()
        page.goto(INSTANCE)
        action(page, "entitle").get_by_label("token").fill("MTOB1J")
        context.set_offline(True)
        for _ in range(2):
            page.get_by_role("button", name="Fire entitle").click()
        alert = page.get_by_role("alert").filter(has_text="The server cannot be reached. Nothing was sent")
        expect(alert).to_be_visible()
        expect(action(page, "entitle").get_by_label("token")).to_have_value("MTOB1J")
        context.set_offline(False)
        page.get_by_role("button", name="Fire entitle").click()
        expect(page.locator("div.head .lit")).to_have_text("Active")
    assert engine.get("activation", waiting.id).data["token"] == "MTOB1J"


@pytest.mark.parametrize("width", [390, 1280])
def test_a_new_instance_is_made_above_the_diagram_and_retention_is_folded_at_the_end(page, waiting, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/machines/activation/")
    create, diagram = page.locator("#create"), page.get_by_role("region", name="Diagram", exact=True)
    assert create.bounding_box()["y"] < diagram.bounding_box()["y"]
    expect(page.locator("#retention:not([open])")).to_be_visible()
    assert page.locator(".rail > *").last.get_attribute("id") == "retention"
    create.locator("summary").click()
    page.locator("#create-id").fill("by-hand")
    create.get_by_role("button", name="Create").click()
    page.wait_for_url("**/instances/by-hand/**")
