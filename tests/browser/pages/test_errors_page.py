"""The page of an error group follows its action, its jobs and its counts by itself, and keeps what is being written."""

from __future__ import annotations

from playwright.sync_api import expect

from machines.jobs.failures.duties import PacedActions
from machines.models import FailureAction, FailureGroup
from tests.jobs.failures.conftest import die, follow

__all__ = ["die", "follow"]


def test_a_retry_of_a_group_is_followed_to_its_end(as_, engine, die, follow):
    die("a", "b", "c", error="order 17 not found")
    follow()
    page = as_("supervisor")
    page.goto(f"/errors/{FailureGroup.objects.get().pk}/")
    retry = page.locator("form").filter(has=page.get_by_role("button", name="Retry 3 open jobs"))
    retry.get_by_label("reason").fill("the provider is back")
    retry.get_by_role("button", name="Retry 3 open jobs").click()
    progress = page.locator("[data-region=progress]")
    expect(progress).to_contain_text("0 of 3")
    PacedActions(engine).look(FailureAction.objects.get().started + 1000)
    expect(progress).to_contain_text("3 of 3")
    expect(page.locator("[data-region=jobs]")).to_contain_text("No open jobs.")
    expect(page.locator("[data-region=facts]")).to_contain_text("0 open")


def test_a_refused_form_stays_while_the_rest_of_the_page_follows(as_, die, follow):
    die("a", error="order 17 not found")
    follow()
    page = as_("supervisor")
    page.goto(f"/errors/{FailureGroup.objects.get().pk}/")
    retry = page.locator("form").filter(has=page.get_by_role("button", name="Retry 1 open job"))
    retry.get_by_label("reason").fill("the provider is back")
    retry.get_by_label("jobs per second").fill("0")
    retry.get_by_role("button").click()
    refused = page.locator("[data-region=actions] form").filter(has=page.locator(".error"))
    expect(refused).to_be_visible()
    die("b", error="order 18 not found")
    follow()
    expect(page.locator("[data-region=facts]")).to_contain_text("2 open")
    expect(refused.get_by_label("reason")).to_have_value("the provider is back")


def test_a_group_has_one_primary_action_and_the_others_are_folded_into_a_menu(as_, die, follow):
    die("a", error="order 17 not found")
    follow()
    page = as_("supervisor")
    page.goto(f"/errors/{FailureGroup.objects.get().pk}/")
    actions = page.locator("[data-region=actions]")
    expect(actions.get_by_role("button")).to_have_text("Retry 1 open job")
    expect(actions.locator("button.primary")).to_have_count(1)
    actions.locator("summary", has_text="Mute until it changes").click()
    form = actions.locator("details[open] form")
    form.get_by_label("reason").fill("known")
    form.get_by_role("button", name="Mute until it changes").click()
    expect(page.locator(".mark.muted")).to_be_visible()


def test_all_dead_jobs_are_retried_with_a_preview_a_filter_and_a_rate(as_, engine, die, follow):
    die("a", "b", "c", error="order 17 not found")
    die("d", kind="OSError", error="away")
    follow()
    page = as_("supervisor")
    page.goto("/queues/errand/work/?place=dead")
    page.get_by_role("link", name="Retry dead jobs…").click()
    expect(page.get_by_role("heading", name="4 dead jobs")).to_be_visible()
    page.get_by_label("error", exact=True).select_option(label="OSError in work: 1")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="1 dead job")).to_be_visible()
    expect(page.locator("table.cards")).to_contain_text("away")
    page.get_by_label("error", exact=True).select_option("")
    page.get_by_role("button", name="Preview").click()
    page.get_by_label("jobs per second").fill("3")
    page.get_by_label("reason").fill("the provider is back")
    page.get_by_role("button", name="Retry 4 jobs").click()
    progress = page.locator("[data-region=progress]")
    expect(progress).to_contain_text("0 of 4")
    worker = PacedActions(engine)
    worker.look(FailureAction.objects.get().started)
    expect(progress).to_contain_text("3 of 4")
    worker.look(FailureAction.objects.get().started + 1000)
    expect(progress).to_contain_text("4 of 4")
    assert engine.stats("errand")["work"].depth["dead"] == 0
