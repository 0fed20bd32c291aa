"""The list of alarm routes on a phone."""

from __future__ import annotations

from playwright.sync_api import expect

from machines.models import AlarmRoute, Webhook


def test_a_route_is_a_card_with_its_labels_on_a_phone(as_, site):
    hook = Webhook.objects.create(name="ops", url="https://hooks.example.test/services/T000/B000", secret="x", types=[])
    AlarmRoute.objects.create(
        receiver=hook, severity="warning", kinds=["dead", "sla"], hours="mon-fri 08:00-18:00", after=15
    )
    page = as_("supervisor", viewport={"width": 390, "height": 844})
    page.goto("/alarms/routes/")
    row = page.locator("tr[data-route]")
    expect(row).to_contain_text("mon-fri 08:00-18:00")
    expect(page.locator("table.webhooks thead")).to_be_hidden()
    shown = row.locator("td").evaluate_all("cells => cells.map(cell => getComputedStyle(cell, '::before').content)")
    assert shown == ['"alarms"', '"when"', '"status"']
    assert row.bounding_box()["width"] <= 390
