"""A number in a form: its type comes from the schema, then from guards, then from earlier payloads; and no text is
compared with a number without a word."""

from __future__ import annotations

import pytest

from tests.pages.reading import fields, read

ADDRESS = "/machines/bill/instances/1/"
STATES = {
    "open": {
        "on": {
            "pay": {"target": "paid", "guard": "event.amount >= total"},
            "note": {"actions": {"set": {"noted": "event.code"}}},
            "mix": {"target": "paid", "guard": "event.mixed == 5 or event.mixed == 'five'"},
        }
    },
    "paid": {"on": {"undo": "open"}},
}
BILL = {"id": "bill", "initial": "open", "context": {"total": 100, "noted": None, "limit": None}, "states": STATES}


@pytest.fixture
def bill(engine, db) -> str:
    engine.publish(BILL)
    engine.create("bill", "1")
    return ADDRESS


def action(page, event: str):
    return next(form for form in page.all("form", action=f"{ADDRESS}fire/") if fields(form).get("event") == event)


def sent(client, event: str, **changes: str) -> dict[str, str]:
    return fields(action(read(client.get(ADDRESS)), event)) | changes


def test_a_guard_that_compares_a_number_makes_the_field_a_number(as_, engine, bill):
    client = as_("operator")
    form = action(read(client.get(bill)), "pay")
    assert "number" in form.text
    assert "payload-amount_~kind" not in fields(form)
    answer = client.post(f"{bill}fire/", sent(client, "pay", **{"payload-amount": "1e2"}))
    assert answer.status_code == 302
    assert engine.get("bill", "1").state == "paid"
    assert engine.history("bill", "1")[0].payload == {"amount": 100}


def test_a_text_in_its_place_is_a_mistake_beside_the_field(as_, bill):
    client = as_("operator")
    answer = client.post(f"{bill}fire/", sent(client, "pay", **{"payload-amount": "much"}))
    assert (answer.status_code, "Enter a number." in read(answer).text) == (400, True)


def test_an_earlier_payload_chooses_the_kind_of_a_field_that_nothing_compares(as_, engine, bill):
    client = as_("operator")
    assert sent(client, "note")["payload-code_~kind"] == "text"
    engine.fire("bill", "1", "note", {"code": 7})
    assert sent(client, "note")["payload-code_~kind"] == "json"
    client.post(f"{bill}fire/", sent(client, "note", **{"payload-code": "8"}))
    assert engine.get("bill", "1").data["noted"] == 8
    engine.fire("bill", "1", "note", {"code": "A7"})
    assert sent(client, "note")["payload-code_~kind"] == "text"


@pytest.mark.parametrize(("check", "status"), [("", 422), ("1", 200)])
def test_a_text_that_is_compared_with_a_number_is_said(as_, bill, check: str, status: int):
    client = as_("operator")
    page = read(client.get(bill))
    assert "Compared with a number: choose JSON to enter one." in action(page, "mix").text
    given = fields(action(page, "mix")) | {"payload-mixed": "5", "payload-mixed_~kind": "text"}
    answer = client.post(f"{bill}fire/", given | ({"check": check} if check else {}))
    assert answer.status_code == status
    assert "mixed is a text, and is compared with a number." in read(answer).text


def test_data_has_the_type_of_its_guards_and_of_its_value(as_, engine, db):
    states = {"open": {"on": {"go": {"guard": "limit > 5"}}}}
    context = {"limit": None, "free": None}
    engine.publish({"id": "bill", "initial": "open", "context": context, "states": states})
    engine.create("bill", "1", {"free": 3})
    client = as_("supervisor")
    new = fields(read(client.get("/machines/bill/")).one("form", action="/machines/bill/create/"))
    assert ("data-limit_~kind" in new, new["data-free_~kind"]) == (False, "text")
    edit = fields(read(client.get(f"{ADDRESS}edit/")).one("form", action=f"{ADDRESS}edit/"))
    assert ("data-limit_~kind" in edit, edit["data-free_~kind"]) == (False, "json")
    assert client.post(f"{ADDRESS}edit/", edit | {"data-limit": "9", "reason": "more"}).status_code == 302
    assert engine.get("bill", "1").data == {"limit": 9, "free": 3}
