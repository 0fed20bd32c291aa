"""The history of an instance in the words of its diagram, on the page, for the script and in the files."""

from __future__ import annotations

import csv
import json

import pytest

from tests.pages.reading import read

ORDER = {
    "id": "order",
    "initial": "New",
    "context": {
        "type": "object",
        "properties": {
            "amount": {"type": "integer", "default": 5},
            "card": {"type": "string", "default": "4711", "sensitive": True},
        },
    },
    "states": {
        "New": {"on": {"go": {"target": "Waiting", "actions": [{"set": {"amount": 7}}]}}},
        "Waiting": {"after": {"20ms": "Late"}},
        "Late": {},
    },
}
PAGE = "/machines/order/instances/o-1/"


@pytest.fixture
def late(engine, db):
    """An instance that a timer moved: created, go, after 20ms."""
    engine.publish(ORDER)
    engine.create("order", "o-1")
    engine.fire("order", "o-1", "go", actor="ann")
    engine.tick("order", now=engine.get("order", "o-1").entered + 60_000)
    return engine.get("order", "o-1")


def test_the_page_says_timers_and_steps_in_words_and_keeps_the_names(as_, late):
    answer = as_("viewer").get(PAGE, {"at": 3})
    shown = [
        (one.text, one.attributes.get("title", "")) for one in read(answer).all("span") if one.has("class", "event")
    ]
    raw = answer.context["steps"][0].event
    assert raw.startswith("after.")
    assert ("after 20 ms", raw) in shown
    assert ("created", "(create)") in shown
    assert ("go", "") in shown
    assert raw not in read(answer).one(**{"data-region": "history"}).text
    past = " ".join(read(answer).one(**{"data-region": "past"}).text.split())
    assert "Viewing a past revision: 3, step after 20 ms, in Late" in past


def test_the_script_gets_the_words_as_data(as_, late):
    trail = as_("viewer").get(PAGE).context["replay"].trail
    assert [moment["words"] for moment in trail] == ["created", "go", "after 20 ms"]


def test_the_files_have_names_and_words(as_, late):
    client = as_("viewer")
    rows = list(csv.DictReader(b"".join(client.get(f"{PAGE}history.csv")).decode().splitlines()))
    assert [row["words"] for row in rows] == ["after 20 ms", "go", "created"]
    assert rows[0]["event"].startswith("after.")
    answer = client.get(f"{PAGE}history.json")
    assert (answer["Content-Type"], answer["Cache-Control"]) == ("application/json", "no-store")
    assert "order-o-1-history.json" in answer["Content-Disposition"]
    found = json.loads(b"".join(answer))
    assert (found["machine"], found["instance"]) == ("order", "o-1")
    assert [(step["revision"], step["words"], step["version"]) for step in found["steps"]] == [
        (3, "after 20 ms", 1), (2, "go", 1), (1, "created", 1),
    ]  # fmt: skip
    assert found["steps"][1]["changes"] == {"amount": 7}
    assert b"4711" not in json.dumps(found).encode()


def test_a_history_of_two_versions_has_the_words_of_each(as_, late, engine):
    second = json.loads(json.dumps(ORDER))
    second["states"]["Waiting"]["after"] = {"3d": "Late"}
    engine.publish(second)
    engine.migrate(engine.plan("order", 2), actor="ann", reason="slower")
    engine.force("order", "o-1", "Waiting", actor="ann", reason="again")
    engine.tick("order", now=engine.get("order", "o-1").entered + 7 * 86_400_000)
    words = as_("viewer").get(PAGE).context["words"]
    assert [words.describe(step) for step in engine.history("order", "o-1")] == [
        "after 3 d", "state forced", "moved from version 1", "after 20 ms", "go", "created",
    ]  # fmt: skip


def test_the_files_need_an_instance(as_, late):
    assert as_("viewer").get("/machines/order/instances/none/history.json").status_code == 404
