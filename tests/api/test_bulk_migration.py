"""A migration by the API: the plan goes with the order, and what became of each instance is listed."""

from __future__ import annotations

import pytest

from tests.instances.bulks import test_migrate as migrations
from tests.instances.bulks.builders import work_off

WHY = {"reason": "states were renamed"}


@pytest.fixture
def fleet(engine, db):
    return migrations.parcels(engine, 12, held=2)


def test_a_plan_is_ordered_previewed_run_and_listed(engine, caller, fleet):
    who, plan = caller("view", "operate"), migrations.plan(engine)
    made = who.post("/machines/parcel/bulks", {"action": "migrate", "plan": plan.as_dict(), **WHY})
    assert made.status_code == 201, made.content
    assert made.json()["target"] == f"to version 2 by plan {plan.id}"
    work_off(engine)
    id = made.json()["id"]
    assert who.get(f"/bulks/{id}").json()["verdicts"] | {"changed": 0} == {
        "taken": 10, "refused": 2, "changed": 0, "gone": 0, "failed": 0,
    }  # fmt: skip
    assert who.post(f"/bulks/{id}/run").status_code == 200
    work_off(engine)
    rows = who.get(f"/bulks/{id}/results").json()["items"]
    assert sorted(row["outcome"]["word"] for row in rows) == ["done"] * 10 + ["refused"] * 2
    assert migrations.versions(engine, fleet) == {2: 10, 1: 2}


@pytest.mark.parametrize("plan", [{}, {"machine": "parcel"}, {"format": 1, "machine": "other"}])
def test_what_is_no_plan_is_refused_with_its_findings(engine, caller, fleet, plan):
    answer = caller("view", "operate").post("/machines/parcel/bulks", {"action": "migrate", "plan": plan, **WHY})
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] == "SB600"


def test_it_takes_the_right_to_operate(engine, caller, fleet):
    body = {"action": "migrate", "plan": migrations.plan(engine).as_dict(), **WHY}
    assert caller("view", "fire", "publish").post("/machines/parcel/bulks", body).status_code == 403
    assert migrations.versions(engine, fleet) == {1: 12}


def test_the_way_back_of_a_stored_plan_makes_the_older_version_current(engine, caller, fleet):
    who, plan = caller("view", "operate", "publish"), migrations.plan(engine)
    stored = who.post("/machines/parcel/plans", {"plan": plan.as_dict()}).json()["id"]
    assert who.post(f"/plans/{stored}/move", WHY).status_code == 201
    assert caller("view", "operate").post(f"/plans/{stored}/back", {**WHY, "make_current": True}).status_code == 403
    assert engine.get_pin("parcel") is None
    assert who.post(f"/plans/{stored}/back", {**WHY, "make_current": True}).status_code == 201
    assert engine.get_pin("parcel").version == 1
