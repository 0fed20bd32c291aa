"""Workers: who works, what they hold, and who fell silent."""

from __future__ import annotations

import time

from machines.engine import WorkerRow

from .reading import read


def beat(engine, id: str, seen_ago: float = 0) -> None:
    now = int(time.time() * 1000)
    engine.beat(WorkerRow(id, "box", 17, ["new_device/todo"], 4, now - 7_200_000, now - int(seen_ago * 1000), "0.1.0"))


def test_each_worker_has_a_row(as_, engine):
    beat(engine, "box:17:aa")
    row = read(as_("viewer").get("/workers/")).one("tr", data_worker="box:17:aa")
    assert "new_device/todo" in row.text
    assert row.one("td", data_in_hand="").text == "4"
    assert "2 h" in row.text
    assert "silent" not in row.text


def test_a_worker_that_gave_no_sign_for_a_while_is_said_to_be_silent(as_, engine):
    beat(engine, "box:17:aa", seen_ago=25)
    assert "▲ silent" in read(as_("viewer").get("/workers/")).one("tr", data_worker="box:17:aa").text


def test_without_workers_the_page_says_how_to_start_one(as_, prefix):
    assert "python manage.py worker" in read(as_("viewer").get("/workers/")).text
