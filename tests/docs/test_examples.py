"""What the pages tell a reader to type works as they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import AnonymousUser, Group

from machines.engine import errors
from machines.engine.definitions import check
from machines.worker import Job

ROOT = Path(__file__).parents[2]


def block(page: str, language: str, beginning: str) -> str:
    """The fenced block of a page that contains ``beginning``."""
    for found in re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
        if beginning in found:
            return found
    raise AssertionError(f"{page} has no {language} block with {beginning!r}")


@pytest.mark.redis
def test_the_readme_example_ends_in_the_refusal_it_promises(engine):
    code = block("README.md", "python", "engine.publish")
    body = re.sub(r"^engine = .*$", "", code, flags=re.MULTILINE)
    with pytest.raises(errors.Refused, match=re.escape("knocks >= 2 is false: knocks = 0")):
        exec(compile(body, "README.md", "exec"), {"engine": engine})


@pytest.mark.redis
def test_the_tutorial_machine_publishes_and_moves_as_told(engine):
    definition = json.loads(block("docs/tutorial.md", "json", '"id": "parcel"'))
    assert [f for f in check(definition) if f.is_error] == []
    engine.publish(definition)
    code = re.sub(r"^engine = .*$", "", block("docs/tutorial.md", "python", "P-1"), flags=re.MULTILINE)
    printed: list[str] = []
    exec(compile(code, "tutorial.md", "exec"), {"engine": engine, "print": lambda *a: printed.append(str(a[0]))})
    assert printed[0] == "event 'send' is refused in state Moving: no transition accepts it"
    assert "Delivered" in printed[1]
    assert printed[2] == "['send', '(create)']"


@pytest.mark.redis
def test_the_tutorial_booking_is_done_by_its_handler_and_fails_as_told(engine):
    engine.publish(json.loads(block("docs/tutorial.md", "json", '"id": "booking"')))
    names: dict = {"handler": lambda _name: lambda function: function}
    code = re.sub(r"^from .*$", "", block("docs/tutorial.md", "python", "book_courier"), flags=re.MULTILINE)
    exec(compile(code, "tutorial.md", "exec"), names)
    engine.create("booking", "B-1", {"weight": 4})
    (job,) = engine.take("booking", "book_courier", "test")
    booked = engine.complete(job, names["book_courier"](job))
    assert (booked.state, booked.data["courier"]) == ("Booked", "bike")
    engine.create("booking", "B-2", {"weight": 40})
    (job,) = engine.take("booking", "book_courier", "test")
    with pytest.raises(ValueError, match="too heavy") as caught:
        names["book_courier"](job)
    engine.fail(job, str(caught.value), retry=False)
    stuck = engine.get("booking", "B-2")
    assert (stuck.state, stuck.data["problem"]) == ("Stuck", "too heavy for any courier")


@pytest.mark.redis
def test_the_tutorial_booking_whose_worker_is_killed_comes_back_and_is_booked_once(engine, monkeypatch):
    monkeypatch.setattr(Job, "wait", lambda self, seconds: None)
    engine.publish(json.loads(block("docs/tutorial.md", "json", '"id": "booking"')))
    names: dict = {"handler": lambda _name: lambda function: function}
    exec(compile(block("docs/tutorial.md", "python", "job.progress"), "tutorial.md", "exec"), names)
    engine.create("booking", "B-3", {"weight": 4})
    (killed,) = engine.take("booking", "book_courier", "killed")
    assert killed.lease == 30_000
    engine.sweep("booking", now=killed.lease_until)
    (again,) = engine.take("booking", "book_courier", "yours")
    assert (again.attempt, again.attempts, again.key) == (2, 3, killed.key)
    result = names["book_courier"](Job(again))
    assert engine.complete(again, result).state == "Booked"
    with pytest.raises(errors.LeaseLost):
        engine.complete(killed, result)


@pytest.mark.redis
@pytest.mark.django_db(transaction=True)
def test_the_tutorial_view_sends_its_job_and_its_event_when_it_commits(engine, rf):
    engine.publish(json.loads(block("docs/tutorial.md", "json", '"id": "booking"')))
    engine.create("booking", "B-2", {"weight": 40})
    engine.fail(engine.take("booking", "book_courier", "test")[0], "too heavy", retry=False)
    names: dict = {"Note": Group, "redirect": lambda *to: to}
    code = block("docs/tutorial.md", "python", "send_note").replace("booking=number, text=", "name=")
    exec(compile(code, "tutorial.md", "exec"), names)
    request = rf.post("/", {"text": "half of it, then"})
    request.user = AnonymousUser()
    _, note = names["ask_again"](request, "B-2")
    (job,) = engine.jobs("booking", "send_note")
    assert (job.input, job.attempts, Group.objects.latest("pk").name) == ({"note": note}, 5, "half of it, then")
    assert engine.get("booking", "B-2").state == "Asking"


ADDING = "docs/add-to-your-project.md"


@pytest.mark.redis
def test_the_engine_in_an_application_moves_an_order(engine):
    code = re.sub(r"^engine = .*$", "", block(ADDING, "python", "engine.publish"), flags=re.MULTILINE)
    exec(compile(code, ADDING, "exec"), {"engine": engine})
    assert engine.get("order", "o-1").state == "paid"


def test_samples_with_tasks_of_other_libraries_import_the_task():
    page = (ROOT / "docs/workers.md").read_text(encoding="utf-8")
    samples = re.findall(r"((?:    .+\n)+)", page.partition("## Tasks of Celery and Dramatiq")[2])[:2]
    for sample, module in zip(samples, ("tasks", "actors"), strict=True):
        assert re.search(rf'from shop\.{module} import charge\n.*add_handler\("charge", charge', sample), sample


def test_the_settings_of_a_project_are_those_of_the_tutorial_which_is_tried_with_the_wheel(monkeypatch):
    monkeypatch.setenv("REDIS_URL", "redis://localhost:6379/0")
    found = []
    for page in (ADDING, "docs/tutorial.md"):
        names: dict = {"INSTALLED_APPS": ["parcels"] if page == ADDING else []}
        exec(compile(block(page, "python", "INSTALLED_APPS +="), page, "exec"), names)
        found.append({name: names[name] for name in names if name.isupper()})
        found[-1]["INSTALLED_APPS"] = sorted(found[-1]["INSTALLED_APPS"])
    assert found[0] == found[1]
    assert 'path("ops/", include("dashboard.urls"))' in block("docs/tutorial.md", "python", "urlpatterns")
    fresh: dict = {"urlpatterns": []}  # startproject's urls.py imports path alone
    exec(compile(block(ADDING, "python", "urlpatterns"), ADDING, "exec"), fresh)
    assert str(fresh["urlpatterns"][0].pattern) == "ops/"


def test_the_live_view_is_added_as_the_shop_of_the_tests_does_it():
    shop = (ROOT / "tests/hosted/project/shop/asgi.py").read_text(encoding="utf-8")
    lines = block(ADDING, "python", "add_live_view").split("\n")
    assert [line for line in lines if line and line not in re.sub(r"  #.*", "", shop)] == []
