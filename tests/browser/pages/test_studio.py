"""The Studio in a browser: findings and diagram while typing, fixes, text and diagram joined, drafts, two people."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from machines.catalog.publishing import adopt
from machines.models import Draft
from tests.browser.accessibility import squares, violations
from tests.browser.conftest import log_in

LAMP = {
    "id": "lamp", "initial": "off", "context": {"pressed": 0},
    "states": {
        "off": {"on": {"press": {"target": "on", "actions": [{"set": {"pressed": "pressed + 1"}}]}}},
        "on": {"on": {"press": "off"}},
    },
}  # fmt: skip


@pytest.fixture
def lamp(engine, transactional_db) -> str:
    return engine.publish(LAMP).name


@pytest.fixture
def studio(as_, lamp) -> Page:
    page = as_("publisher", "sue", viewport={"width": 1400, "height": 1000})
    page.goto("/machines/lamp/edit/")
    settled(page)
    return page


@pytest.fixture
def unwatched(chromium: Browser, site: str, user_of, lamp) -> Iterator[Page]:
    """The same in a browser that may complain, as it does about a server that is away."""
    user_of("publisher", "sue")
    with chromium.new_context(base_url=site) as context:
        page = context.new_page()
        log_in(page, "sue")
        expect(page.locator("[data-place=account]")).to_be_visible()
        page.goto("/machines/lamp/edit/")
        settled(page)
        yield page


def settled(page: Page) -> None:
    """Waits until what stands there is checked."""
    expect(page.locator("form[data-checked]")).to_be_attached()
    expect(page.locator(".picture .state")).not_to_have_count(0)


def write(page: Page, text: str) -> None:
    """Replaces the whole text by a paste."""
    page.locator(".cm-content").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.locator(".cm-content").evaluate(
        """(content, text) => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", text);
          content.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
        }""",
        text,
    )


def text_of(page: Page) -> str:
    """The whole text: the editor keeps in the document only what is seen."""
    return page.evaluate(
        """() => {
          const form = document.querySelector("[data-studio]");
          form.addEventListener("submit", (event) => event.preventDefault(), { once: true });
          form.dispatchEvent(new SubmitEvent("submit", { cancelable: true }));
          return form.elements.text.value;
        }"""
    )


def test_the_diagram_is_there_before_the_first_script(as_, lamp):
    adopt(lamp)
    page = as_("publisher", "sue", java_script_enabled=False)
    page.goto("/machines/lamp/edit/")
    expect(page.locator(".picture .state[data-state=off]")).to_be_visible()


def test_typing_shows_findings_and_a_new_diagram(studio: Page):
    expect(studio.locator("[data-counts]")).to_have_text("no findings")
    write(studio, json.dumps(LAMP, indent=2).replace('"target": "on"', '"target": "onn"'))
    expect(studio.locator("[data-findings] li.error")).to_contain_text('no state "onn"')
    expect(studio.locator(".cm-lintRange-error")).to_have_text("onn")
    expect(studio.locator("[data-counts]")).to_have_text("1 error")
    expect(studio.locator(".diagram.stale")).to_be_visible()
    studio.get_by_role("button", name="Replace by on").last.click()
    expect(studio.locator("[data-counts]")).to_have_text("no findings")
    expect(studio.locator(".diagram.stale")).to_have_count(0)


def test_typing_key_by_key_keeps_up(studio: Page):
    studio.locator(".findings, .empty").first.wait_for()
    studio.locator(".cm-line", has_text='"id"').click()
    studio.keyboard.press("End")
    studio.keyboard.type('\n"description": "it shines",')
    expect(studio.locator("[data-counts]")).to_have_text("no findings")
    assert json.loads(text_of(studio))["description"] == "it shines"


SELECTED = "() => getSelection().toString()"


def test_a_click_in_the_diagram_selects_the_text_and_back(studio: Page):
    studio.locator(".picture .transition[data-source=on] .label").first.click()
    expect(studio.locator(".cm-selectionBackground")).not_to_have_count(0)
    studio.keyboard.press("Enter")
    assert studio.evaluate(SELECTED) == '"press": "off"'
    studio.locator(".picture .state[data-state=on]").click()
    expect(studio.locator(".cm-activeLine")).to_contain_text('"on": {')
    studio.keyboard.press("Enter")
    assert json.loads("{" + studio.evaluate(SELECTED) + "}") == {"on": LAMP["states"]["on"]}
    expect(studio.locator(".picture .state[data-state=on]")).to_have_class(re.compile("pointed"))
    studio.locator(".cm-line", has_text='"target": "on"').click()
    expect(studio.locator(".picture .transition[data-source=off]")).to_have_class(re.compile("pointed"))


def test_states_are_suggested_for_a_target(studio: Page):
    studio.locator(".cm-line", has_text='"target": "on"').click()
    studio.keyboard.press("End")
    for _ in range(2):
        studio.keyboard.press("ArrowLeft")
    studio.keyboard.press("Backspace")
    studio.keyboard.press("Backspace")
    studio.keyboard.type("o")
    listed = studio.locator(".cm-tooltip-autocomplete li")
    expect(listed.locator(".cm-completionLabel")).to_have_text(["off", "on"])
    studio.wait_for_timeout(200)  # in its first 75 ms a list takes no key: it may have come under a finger
    studio.keyboard.press("ArrowDown")
    expect(studio.locator(".cm-tooltip-autocomplete li[aria-selected] .cm-completionLabel")).to_have_text("on")
    studio.keyboard.press("Enter")
    expect(studio.locator("[data-counts]")).to_have_text("no findings")
    assert json.loads(text_of(studio))["states"]["off"]["on"]["press"]["target"] == "on"


def test_a_key_is_suggested_with_its_meaning_and_begun_with_its_value(studio: Page):
    line = studio.locator(".cm-line", has_text='"id"')
    line.click()
    studio.keyboard.press("End")
    studio.keyboard.type('\n"inv')
    listed = studio.locator(".cm-tooltip-autocomplete li[aria-selected]")
    expect(listed.locator(".cm-completionLabel")).to_have_text("invoke")
    assert squares(studio, ".cm-tooltip-autocomplete") == []
    expect(studio.locator(".cm-completionInfo")).to_have_text("What runs as long as the instance does.")
    studio.wait_for_timeout(200)  # in its first 75 ms a list takes no key
    studio.keyboard.press("Enter")
    studio.keyboard.type("wire")
    expect(studio.locator("[data-counts]")).to_have_text("no findings")
    assert json.loads(text_of(studio))["invoke"] == {"src": "wire"}


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_the_meaning_of_a_key_is_shown_under_the_pointer(studio: Page, format: str):
    if format == "yaml":
        studio.get_by_role("button", name="YAML").click()
        expect(studio.locator(".cm-line", has_text="initial: ")).to_be_visible()
    hover_word(studio, "target")
    meaning = studio.locator(".cm-tooltip .meaning")
    expect(meaning).to_contain_text("target The next state")
    hover_word(studio, "initial")
    expect(meaning).to_contain_text("initial The state a new instance starts in")


def hover_word(page: Page, word: str) -> None:
    box = page.locator(".cm-content").evaluate(
        """(content, word) => {
          const walk = document.createTreeWalker(content, NodeFilter.SHOW_TEXT);
          while (walk.nextNode()) {
            const at = walk.currentNode.data.indexOf(word);
            if (at < 0) continue;
            const range = document.createRange();
            range.setStart(walk.currentNode, at);
            range.setEnd(walk.currentNode, at + word.length);
            return range.getBoundingClientRect().toJSON();
          }
        }""",
        word,
    )
    page.mouse.move(0, 0)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)


def test_what_is_typed_becomes_a_draft(studio: Page):
    write(studio, json.dumps(LAMP | {"description": "dimmed"}, indent=2))
    expect(studio.locator("[data-saved]")).to_contain_text("Saved: draft")
    draft = Draft.objects.get(machine="lamp")
    assert (json.loads(draft.text)["description"], draft.base, draft.editor) == ("dimmed", 1, "sue")
    studio.reload()
    settled(studio)
    assert json.loads(text_of(studio))["description"] == "dimmed"


def test_two_people_in_one_draft_are_a_conflict_and_no_text_is_lost(as_, studio: Page):
    write(studio, json.dumps(LAMP | {"description": "by sue"}, indent=2))
    expect(studio.locator("[data-saved]")).to_contain_text("Saved: draft")
    draft = Draft.objects.get()
    other = as_("publisher", "pat")
    other.goto(f"/machines/lamp/edit/?draft={draft.pk}")
    settled(other)
    write(other, json.dumps(LAMP | {"description": "by pat"}, indent=2))
    expect(other.locator("[data-saved]")).to_contain_text("revision 2")
    expect(other.locator("[data-others-text]")).to_contain_text("sue (draft")
    other.locator(".cm-line", has_text='"press": "off"').click()
    expect(studio.locator("[data-others-text]")).to_contain_text("state on", timeout=10_000)  # less than a round
    expect(studio.locator("[data-others-text]")).to_contain_text(re.compile(r"pat \(draft \d+, line \d+, state on\)"))
    expect(studio.locator("[data-others-text]")).to_contain_text("pat saved a newer text of this draft")
    expect(studio.locator(".picture .state.theirs")).to_have_attribute("data-state", "on")
    write(studio, json.dumps(LAMP | {"description": "by sue again"}, indent=2))
    notice = studio.locator("[data-conflict]")
    expect(notice).to_contain_text("pat changed this draft meanwhile")
    assert "by pat" in notice.get_by_label("Their text").input_value()
    assert "by sue again" in text_of(studio)
    notice.get_by_role("button", name="Save mine as a new draft").click()
    expect(studio.locator("[data-saved]")).to_contain_text("Saved: draft")
    texts = {one.text.count("by sue again"): one.pk for one in Draft.objects.all()}
    assert set(texts) == {0, 1}
    assert "by pat" in Draft.objects.get(pk=draft.pk).text


def test_a_server_that_is_away_loses_nothing(unwatched: Page):
    unwatched.context.set_offline(True)
    write(unwatched, json.dumps(LAMP | {"description": "offline"}, indent=2))
    expect(unwatched.locator("[data-saved]")).to_contain_text("kept in this browser")
    assert Draft.objects.count() == 0
    unwatched.context.set_offline(False)
    expect(unwatched.locator("[data-saved]")).to_contain_text("Saved: draft")
    assert json.loads(Draft.objects.get().text)["description"] == "offline"


def test_a_text_that_was_not_saved_is_offered_again(unwatched: Page):
    unwatched.route("**/edit/save/**", lambda route: route.abort())
    write(unwatched, json.dumps(LAMP | {"description": "lost?"}, indent=2))
    expect(unwatched.locator("[data-saved]")).to_contain_text("kept in this browser")
    unwatched.unroute_all()
    unwatched.reload()
    unwatched.get_by_role("button", name="Continue with it").click()
    assert json.loads(text_of(unwatched))["description"] == "lost?"


def test_the_page_keeps_nobody_out(as_, lamp):
    page = as_("publisher", "sue", color_scheme="light", reduced_motion="reduce")
    page.goto("/machines/lamp/edit/")
    settled(page)
    write(page, json.dumps(LAMP, indent=2).replace('"target": "on"', '"target": "onn"'))
    expect(page.locator("[data-findings] li.error")).to_have_count(1)
    for scheme, width in itertools.product(("light", "dark"), (1400, 390)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert violations(page) == [], (scheme, width)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (scheme, width)


def test_who_may_view_reads_and_cannot_type(as_, lamp):
    page = as_("viewer", "eve")
    page.goto("/machines/lamp/edit/")
    settled(page)
    before = text_of(page)
    page.locator(".cm-content").click()
    page.keyboard.type("x")
    assert text_of(page) == before
    assert page.get_by_role("button", name="Save draft").count() == 0
    assert violations(page) == []


def test_a_paste_of_a_mermaid_diagram_is_converted(as_, lamp):
    page = as_("publisher", "sue")
    page.goto("/machines/new/")
    settled(page)
    write(page, "stateDiagram-v2\n  [*] --> Open\n  Open --> Closed: shut\n  Closed --> [*]\n")
    page.get_by_role("button", name="Convert to JSON").click()
    expect(page.locator(".cm-content")).to_contain_text('"shut"')
    expect(page.locator(".picture .state[data-state=Closed]")).to_be_visible()
    assert set(json.loads(text_of(page))["states"]) >= {"Open", "Closed"}


def test_keys_alone_reach_the_editor_and_leave_it(studio: Page):
    studio.locator(".cm-content").focus()
    studio.keyboard.press("Tab")
    assert not studio.evaluate("document.activeElement.closest('.cm-editor')")
    studio.locator(".picture .state[data-state=on]").focus()
    studio.keyboard.press("Enter")
    expect(studio.locator(".cm-activeLine")).to_contain_text('"on": {')
    expect(studio.locator(".cm-content")).to_be_focused()


def test_the_tab_verify_shows_the_run_of_a_finding_and_leads_to_its_state(studio: Page):
    states = LAMP["states"] | {"broken": {}, "gone": {"type": "final"}}
    states["on"] = {"on": {"press": "off", "drop": "broken", "remove": "gone"}}
    write(studio, json.dumps(LAMP | {"states": states}, indent=2))
    expect(studio.locator(".picture .state[data-state=broken]")).to_be_attached()
    studio.get_by_role("tab", name="Findings").press("ArrowRight")
    expect(studio.get_by_role("tab", name="Verify")).to_be_focused()
    expect(studio.locator("#findings")).to_be_hidden()
    expect(studio.locator("[data-results]")).to_contain_text("1 found")
    finding = studio.locator("#verify li.found")
    finding.get_by_text("Run of 3 steps").click()
    expect(finding.locator("ol li")).to_have_text(["create", "fire press", "fire drop"])
    finding.get_by_role("button", name="states.broken").click()
    expect(studio.locator(".picture .state[data-state=broken]")).to_have_class(re.compile("pointed"))
    assert violations(studio) == []
    write(studio, json.dumps(LAMP, indent=2))
    expect(studio.locator("[data-results]")).to_contain_text("0 found")


def test_the_text_is_played_beside_the_editor_and_again_when_it_changes(studio: Page):
    broken = LAMP["states"] | {"broken": {}, "gone": {"type": "final"}}
    broken["on"] = {"on": {"press": "off", "drop": "broken", "remove": "gone"}}
    write(studio, json.dumps(LAMP | {"states": broken}, indent=2))
    studio.get_by_role("tab", name="Verify").click()
    studio.get_by_text("Run of 3 steps").click()
    studio.get_by_role("button", name="Play it").click()
    trial = studio.locator("#try .trial")
    expect(trial.locator("#step-title")).to_have_text("Step 2 of 2")
    expect(studio.locator(".picture .state.current")).to_have_attribute("data-state", "broken")
    trial.get_by_role("button", name="press").click()  # the step before
    expect(trial.get_by_text("drops the")).to_be_visible()
    trial.get_by_role("button", name="remove").click()
    expect(trial.get_by_text("The instance has ended")).to_be_visible()
    assert violations(studio) == []
    write(studio, json.dumps(LAMP, indent=2))
    expect(trial.get_by_text("fire remove, is refused now")).to_be_visible()
    expect(studio.locator(".picture .state.current")).to_have_attribute("data-state", "on")
    trial.get_by_role("button", name="press").first.press("Enter")
    expect(trial.get_by_role("button", name="press").first).to_be_focused()
    assert Draft.objects.count() <= 1


def test_a_server_that_is_busy_is_asked_again(unwatched: Page):
    answers = iter([429, 429])

    def answer(route):
        status = next(answers, None)
        return (
            route.continue_()
            if status is None
            else route.fulfill(status=status, json={"error": "busy", "code": "SB712"})
        )

    unwatched.route("**/edit/check/**", answer)
    write(unwatched, json.dumps(LAMP, indent=2).replace('"target": "on"', '"target": "onn"'))
    expect(unwatched.locator("[data-findings] li.error")).to_have_count(1)
    expect(unwatched.locator("[data-saved]")).not_to_contain_text("busy")
