"""Actions on all jobs that a search finds, by the page and as a worker carries them out."""

import time

import pytest

from machines.engine.records import PartialList
from machines.jobs import search
from machines.jobs.failures.duties import PacedActions
from machines.models import AuditEntry, FailureAction
from tests.engine.builders import door, errand, publish
from tests.pages.reading import read

ACT = "/queues/door/work/search/?place=delayed&group=acme"
FORM = {"action": "move", "expect": "3", "rate": "20", "reason": "they paid"}


@pytest.fixture
def yard(engine, db):
    publish(engine, door())
    for group, count in (("acme", 3), ("beta", 2)):
        engine.enqueue_many(
            {"machine": "door", "src": "work", "delay": 3_600_000, "group": group} for _ in range(count)
        )
    return engine


def run(engine):
    """As a worker does, for long enough."""
    now = int(time.time() * 1000)
    return [PacedActions(engine).look(now + second * 1000) for second in range(1, 4)]


def depth(engine, machine="door"):
    found = engine.stats(machine)["work"].depth
    return found["ready"], found["delayed"], found["dead"]


def test_the_page_previews_what_it_finds_and_a_worker_does_it(as_, yard):
    client = as_("supervisor")
    page = read(client.get(ACT))
    assert page.one("h1").text == "3 delayed jobs found"
    assert len(page.one("table").all("tr")) == 4
    assert client.post(ACT, FORM).status_code == 302
    assert depth(yard) == (0, 5, 0), "a worker does it"
    run(yard)
    assert depth(yard) == (3, 2, 0)
    assert {job.group for job in yard.take("door", "work", "w", count=5)} == {"acme"}
    action = FailureAction.objects.get()
    assert (action.state, action.done, action.passed, action.error) == ("done", 3, 0, "")
    progress = read(client.get(ACT)).one("div", data_region="progress")
    assert "{%" not in progress.one("th").text
    assert "3 of 3" in progress.text
    entry = AuditEntry.objects.get(action="job.move")
    assert (entry.queue, entry.reason, entry.detail["count"], entry.outcome) == ("work", "they paid", 3, "done")


def test_a_job_that_begins_as_it_is_withdrawn_goes_on(as_, yard, monkeypatch):
    as_("supervisor").post(ACT, FORM | {"action": "withdraw"})
    read_job, begun = type(yard).job, []

    def begin(engine, machine, id):
        job = read_job(engine, machine, id)
        if not begun:
            engine.move_now("door", "work", id, actor="x", reason="now")
            begun.extend(engine.take("door", "work", "w"))
        return job

    monkeypatch.setattr(type(yard), "job", begin)
    run(yard)
    action = FailureAction.objects.get()
    assert (action.done, action.passed, action.error, yard.renew(begun, 1000)) == (2, 1, "", [""])


@pytest.mark.parametrize("action", ["withdraw", "delay"])
def test_jobs_that_went_to_another_queue_are_passed_over(as_, two_queues, action):
    as_("supervisor").post(ACT, FORM | {"action": action, "delay": "2h"})
    for job in two_queues.jobs("door", "work", place="delayed"):
        two_queues.reschedule("door", job, queue="spare", actor="x", reason="no")
    before = [(job.id, job.due) for job in two_queues.jobs("door", "spare", place="delayed")]
    run(two_queues)
    assert [(job.id, job.due) for job in two_queues.jobs("door", "spare", place="delayed")] == before
    assert FailureAction.objects.get().passed == 3


def test_another_number_than_was_seen_is_refused(as_, yard):
    answer = as_("supervisor").post(ACT, FORM | {"expect": "2"})
    assert (answer.status_code, FailureAction.objects.count()) == (409, 0)


def test_a_job_that_moved_meanwhile_is_passed_over(as_, yard):
    client = as_("supervisor")
    client.post(ACT, FORM | {"action": "withdraw"})
    first, second = [job for job in yard.jobs("door", "work", place="delayed") if job.group == "acme"][:2]
    yard.move_now("door", "work", first, actor="x", reason="now")
    yard.withdraw("door", second, actor="x", reason="never")
    run(yard)
    action = FailureAction.objects.get()
    assert (action.done, action.passed, action.error, depth(yard)) == (1, 2, "", (1, 2, 0))
    progress = read(client.get(ACT)).one("div", data_region="progress")
    assert progress.one("th").text.startswith("Withdraw")
    assert "1 withdrawn, 2 passed over" in progress.text


