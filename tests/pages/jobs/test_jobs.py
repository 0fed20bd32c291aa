"""One job: all that is known of it, and what operators do to it."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from machines.engine import Engine, EngineUnavailable, LookupFailed
from machines.models import AuditEntry
from tests.pages.reading import fields, read

JOB = "/jobs/new_device/0-1/"
HOSTILE = "</pre><script>alert(1)</script>"


@pytest.fixture
def job(engine, devices):
    """0-1, of the instance d0, ready on ``start``."""
    engine.create(devices, "d0")
    return engine.job(devices, "0-1")


@pytest.fixture
def held(engine, devices, job):
    (taken,) = engine.take(devices, "start", "box:17:aa")
    return taken


def bury(engine, held, trace: str = "Traceback: line 1") -> None:
    """Let the job die while its instance is suspended: the instance does not deal with it yet."""
    engine.suspend(held.machine, held.instance, actor="sue", reason="the provider is down")
    engine.fail(held, "no such device", kind="LookupError", trace=trace, retry=False)


def lines(page) -> list[str]:
    return [row.one("th").text for row in page.one("table", class_="timeline").one("tbody").all("tr")]


def test_a_ready_job_with_its_terms_and_its_instance(as_, job):
    page = read(as_("viewer").get(JOB))
    assert page.one("h1").text == "Job 0-1"
    head = page.one("div", data_region="head").text
    assert "ready" in head
    assert "handler do_start" in head
    assert "attempt 0 of 3" in head
    assert page.one("div", data_region="head").one("a")["href"] == "/machines/new_device/instances/d0/"
    assert lines(page) == ["enqueued"]
    assert "No payload." in page.text
    assert "new_device:0-1" in page.text


def test_the_payload_is_shown_whole_and_harmless(as_, engine, devices):
    put = engine.enqueue(
        devices, "do_start", {"to": HOSTILE, "lines": [{"n": 2}]}, queue="start", priority=9, unique="k"
    )
    page = read(as_("viewer").get(f"/jobs/new_device/{put.id}/"))
    (shown,) = page.all("pre", class_="json")
    assert shown.text == f'{{ "to": "{HOSTILE}", "lines": [ {{ "n": 2 }} ] }}'
    assert "no waiting instance" in page.text
    assert not page.all("section", data_region="data")


def test_a_job_of_a_batch_names_it_with_its_figures(as_, engine, devices):
    engine.batch([{"machine": devices, "src": "do_start", "queue": "start"}] * 3, id="import-7")
    done, shown, _ = engine.take(devices, "start", "box", count=3)
    engine.complete(done)
    viewer, page = as_("viewer"), f"/jobs/new_device/{shown.id}/"
    assert "import-7: 2 open, 1 done, 0 failed of 3" in read(viewer.get(page)).text
    with patch.object(Engine, "get_batch_of", side_effect=EngineUnavailable("away")):
        away = read(viewer.get(page)).text
    engine.client.delete(engine.keys.partition(devices).batch("import-7"))
    for without in (away, read(viewer.get(page)).text):
        assert "import-7" in without
        assert "import-7:" not in without


def test_a_running_job_with_its_worker_its_lease_and_its_progress(as_, engine, held):
    engine.progress(held, 3, 12, "packing")
    page = read(as_("viewer").get(JOB))
    head = page.one("div", data_region="head")
    assert "worker box:17:aa" in head.text
    assert "3 of 12 packing" in head.text
    assert lines(page) == ["enqueued", "attempt 1 started", "lease expires unless renewed"]


def test_progress_without_a_total_has_no_bar(as_, engine, held):
    engine.progress(held, 1204)
    head = read(as_("viewer").get(JOB)).one("div", data_region="head")
    assert "1,204 done" in head.text
    assert "hidden" in head.one("progress").attributes


def test_a_dead_job_with_its_traceback_and_every_attempt(as_, engine, held):
    engine.fail(held, "slow", kind="TimeoutError", delay=0)
    engine.sweep("new_device")
    (again,) = engine.take("new_device", "start", "box:18:bb")
    bury(engine, again, trace=f"Traceback: {HOSTILE}")
    page = read(as_("viewer").get(JOB))
    error = page.one("section", data_region="error")
    assert "LookupError: no such device" in error.text
    assert error.one("pre", class_="trace").text == f"Traceback: {HOSTILE}"
    assert lines(page) == ["enqueued", "attempt 1 failed", "attempt 2 failed", "dead"]
    timeline = page.one("table", class_="timeline").text
    assert "TimeoutError: slow" in timeline
    assert "box:18:bb" in timeline


def test_a_delayed_job_says_when_it_is_due(as_, engine, held):
    engine.fail(held, "slow", kind="TimeoutError", delay=3_600_000)
    page = read(as_("viewer").get(JOB))
    assert lines(page)[-1] == "attempt 2 starts"
    assert "due in 59 min" in page.one("div", data_region="head").text


def test_a_finished_job_says_so_and_leads_to_its_history(as_, engine, held):
    engine.complete(held)
    answer = as_("viewer").get(f"{JOB}?of=d0")
    page = read(answer)
    assert answer.status_code == 410
    assert "Job 0-1 is finished or withdrawn" in page.text
    assert "/machines/new_device/instances/d0/#history" in [link["href"] for link in page.all("a")]


def test_a_job_that_never_was_is_a_404_that_says_so(as_, job):
    answer = as_("viewer").get("/jobs/new_device/0-99/?of=d0")
    assert answer.status_code == 404
    assert "Job 0-99 does not exist" in read(answer).text


def test_the_list_and_the_instance_lead_to_it(as_, job):
    client = as_("viewer")
    for address in ("/queues/new_device/start/", "/machines/new_device/instances/d0/"):
        assert f"{JOB}?of=d0" in [link["href"] for link in read(client.get(address)).all("a")]


def test_the_instance_shows_how_far_its_job_is(as_, engine, held):
    engine.progress(held, 3, 12, "packing")
    panel = read(as_("viewer").get("/machines/new_device/instances/d0/")).one("section", data_region="jobs")
    assert "3 of 12 packing" in panel.text


# What operators do


def act(client, name: str, given: dict[str, str]):
    form = read(client.get(JOB)).one("form", action=f"{JOB}{name}/")
    return client.post(form["action"], fields(form) | given)


def test_who_may_not_operate_sees_no_actions(as_, job):
    page = read(as_("operator").get(JOB))
    assert page.one("main").all("form", method="post") == []


def test_redriving_a_dead_job(as_, engine, held):
    bury(engine, held)
    client = as_("supervisor", "sue")
    answer = act(client, "redrive", {"reason": "the device is there now"})
    assert answer.url == f"{JOB}?of=d0"
    assert "Job 0-1 retried" in read(client.get(answer.url)).text
    assert engine.job("new_device", "0-1").place == "ready"
    (entry,) = AuditEntry.objects.all()
    assert (entry.actor, entry.action, entry.target, entry.instance, entry.queue, entry.reason, entry.outcome) == (
        *("sue", "job.redrive", "0-1", "d0", "start"),
        *("the device is there now", "done"),
    )


def test_running_a_delayed_job_now(as_, engine, held):
    engine.fail(held, "slow", delay=3_600_000)
    assert act(as_("supervisor"), "move", {"reason": "no need to wait"}).status_code == 302
    assert engine.job("new_device", "0-1").place == "ready"


def test_withdrawing_leads_to_the_queue(as_, engine, held):
    client = as_("supervisor")
    answer = act(client, "withdraw", {"reason": "the customer left"})
    assert answer.url == "/queues/new_device/start/"
    assert "Job 0-1 withdrawn" in read(client.get(answer.url)).text
    with pytest.raises(LookupFailed):
        engine.job("new_device", "0-1")
    assert AuditEntry.objects.get().action == "job.withdraw"


def test_a_row_of_the_list_acts_and_comes_back_to_its_page(as_, engine, held):
    bury(engine, held)
    client = as_("supervisor")
    sheet = read(client.get("/queues/new_device/start/?place=dead")).one(id="row-0-1")
    assert [button.text for button in sheet.all("button") if "formaction" in button.attributes] == [
        "Retry",
        "Withdraw",
    ]
    form = sheet.one("form")
    answer = client.post(f"{JOB}redrive/", fields(form) | {"reason": "r"})
    assert answer.url == "/queues/new_device/start/?place=dead"


def test_a_job_that_moved_meanwhile_is_not_moved_again(as_, engine, held):
    answer = as_("supervisor").post(f"{JOB}redrive/", {"reason": "r"})
    assert answer.status_code == 409
    assert "It is not dead any more" in read(answer).one(id="turned").text
    assert engine.job("new_device", "0-1").place == "leased"
    assert AuditEntry.objects.get().outcome == "refused"


def test_a_job_that_ended_meanwhile_is_gone(as_, engine, held):
    engine.complete(held)
    client = as_("supervisor")
    answers = [client.post(f"{JOB}{name}/", {"reason": "r"}) for name in ("redrive", "move", "withdraw")]
    assert [answer.status_code for answer in answers] == [410, 410, 410]


def test_nothing_happens_without_a_reason(as_, engine, job):
    client = as_("supervisor")
    for name in ("redrive", "move", "withdraw"):
        answer = client.post(f"{JOB}{name}/", {"reason": " "})
        assert answer.status_code == 400
        assert "Enter a reason. It is recorded in the audit." in read(answer).one(id="turned").text
    assert engine.job("new_device", "0-1").place == "ready"
    assert not AuditEntry.objects.exists()


# Handled jobs: dead, and the instance moved on


def handle(engine, held) -> None:
    engine.fail(held, "no such device", kind="LookupError", retry=False)


def test_a_handled_job_says_where_its_instance_is(as_, engine, held):
    handle(engine, held)
    page = read(as_("supervisor").get(JOB))
    head = page.one("div", data_region="head").text
    assert "moved on" in head
    assert f"instance now in {engine.get('new_device', 'd0').state}" in head
    assert lines(page) == ["enqueued", "attempt 1 failed", "dead", "moved on"]
    assert "needs attention" not in page.text


def test_a_retry_of_a_handled_job_asks(as_, engine, held):
    handle(engine, held)
    client = as_("supervisor")
    answer = act(client, "redrive", {"reason": "once more"})
    assert (answer.status_code, engine.job("new_device", "0-1").place) == (409, "handled")
    turned = read(answer).one(id="turned")
    assert "SB443" in turned.text
    assert turned.one("input", type="checkbox")["name"] == "confirm"
    answer = act(client, "redrive", {"reason": "once more", "confirm": "on"})
    assert (answer.status_code, engine.job("new_device", "0-1").place) == (302, "ready")


def test_a_later_instance_of_the_id_shows_none_of_its_data(as_, engine, held):
    handle(engine, held)
    engine.delete("new_device", "d0", actor="sue", reason="a mistake")
    client = as_("viewer")
    page = read(client.get(JOB))
    assert "instance now deleted" in page.one("div", data_region="head").text
    engine.create("new_device", "d0", now=held.created + 10_000_000)
    page = read(client.get(JOB))
    assert "the id belongs to a later instance" in page.one("div", data_region="head").text
    assert not page.one("section", data_region="data").all("pre")
