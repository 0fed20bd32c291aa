"""A plan from its form to the move: mapping with suggestions, dry run by class, refused instances, bulk action."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from machines.engine import MigrationPlan
from machines.models import StoredPlan
from machines.people.permissions import RIGHTS
from tests.pages.reading import Element, fields, read

SECOND = {
    "id": "lamp", "initial": "off",
    "context": {
        "type": "object", "properties": {"watts": {"type": "integer", "default": 1}, "note": {"type": "string"}},
    },
    "states": {
        "off": {"on": {"press": "bright"}},
        "bright": {"on": {"press": "off"}},
    },
}  # fmt: skip
FIRST = SECOND | {
    "context": {"type": "object", "properties": {"note": {"type": "string"}}},
    "states": {"off": {"on": {"press": "lit"}}, "lit": {"on": {"press": "off"}}},
}
PAGE = "/machines/lamp/versions/plans/"


@pytest.fixture
def lamps(engine, db) -> str:
    """Three instances of version 1, two of them in a state without a place in version 2."""
    engine.publish(FIRST)
    for id in ("a", "b", "c"):
        engine.create("lamp", id)
    for id in ("a", "b"):
        engine.fire("lamp", id, "press")
    engine.publish(SECOND)
    return "lamp"


@pytest.fixture
def operator(as_, lamps):
    return as_("supervisor", "sue")


def form_of(page: Element) -> dict[str, str]:
    return fields(page.one("form", id="plan")) | {"sources": "1"}


def store(client, **changes: str) -> StoredPlan:
    form = form_of(read(client.get(PAGE)))
    answer = client.post(PAGE, form | changes | {"do": "store"})
    assert answer.status_code == 302, read(answer).one("main").text
    return StoredPlan.objects.latest("pk")


def test_the_form_shows_states_without_a_place_with_suggestions(operator):
    page = read(operator.get(PAGE))
    row = next(row for row in page.all("tr", class_="open") if "lit" in row.one("th").text)
    assert "unmapped" in row.text
    assert any("suggested" in option.text for option in row.all("option"))
    assert "2" in row.all("td")[0].text  # instances in it
    assert "new: 1" in page.text  # the new field gets its initial value


def test_check_computes_the_mapping_again(operator):
    form = form_of(read(operator.get(PAGE)))
    page = read(operator.post(PAGE, form | {"state.lit": "bright", "do": "check"}))
    row = next(row for row in page.all("tr") if row.all("select") and "lit" in row.one("th").text)
    assert "bright" in row.all("td")[1].text
    assert not StoredPlan.objects.exists()


def test_a_plan_with_errors_is_not_stored(operator):
    form = form_of(read(operator.get(PAGE)))
    answer = operator.post(PAGE, form | {"data.watts": "1 +", "do": "store"})
    assert answer.status_code == 400
    assert read(answer).one("ul", class_="findings").all("li", class_="error")
    assert 'value="1 +"' in answer.content.decode()
    assert not StoredPlan.objects.exists()


def test_the_dry_run_counts_each_instance_once_and_names_the_refused(operator, engine):
    stored = store(operator)
    page = read(operator.get(f"{PAGE}{stored.pk}/"))
    rows = page.one("table", class_="classes").one("tbody").all("tr")
    counts = {row.one("th").text.split()[0]: int(row.all("td")[0].text) for row in rows}
    assert counts == {"lit": 2, "off": 1}
    assert "2 would be refused" in page.text
    links = {link.text for link in page.one("table", class_="classes").all("a", class_="key")}
    assert links == {"a", "b", "c"}
    assert [engine.get("lamp", id).version for id in "abc"] == [1, 1, 1]
    rows = b"".join(operator.get(f"{PAGE}{stored.pk}/refused.csv").streaming_content).decode().splitlines()
    assert len(rows) == 3


def test_a_plan_is_changed_and_moves_as_a_bulk_action(operator, engine):
    first = store(operator)
    form = form_of(read(operator.get(f"{PAGE}?of={first.pk}")))
    operator.post(PAGE, form | {"state.lit": "bright", "data.watts": "40", "do": "store"})
    stored = StoredPlan.objects.latest("pk")
    assert MigrationPlan.from_dict(stored.plan).source(1).states["lit"] == ("bright",)
    address = f"{PAGE}{stored.pk}/"
    button = read(operator.get(address)).one("section", id="move").one("button", class_="primary")
    assert "disabled" not in button.attributes  # it was tried when it was stored
    assert operator.post(f"{address}move/", {"reason": ""}).status_code == 400
    answer = operator.post(f"{address}move/", {"reason": "lamps are dimmed", "rate": ""})
    stored.refresh_from_db()
    assert answer.url == f"/bulk/{stored.bulk}/"
    move = read(operator.get(address)).one("section", id="move")
    assert stored.bulk in move.text
    rows = read(operator.get("/machines/lamp/versions/")).one("section", id="plans").one("tbody").all("tr")
    link = next(link for link in rows[0].all("a") if link["href"] == f"/bulk/{stored.bulk}/")
    assert link.text == "collecting"
    assert f"{link.text}: paced" in move.text


def test_a_viewer_looks_and_changes_nothing(as_, operator):
    stored = store(operator)
    client = as_("viewer", "vic")
    page = read(client.get(f"{PAGE}{stored.pk}/"))
    assert not page.one("main").all("button")
    for name in ("dry-run", "move", "back"):
        assert client.post(f"{PAGE}{stored.pk}/{name}/", {"reason": "x"}).status_code == 403


def test_a_machine_with_one_version_has_nothing_to_plan(as_, activation):
    assert as_("supervisor").get("/machines/activation/versions/plans/").status_code == 404


@pytest.mark.parametrize("query", ["to=9", "of=99", "to=x&of=7x7"])
def test_what_is_not_there_is_a_404(operator, query):
    assert operator.get(f"{PAGE}?{query}").status_code in (404, 200)


def test_a_plan_of_another_machine_is_a_404(operator, activation):
    stored = store(operator)
    assert operator.get(f"/machines/activation/versions/plans/{stored.pk}/").status_code == 404


@pytest.fixture
def publisher(user_of, lamps):
    """A person who may operate and publish."""
    client, user = Client(), user_of("supervisor", "amy")
    user.user_permissions.add(Permission.objects.get(codename=RIGHTS["publish"].partition(".")[2]))
    client.force_login(user)
    return client


def test_the_way_back_offers_to_make_the_older_version_current(publisher, engine):
    stored = store(publisher)
    page = f"{PAGE}{stored.pk}/"
    publisher.post(f"{page}move/", {"reason": "new lamps"})
    form = read(publisher.get(page)).one("form", action=f"{page}back/")
    assert "Instances created in version 2 or moved there by another plan stay." in form.text
    assert "make version 1 current now, and pin it" in form.text
    assert publisher.post(f"{page}back/", fields(form) | {"reason": "old ones", "make_current": "1"}).status_code == 302
    assert engine.live("lamp").version == 1
    assert engine.get_pin("lamp").version == 1


def test_the_way_back_offers_nothing_where_new_instances_get_the_older_version_already(publisher, engine):
    stored = store(publisher)
    page = f"{PAGE}{stored.pk}/"
    publisher.post(f"{page}move/", {"reason": "new lamps"})
    engine.pin("lamp", 1)
    assert "make_current" not in fields(read(publisher.get(page)).one("form", action=f"{page}back/"))


def test_a_version_that_cannot_be_current_is_named_before_anything_goes_back(publisher, engine):
    stored = store(publisher)
    page = f"{PAGE}{stored.pk}/"
    publisher.post(f"{page}move/", {"reason": "new lamps"})
    engine.withdraw_version("lamp", 1)
    answer = publisher.post(f"{page}back/", {"reason": "old ones", "make_current": "1"})
    assert answer.status_code == 409
    assert "version 1 is withdrawn: no new instance gets it (SB625)" in read(answer).one("main").text
    stored.refresh_from_db()
    assert stored.back == ""
