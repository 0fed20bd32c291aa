"""A list as a file: the instances of its filter, redacted, and never cut without a word."""

from __future__ import annotations

import csv
import io
import json

import pytest

from dashboard.instances import instance_list

ORDER = {
    "id": "order",
    "initial": "New",
    "index": ["to", "instance.id"],
    "context": {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "cents": {"type": "integer"},
            "card": {"type": "string", "sensitive": True},
        },
    },
    "states": {"New": {"on": {"pay": "Paid"}}, "Paid": {"type": "final"}},
}


@pytest.fixture
def orders(engine, db):
    engine.publish(ORDER)
    for number in range(5):
        data = {"to": "=1+1" if number == 0 else "Bern", "cents": number, "card": f"4111-{number}"}
        engine.create("order", f"o{number}", data, actor="ann")
    engine.fire("order", "o4", "pay")


def read_csv(answer) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(answer).decode())))


def test_the_list_is_a_csv_file_of_its_filter(as_, orders):
    client = as_("supervisor")
    answer = client.get("/machines/order/instances.csv?state=New&order=newest")
    assert answer["Content-Disposition"] == 'attachment; filename="order-instances.csv"'
    rows = read_csv(answer)
    assert [row["id"] for row in rows] == ["o3", "o2", "o1", "o0"]
    assert rows[0] | {"entered": "", "created": ""} == {
        "id": "o3", "state": "New", "entered": "", "created": "", "revision": "1", "version": "1", "actor": "ann",
        "suspended": "false", "finished": "false", "data.to": "Bern", "data.cents": "3",
        "data.card": rows[0]["data.card"],
    }  # fmt: skip
    assert rows[3]["data.to"] == "'=1+1", "a spreadsheet does not run it"
    assert "4111" not in json.dumps(rows), "lists show no sensitive value to anybody"


def test_the_list_is_a_json_file(as_, orders):
    answer = as_("viewer").get("/machines/order/instances.json?by=to&is=Bern&state=New")
    assert answer["Content-Type"] == "application/json"
    found = json.loads(b"".join(answer))
    assert (found["machine"], found["filter"]["state"], found["complete"]) == ("order", "New", True)
    assert sorted(row["id"] for row in found["instances"]) == ["o1", "o2", "o3"]
    assert found["instances"][0]["data"]["to"] == "Bern"
    assert "4111" not in json.dumps(found)


def test_a_file_that_ends_early_says_so(as_, orders, monkeypatch):
    monkeypatch.setattr(instance_list, "MAX_ROWS", 2)
    monkeypatch.setattr(instance_list, "READ", 1)
    client = as_("viewer")
    rows = read_csv(client.get("/machines/order/instances.csv?state=New"))
    assert [row["id"] for row in rows] == ["o0", "o1", instance_list.TRUNCATED]
    found = json.loads(b"".join(client.get("/machines/order/instances.json?state=New")))
    assert (len(found["instances"]), found["complete"]) == (2, False)


def test_a_filter_that_is_wrong_is_a_page(as_, orders):
    answer = as_("viewer").get("/machines/order/instances.csv?older=soon")
    assert answer.status_code == 400
    assert "is not a duration" in answer.content.decode()


def test_each_list_links_its_files(as_, orders):
    page = as_("viewer").get("/machines/order/?state=New&order=newest").content.decode()
    assert 'href="/machines/order/instances.csv?state=New&amp;order=newest"' in page
    assert 'href="/machines/order/instances.json?state=New&amp;order=newest"' in page
