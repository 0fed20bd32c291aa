"""Rows of a list are selected and become a bulk action, without script."""

from __future__ import annotations

import pytest

from machines.engine import BadInput
from machines.instances.bulks import BULK, Bulk, Order
from machines.instances.bulks.order import MAX_CHOSEN
from machines.worker.registry import discover
from tests.instances.bulks.builders import parcels, work_off
from tests.pages.reading import fields, read

MACHINE = "/machines/parcel/"
NEW = f"{MACHINE}bulk/?picked=1"


@pytest.fixture
def shop(engine, db):
    discover()
    parcels(engine, 5)
    return engine


def test_selected_rows_become_a_bulk_action(as_, shop):
    client = as_("supervisor")
    ids = [one.id for one in shop.find("parcel")]
    form = read(client.get(MACHINE)).one("form", class_="selection")
    assert form["action"] == f"{MACHINE}bulk/"
    boxes = [box["value"] for box in form.all("input") if box.attributes.get("name") == "pick"]
    assert boxes == ids
    address = f"{NEW}&pick={ids[0]}&pick={ids[2]}&do=suspend"
    page = read(client.get(address))
    assert "2 chosen" in page.text
    reset = next(a for a in page.one("nav", class_="tabs").all("a") if a.text == "reset")
    assert f"pick={ids[0]}&pick={ids[2]}" in reset["href"].replace("&amp;", "&")
    answer = client.post(address, fields(page.one("form", id="bulk")) | {"reason": "inquiry"})
    assert answer.status_code == 302, read(answer).text
    work_off(shop)
    bulk = Bulk(shop, answer.url.strip("/").split("/")[1])
    assert sorted(row.item.id for row in bulk.rows(0, 10)) == sorted([ids[0], ids[2]])
    assert "2 chosen" in read(client.get(answer.url)).text


def test_nothing_selected_is_nothing_done(as_, shop):
    answer = as_("supervisor").get(f"{NEW}&do=delete")
    assert answer.status_code == 302
    assert answer.url == MACHINE
    assert BULK not in shop.machines() or not shop.find(BULK).instances


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_operate_selects_nothing(as_, shop, role):
    client = as_(role)
    assert 'name="pick"' not in client.get(MACHINE).content.decode()
    assert client.get(f"{NEW}&pick=x&do=suspend").status_code == 403


@pytest.mark.parametrize(
    ("filter", "why"),
    [
        ({"ids": []}, "1 to 200"),
        ({"ids": [str(n) for n in range(MAX_CHOSEN + 1)]}, "1 to 200"),
        ({"ids": ["a", "a"]}, "twice"),
        ({"ids": ["a"], "state": "open"}, "exclude each other"),
        ({"ids": "a"}, "is a list"),
    ],
)
def test_a_list_of_instances_is_bounded(shop, filter, why):
    with pytest.raises(BadInput, match=why):
        Order("parcel", "suspend", "sue", "inquiry", filter).check(shop)
