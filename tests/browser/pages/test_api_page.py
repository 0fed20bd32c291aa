"""The API's own page in a real browser: folded, linked, and tried with the session of whoever looks."""

from __future__ import annotations

from playwright.sync_api import expect

INSTANCE = {"machine": "activation", "id": "ATV-123:NBCSports"}


def attempt(page, operation: str, **fields: str):
    """Unfold an operation, fill in its form, send it; where the answer appears."""
    page.goto(f"/api/v1/docs#{operation}")
    place = page.locator(f"#{operation}")
    expect(place).to_have_attribute("open", "")
    for name, text in fields.items():
        place.get_by_label(name, exact=True).fill(text)
    place.locator("form.try button").click()
    return place.locator(".came")


def test_what_is_read_is_shown_as_it_came(page, engine, waiting):
    expect(attempt(page, "getInstance", **INSTANCE)).to_contain_text('"revision": 2')


def test_an_event_is_fired_and_a_refusal_is_a_problem(page, engine, waiting):
    body = '{"event": "entitle", "payload": {"token": "MTOB1J"}}'
    expect(attempt(page, "fireEvent", **INSTANCE, body=body)).to_contain_text("200")
    assert engine.get("activation", waiting.id).revision == 3
    came = attempt(page, "fireEvent", **INSTANCE, body='{"event": "nonsense"}')
    expect(came).to_contain_text('"code": "SB431"')


def test_a_problems_type_leads_to_its_code(page, engine, waiting):
    page.goto("/api/v1/docs#SB430")
    expect(page.locator("#SB430")).to_be_in_viewport()
    expect(page.locator("#SB430")).to_contain_text("Refused")
