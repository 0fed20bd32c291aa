"""Trying a machine: a run step by step without a script, places of it, its link, its scenario, and hostile runs."""

from __future__ import annotations

import pytest

from machines.catalog.editing import runs
from machines.engine.definitions import compile_definition
from machines.testing.scenarios import read_text
from machines.testing.scenarios.runner import run_files
from tests.engine.builders import fields as fields_of
from tests.pages.reading import fields, read

TRY = "/machines/order/try/"
ORDER = {
    "id": "order",
    "initial": "Cart",
    "context": {"n": 0},
    "states": {
        "Cart": {
            "on": {"add": {"actions": {"set": {"n": "n + event.qty"}}}, "pay": {"guard": "n > 0", "target": "Paying"}}
        },
        "Paying": {
            "invoke": {"id": "charge", "src": "charge", "onDone": "Paid", "onError": "Failed"},
            "after": {"30s": "Failed"},
        },
        "Failed": {"on": {"retry": "Paying"}},
        "Paid": {"type": "final"},
    },
}  # fmt: skip
RUN = ["pay", ("add", {"qty": 2}), "pay", {"advance": "30s"}, "retry", {"job": "charge", "done": 7}]


@pytest.fixture
def client(as_, engine, db):
    engine.publish(ORDER)
    return as_("viewer")


def press(client, page, do: str, **entered: str):
    """Submits the form of the page that has this button, and follows."""
    name, _, event = do.partition(":")
    forms = [one for one in page.all("form") if one.all("button", name="do", value=name)]
    form = next(one for one in forms if not event or fields(one).get("event") == event)
    return client.post(form["action"], fields(form) | {"do": name} | entered, follow=True)


def test_a_run_is_made_step_by_step_without_a_script(client, engine):
    page = read(client.get(TRY))
    page = read(press(client, page, "event:pay"))
    assert "refused, still in Cart" in page.one("section", **{"aria-labelledby": "step-title"}).text
    assert "n > 0" in page.one("ul", class_="routes").text
    page = read(press(client, page, "event:add", **{"payload-qty": "2", "payload-qty_~kind": "json"}))
    page = read(press(client, page, "event:pay"))
    page = read(press(client, page, "next"))
    assert "state Failed" in page.one("div", class_="head").text
    page = read(press(client, page, "event:retry"))
    answer = press(client, page, "job-done", value="7")
    assert "The instance has ended" in answer.content.decode()
    run = runs.decode(answer.request["QUERY_STRING"].partition("run=")[2])
    assert run == runs.make([*RUN[:3], {"advance": "next"}, *RUN[4:]])
    assert list(engine.find("order")) == []


def test_a_new_step_from_an_earlier_place_drops_what_followed(client):
    page = read(client.get(f"{runs.link('order', 1, RUN)}&at=2"))
    assert "drops the 4 steps" in page.text
    answer = press(client, page, "advance", value="5m")
    assert "of 3" in read(answer).text
    assert "drops" not in read(answer).text


def test_the_file_of_a_run_passes(client, engine, redis_url):
    answer = client.get(runs.link("order", 1, RUN).replace("/try/", "/try/scenario.yaml"))
    file, findings = read_text(answer.content)
    assert findings == []
    (result,) = run_files(redis_url, [file], {"order": compile_definition(ORDER)})
    assert result.passed, result.failure.text


@pytest.mark.parametrize(
    ("run", "code"),
    [
        ("<script>", "SB681"),
        ("A" * 7000, "SB681"),
        (runs.encode(runs.make([{"job": "nobody", "done": 1}])), "SB637"),
        (runs.encode(runs.make([], {"nothing": 1})), "SB"),
    ],
)
def test_a_hostile_or_misfitting_run_opens_an_error_and_no_more(client, run, code):
    for address in (TRY, f"{TRY}scenario.yaml"):
        answer = client.get(address, {"run": run})
        assert (answer.status_code, code in read(answer).one("div", role="alert").text) == (400, True)
    answer = client.post(f"{TRY}step/", {"run": run, "do": "event", "event": "pay"})
    assert answer.status_code == 400


def test_a_wrong_form_keeps_the_run(client):
    page = read(client.get(runs.link("order", 1, RUN[:3])))
    answer = press(client, page, "job-done", value="{nonsense")
    assert answer.status_code == 400
    assert "Invalid JSON" in read(answer).one("div", role="alert").text
    assert "of 3" in read(answer).text


def test_a_version_that_is_not_there_is_a_404(client):
    assert client.get(f"{TRY}?version=9").status_code == 404
    assert client.get(f"{TRY}?version=x").status_code == 404


def test_with_too_many_runs_in_a_minute_the_run_stays_in_the_page_and_is_not_played(client, monkeypatch):
    address = runs.link("order", 1, RUN)
    monkeypatch.setattr("dashboard.catalog.studio.simulator.TRIES", 2)
    page = read(client.get(address))
    form = next(form for form in page.all("form") if "run" in fields(form))
    assert client.get(address).status_code == 200
    answer = client.get(address)
    assert answer.status_code == 429
    assert "SB684" in answer.content.decode()
    assert fields(form)["run"] in answer.content.decode(), "nothing of the run is lost"
    answer = client.post("/machines/order/try/step/", fields(form) | {"do": "next"})
    assert answer.status_code == 429


@pytest.mark.parametrize(("context", "is_open"), [({"n": 0}, False), (fields_of(n="integer"), True)])
def test_data_to_begin_with_is_asked_for_where_fields_have_no_value(client, engine, context, is_open):
    engine.publish(ORDER | {"context": context})
    page = read(client.get(TRY))
    begin = next(one for one in page.all("details") if one.one("summary").text == "Begin with data…")
    assert ("open" in begin.attributes) == is_open
    page = read(press(client, page, "restart", **{"data-n": "3"}))
    assert next(one for one in page.all("details") if one.one("summary").text == "Start again")
    page = read(press(client, page, "event:pay"))
    assert "Paying" in page.one("section", **{"aria-labelledby": "step-title"}).text