@pytest.fixture
def short(monkeypatch):
    """A search reads two jobs at once."""
    monkeypatch.setattr(search, "PAGE", 2)
    monkeypatch.setattr(search, "BUDGET", 2)


def test_jobs_that_the_search_finds_further_on_are_acted_on(as_, yard, short):
    client = as_("supervisor")
    page = read(client.get("/queues/door/work/?place=delayed&group=beta&after=3"))
    (address,) = [link["href"] for link in page.all("a") if link.text.startswith("Act on all")]
    page = read(client.get(address))
    assert page.one("h1").text == "2 delayed jobs found"
    form = next(form for form in page.all("form") if "after=3" in form["action"])
    assert client.post(form["action"], FORM | {"action": "withdraw", "expect": "2"}).status_code == 302
    run(yard)
    assert depth(yard) == (0, 3, 0)


def test_the_preview_leads_further_where_it_found_none(as_, yard, short):
    client = as_("supervisor")
    address = "/queues/door/work/search/?place=delayed&group=beta"
    while (page := read(client.get(address))).one("h1").text == "0 delayed jobs found":
        address = page.one("a", rel="next")["href"]
    assert "after=" in address


def test_the_api_acts_from_a_cursor_on(as_, yard, short):
    client, queue = as_("supervisor"), "/api/v1/machines/door/queues/work"
    body = {"place": "delayed", "action": "withdraw", "group": "beta", "reason": "a test"}
    answer = client.post(f"{queue}/act", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "SB400")
    assert answer.json()["detail"] == "the search finds no such jobs"
    cursor = client.get(f"{queue}/jobs?place=delayed&group=beta").json()["next"]
    answer = client.post(f"{queue}/act", body | {"cursor": cursor}, content_type="application/json")
    assert (answer.status_code, answer.json()["total"]) == (201, 1)
    answer = client.post(f"{queue}/act", body | {"cursor": "x"}, content_type="application/json")
    assert answer.status_code == 400


def test_the_preview_says_that_a_partition_is_away(as_, yard, monkeypatch):
    root = yard.keys.partition("door").root
    client = as_("supervisor")
    assert "hidden" in read(client.get(ACT)).one("div", data_missing="").attributes
    monkeypatch.setattr(type(yard), "jobs", lambda *_, **__: PartialList(missing=[root]))
    assert "hidden" not in read(client.get(ACT)).one("div", data_missing="").attributes


def test_a_queue_that_is_none_is_not_found(as_, yard):
    body = {"place": "delayed", "action": "withdraw", "reason": "a test"}
    answer = as_("supervisor").post("/api/v1/machines/door/queues/nope/act", body, content_type="application/json")
    assert answer.status_code == 404


def test_dead_jobs_are_retried(as_, engine, db):
    publish(engine, errand(), "a", "b")
    for id in "ab":
        engine.fire("errand", id, "start")
    for job in engine.take("errand", "work", "w", count=2):
        engine.suspend("errand", job.instance, actor="x", reason="so that it stays")
        engine.fail(job, f"no {job.instance}", kind="Broken", retry=False)
    address = "/queues/errand/work/search/?place=dead&error=no+a"
    sent = FORM | {"action": "redrive", "expect": "1"}
    assert as_("supervisor").post(address, sent).status_code == 302
    run(engine)
    assert depth(engine, "errand") == (1, 0, 1)


def test_a_viewer_may_not_and_what_does_not_fit_is_no_page(as_, yard):
    assert as_("viewer").get(ACT).status_code == 403
    client = as_("supervisor")
    assert client.post(ACT, FORM | {"action": "redrive"}).status_code == 404
    assert client.get("/queues/door/work/search/?place=leased").status_code == 404
    assert client.post(ACT, FORM | {"reason": ""}).status_code == 400


