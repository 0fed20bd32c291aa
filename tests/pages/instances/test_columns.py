"""The columns of a list are chosen, kept in its addresses and with a saved view, and show what a row holds."""

from __future__ import annotations

import pytest

from dashboard.models import SavedView
from tests.pages.reading import read

LIST = "/machines/order/"
ORDER = {
    "id": "order",
    "initial": "New",
    "index": ["to", "card", "instance.id"],
    "context": {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "paid": {"type": "boolean"},
            "card": {"type": "string", "sensitive": True},
        },
    },
    "states": {"New": {"on": {"pay": "Paid"}}, "Paid": {}},
}


@pytest.fixture
def orders(engine, db):
    engine.publish(ORDER)
    engine.create("order", "o1", {"to": "<b>Bern", "card": "4111"}, actor="ann")
    engine.create("order", "o2", {"to": "x" * 200}, actor="bob")
    engine.suspend("order", "o2", actor="bob", reason="wait")


def heads(page) -> list[str]:
    return [head.text.strip(" ▲▼") for head in page.one("table", class_="instances").all("th", scope="col")]


def cells(page, id: str) -> list[str]:
    (row,) = [row for row in page.all("tr") if row.attributes.get("data-row") == id]
    return [cell.text.strip() for cell in row.all("td")]


def test_a_list_has_the_usual_columns(as_, orders):
    assert heads(read(as_("viewer").get(LIST))) == ["Instance", "State", "time in state", "revision", "created"]


def test_chosen_columns_are_shown_in_their_order_and_kept_in_each_address(as_, orders):
    client = as_("viewer")
    page = read(client.get(f"{LIST}?state=New&col=data.to&col=version&col=actor&col=suspended"))
    assert heads(page) == ["Instance", "State", "version", "last actor", "suspended", "to"]
    assert cells(page, "o1")[1:] == ["1", "ann", "no", "<b>Bern"]
    assert cells(page, "o2")[1:] == ["1", "bob", "yes", "x" * 79 + "…"]
    kept = "cols=version%2Cactor%2Csuspended%2Cdata.to"
    links = [link["href"] for link in page.one("footer", class_="listfoot").all("a")]
    assert [link for link in links if "order=newest" in link and kept in link]
    again = read(client.get(f"{LIST}?{kept}"))
    assert heads(again) == heads(page)
    form = next(form for form in page.all("form") if form.attributes.get("aria-label") == "Columns of the list")
    given = {(box["name"], box["value"]) for box in form.all("input")}
    assert {("state", "New"), ("col", "time"), ("col", "data.to")} <= given
    chosen = {box["value"] for box in form.all("input", type="checkbox") if "checked" in box.attributes}
    assert chosen == {"version", "actor", "suspended", "data.to"}


def test_no_list_shows_a_sensitive_value(as_, orders):
    page = read(as_("supervisor").get(f"{LIST}?cols=data.card"))
    assert heads(page) == ["Instance", "State", "card"]
    assert "4111" not in page.text


def test_columns_that_a_machine_does_not_have_are_passed_over(as_, orders):
    assert heads(read(as_("viewer").get(f"{LIST}?cols=data.gone,nothing"))) == [
        "Instance", "State", "time in state", "revision", "created",
    ]  # fmt: skip


def test_the_time_in_state_sorts(as_, orders):
    page = read(as_("viewer").get(f"{LIST}?cols=time"))
    (head,) = [head for head in page.all("th") if head.attributes.get("aria-sort")]
    assert (head["aria-sort"], head.one("a")["href"]) == ("descending", f"{LIST}?cols=time&order=newest#instances")


def test_a_saved_view_keeps_its_columns(as_, orders):
    client = as_("viewer")
    given = {"name": "mine", "page": LIST, "query": "state=New&cols=time%2Cversion"}
    assert client.post("/views/", given).status_code == 302
    assert "cols=time%2Cversion" in SavedView.objects.get().query
