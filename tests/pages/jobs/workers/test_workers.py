"""Workers: who works, what they hold, who fell silent, and the orders they are given."""

from __future__ import annotations

import json
import time

import pytest

from machines.duties import DUTIES
from machines.engine import WorkerInfo
from machines.patterns import Locks
from tests.pages.reading import fields, read


def beat(engine, id: str = "box:17:aa", **given) -> None:
    now = int(time.time() * 1000)
    engine.beat(
        WorkerInfo(
            id, "box", 17, ["new_device/todo"], in_hand=4, started=now - 7_200_000, seen=now, version="0.1.0", **given
        )
    )


def card(client, id: str = "box:17:aa"):
    return read(client.get("/workers/")).one("section", data_worker=id)


def test_each_worker_has_a_card(as_, engine):
    beat(engine, concurrency=8, memory=84_200_000, done=12_404, failed=3)
    found = card(as_("viewer"))
    assert "new_device/todo" in found.text
    assert found.one("b", data_in_hand="").text == "4"
    for text in (
        "box · process 17 · 0.1.0",
        "in flight 4, 8 at a time",
        "done 12,404",
        "failed 3",
        "memory 84 MB",
        "2 h",
    ):
        assert text in found.text
    assert found.one("span", data_worker_status="").text == "working"


def test_a_row_of_an_older_release_is_shown_without_what_it_does_not_say(as_, engine):
    beat(engine)
    key = engine.keys.worker("box:17:aa")
    for name in ("status", "memory", "concurrency", "holding", "done", "failed"):
        engine.client.hdel(key, name)
    assert "in flight 4done 0" in card(as_("viewer")).text


def test_a_worker_that_gave_no_sign_for_a_while_is_said_to_be_silent(as_, engine):
    beat(engine)
    seconds, _ = engine.client.time()
    engine.client.hset(engine.keys.worker("box:17:aa"), "seen", (seconds - 12) * 1000)
    assert card(as_("viewer")).one("span", data_worker_status="").text == "silent"


def test_a_handler_that_is_missing_is_said(as_, engine):
    beat(engine, lacking={"new_device/todo": ["provision"]})
    assert card(as_("viewer")).one("p", class_="remark").text == "no handler here for provision"


def test_handlers_of_machines_that_are_not_visible_are_not_named():
    row = WorkerInfo(
        "w", "box", 17, ["new_device/todo", "vault/open"], in_hand=0, started=0, seen=0, note="open_vault, count_gold",
        lacking={"new_device/todo": ["provision"], "vault/open": ["open_vault"]},
        hanging={"vault/open": ["count_gold"]},
    )  # fmt: skip
    seen = row.only({"new_device"})
    assert (seen.queues, seen.note) == (["new_device/todo"], "no handler here for provision")
    assert not any(name in str(seen.as_dict()) for name in ("vault", "count_gold"))
    assert row.only({"vault"}).note == "no handler here for open_vault"


def test_the_running_jobs_lead_to_their_instances(as_, engine, devices):
    now = int(time.time() * 1000)
    held = {"id": "0-7", "machine": devices, "queue": "todo", "src": "provision", "instance": "a/b", "attempt": 2}
    beat(engine, holding=[held | {"since": now - 65_000}])
    (row,) = card(as_("viewer")).one("tbody").all("tr")
    assert row.text.startswith("0-7 provision")
    assert row.one("td", class_="of").one("a")["href"] == "/machines/new_device/instances/a~2Fb/"
    assert row.all("td")[-1].text == "1 min"
    assert "and 3 more" in card(as_("operator")).text


@pytest.mark.parametrize(
    ("status", "offered"),
    [("working", ["quiet", "stop"]), ("quiet", ["work", "stop"]), ("exhausted", ["stop"]), ("stopping", [])],
)
def test_a_worker_is_offered_the_orders_that_mean_something_to_it(as_, engine, status, offered):
    beat(engine, status=status)
    buttons = card(as_("supervisor")).all("button", name="order")
    assert [button["value"] for button in buttons if "hidden" not in button.attributes] == offered


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_operate_sees_no_action(as_, engine, role):
    beat(engine)
    assert card(as_(role)).all("form") == []


@pytest.mark.parametrize("order", ["quiet", "work", "stop"])
def test_an_order_is_left_for_the_worker(as_, engine, order):
    beat(engine, id="box 1/2:~.")
    client = as_("supervisor", "sue")
    form = card(client, "box 1/2:~.").one("form")
    answer = client.post(form["action"], fields(form) | {"order": order, "reason": "a new release"})
    assert answer.url == "/workers/"
    left = json.loads(engine.client.get(engine.keys.order("box 1/2:~.")))
    assert (left["order"], left["actor"], left["reason"]) == (order, "sue", "a new release")
    assert "Takes effect with its next heartbeat." in read(client.get("/workers/")).text


@pytest.mark.parametrize(
    ("form", "word"),
    [({"order": "quiet", "reason": " "}, "Enter a reason"), ({"order": "dance", "reason": "r"}, "dance is not one of")],
)
def test_an_order_that_makes_no_sense_is_a_400_in_its_form(as_, engine, form, word):
    beat(engine)
    beat(engine, id="another")
    answer = as_("supervisor").post("/workers/box:17:aa/", form)
    page = read(answer)
    assert answer.status_code == 400
    (open_one,) = [details for details in page.all("details") if "open" in details.attributes]
    assert word in open_one.text
    assert not engine.client.exists(engine.keys.order("box:17:aa"))


@pytest.mark.parametrize("form", [{}, {"order": "stop", "reason": "r"}])
def test_a_worker_that_is_gone_is_a_404(as_, engine, form):
    assert as_("supervisor").post("/workers/box:17:aa/", form).status_code == 404


def test_without_workers_the_page_says_how_to_start_one(as_, prefix):
    assert "python manage.py worker" in read(as_("viewer").get("/workers/")).text


def test_the_holder_of_a_duty_is_shown_with_worker_fence_and_end(as_, engine):
    beat(engine)
    locks = Locks(engine.client, engine.keys.prefix)
    fence = locks.lock("house.sampler", ttl=15, owner="box:17:aa").acquire().fence
    locks.lock("house.webhook-prune", ttl=15, owner="gone:1:bb").acquire()
    rows = {
        row["data-duty"]: row for row in read(as_("viewer").get("/workers/")).all("tr") if "data-duty" in row.attributes
    }
    assert set(rows) == set(DUTIES)
    for text in ("records statistics", "box:17:aa", str(fence), "in 1"):
        assert text in rows["sampler"].text
    assert "silent" not in rows["sampler"].text
    assert "gone:1:bb silent" in rows["webhook prune"].text
    assert "none" in rows["mender"].text


def test_the_handlers_that_hang_are_named_by_queue(as_, engine):
    beat(engine, status="exhausted", hanging={"new_device/todo": ["provision", "notify"]})
    assert card(as_("viewer")).one("p", class_="remark").text == "hanging on new_device/todo: provision, notify"
