"""The page of an error group follows its action, its jobs and its counts by itself."""

from __future__ import annotations

from playwright.sync_api import expect

from machines.failures.duties import PacedActions
from machines.models import FailureAction, FailureGroup
from tests.failures.conftest import die, follow

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