def test_the_api_starts_the_same(as_, yard):
    body = {"place": "delayed", "action": "withdraw", "group": "acme", "reason": "a test", "expect": 3}
    address = "/api/v1/machines/door/queues/work/act"
    answer = as_("supervisor").post(address, body, content_type="application/json")
    assert (answer.status_code, answer.json()["total"]) == (201, 3)
    run(yard)
    assert depth(yard) == (0, 2, 0)


@pytest.fixture
def two_queues(yard):
    yard.enqueue("door", "work", queue="spare")
    return yard


def test_found_jobs_are_delayed_and_moved_to_another_queue(as_, two_queues):
    client, ready = as_("supervisor"), ACT.replace("delayed", "ready")
    client.post(ACT, FORM)
    run(two_queues)
    assert len(read(client.get(ready)).one("select", name="to").all("option")) == 1
    assert client.post(ready, FORM | {"action": "delay", "delay": "2h"}).status_code == 302
    assert FailureAction.objects.get(action="delay").terms["delay"] == 7_200_000
    before = two_queues.read_clock()
    run(two_queues)
    assert depth(two_queues) == (0, 5, 0)
    due = [job.due for job in two_queues.jobs("door", "work", place="delayed") if job.group == "acme"]
    assert min(due) >= before + 7_200_000, "from when each was delayed"
    assert "Delay: 2 h" in read(client.get(ready)).one("div", data_region="progress").text
    assert client.post(ACT, FORM | {"action": "reroute", "to": "spare"}).status_code == 302
    run(two_queues)
    assert depth(two_queues) == (0, 2, 0)
    assert {job.group for job in two_queues.jobs("door", "spare", place="delayed")} == {"acme"}
    progress = read(client.get(ACT)).one("div", data_region="progress").text
    assert "Move to another queue: spare" in progress
    details = {row.action: row.detail for row in AuditEntry.objects.filter(action__in=("job.delay", "job.reroute"))}
    assert (details["job.delay"]["delay"], details["job.reroute"]["to"]) == (7_200_000, "spare")
    terms = [one["terms"] for one in client.get("/api/v1/errors/retries").json()["items"]]
    door = {"machine": "door", "queue": "work"}
    assert terms == [
        door | {"place": "delayed", "to": "spare", "delay": 0},
        door | {"place": "ready", "to": "", "delay": 7_200_000},
        door | {"place": "delayed", "to": "", "delay": 0},
    ]


def test_a_delay_brings_no_job_forward(as_, yard):
    due = [job.due for job in yard.jobs("door", "work", place="delayed")]
    as_("supervisor").post(ACT, FORM | {"action": "delay", "delay": "2s"})
    run(yard)
    assert [job.due for job in yard.jobs("door", "work", place="delayed")] == due
    assert FailureAction.objects.get().passed == 3


def test_a_pass_that_is_killed_moves_no_job_twice(as_, two_queues, monkeypatch):
    as_("supervisor").post(ACT, FORM | {"action": "reroute", "to": "spare"})
    note = PacedActions._note
    monkeypatch.setattr(PacedActions, "_note", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run(two_queues)
    monkeypatch.setattr(PacedActions, "_note", staticmethod(note))
    run(two_queues)
    action = FailureAction.objects.get()
    assert (action.state, action.done + action.passed, depth(two_queues)) == ("done", 3, (0, 2, 0))
    assert len(two_queues.jobs("door", "spare", place="delayed")) == 3


def test_a_target_that_does_not_fit_is_refused(as_, two_queues):
    client = as_("supervisor")
    for sent in ({"action": "delay", "delay": "soon"}, {"action": "reroute", "to": "nowhere"}):
        assert client.post(ACT, FORM | sent).status_code == 400
    body = {"place": "delayed", "reason": "a test"}
    for more in ({"action": "delay"}, {"action": "reroute", "to": "work"}, {"action": "reroute", "to": "nowhere"}):
        answer = client.post("/api/v1/machines/door/queues/work/act", body | more, content_type="application/json")
        assert answer.status_code == 400
    assert not FailureAction.objects.exists()
    answer = client.post(
        "/api/v1/machines/door/queues/work/act",
        body | {"action": "delay", "delay": 5000},
        content_type="application/json",
    )
    assert (answer.status_code, answer.json()["action"]) == (201, "delay")
