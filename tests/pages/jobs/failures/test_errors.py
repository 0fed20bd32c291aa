"""The error inbox in the browser's eyes: what a page says, and that each form does what it says once."""

import re

import pytest
from django.urls import reverse

from machines.jobs.failures.duties import PacedActions
from machines.models import AuditEntry, FailureAction, FailureGroup
from tests.jobs.failures.conftest import die, follow

__all__ = ["die", "follow"]


@pytest.fixture
def group(die, follow):
    die("a", "b", "c", error="order 17 not found")
    follow()
    return FailureGroup.objects.get().pk


def text_of(answer) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split())


def test_the_list_says_what_fails_how_often_and_where(as_, group):
    answer = as_("viewer").get(reverse("signalbox:errors"))
    text = text_of(answer)
    assert "1 group" in text
    assert "ValueError in work" in text
    assert "order &lt;number&gt; not found" in text
    assert 'aria-label="3 in the last 24 hours' in answer.content.decode()
    assert "style=" not in answer.content.decode().partition("<main")[2]
    for query, said in (
        ("?state=muted", "No groups."),
        ("?query=nothing", "No groups match."),
        ("?assignee=me", "match"),
    ):
        assert said in text_of(as_("viewer", f"v{said[:6]}{query[1:4]}").get(reverse("signalbox:errors") + query))


@pytest.mark.parametrize("query", ["?page=0", "?page=x", "?state=odd", "?page=99999999"])
def test_a_filter_that_is_none_is_not_found(as_, group, query):
    assert as_("viewer").get(reverse("signalbox:errors") + query).status_code == 404


def test_the_page_of_a_group_shows_a_sample_and_links(as_, group):
    answer = as_("viewer").get(reverse("signalbox:error-group", args=[group]))
    text = text_of(answer)
    assert "order 17 not found" in text
    assert "Traceback" in text
    assert reverse("signalbox:instance", args=["errand", "a"]) in answer.content.decode()
    assert "Retry" not in text


def test_a_redrive_by_the_page_moves_the_jobs_once(as_, group, engine):
    boss = as_("supervisor")
    page = reverse("signalbox:error-group", args=[group])
    assert "Retry 3 open jobs" in text_of(boss.get(page))
    form = {"expect": "3", "rate": "20", "reason": "fixed"}
    assert boss.post(f"{page}redrive/", form | {"expect": "2"}).status_code == 409
    assert boss.post(f"{page}redrive/", form | {"rate": "0"}).status_code == 400
    assert boss.post(f"{page}redrive/", form).status_code == 302
    assert boss.post(f"{page}redrive/", form).status_code == 400
    assert "0 of 3" in text_of(boss.get(page))
    PacedActions(engine).look(FailureAction.objects.get().started + 1000)
    assert "3 of 3 3 moved" in text_of(boss.get(page))
    assert engine.stats("errand")["work"].depth["ready"] == 3


def test_a_redrive_is_stopped_by_the_page(as_, group, engine):
    boss, page = as_("supervisor"), reverse("signalbox:error-group", args=[group])
    form = {"expect": "3", "rate": "1", "reason": "fixed"}
    assert boss.post(f"{page}redrive/", form).status_code == 302
    assert boss.post(f"{page}stop/", {"reason": "worse"}).status_code == 302
    assert FailureAction.objects.get().state == "stopped"
    PacedActions(engine).look(FailureAction.objects.get().started + 60_000)
    assert engine.stats("errand")["work"].depth["ready"] == 0


def test_a_skip_takes_a_result(as_, group, engine):
    boss, page = as_("supervisor"), reverse("signalbox:error-group", args=[group])
    form = {"expect": "3", "rate": "20", "reason": "by hand", "result": '{"ok": true}'}
    assert boss.post(f"{page}skip/", form | {"result": "{"}).status_code == 400
    assert boss.post(f"{page}skip/", form).status_code == 302
    PacedActions(engine).look(FailureAction.objects.get().started + 1000)
    assert engine.get("errand", "a").state == "Done"


def test_a_group_is_assigned_muted_resolved_and_opened_again(as_, group):
    boss, page = as_("supervisor", "sue"), reverse("signalbox:error-group", args=[group])
    assert boss.post(f"{page}assign/", {"assignee": "sue"}).status_code == 302
    assert "assigned to sue" in text_of(boss.get(page))
    assert boss.post(f"{page}assign/", {"assignee": "ghost"}).status_code == 400
    for name, state in (("mute", "muted"), ("reopen", "open"), ("resolve", "resolved"), ("reopen", "open")):
        assert boss.post(f"{page}{name}/", {"reason": ""}).status_code == 400
        assert boss.post(f"{page}{name}/", {"reason": "because"}).status_code == 302
        assert FailureGroup.objects.get().state == state


def test_a_refusal_is_in_the_audit_once(as_, group):
    answer = as_("viewer").post(reverse("signalbox:error-mute", args=[group]), {"reason": "no"})
    assert answer.status_code == 403
    assert AuditEntry.objects.filter(action="failure.mute", outcome="refused").count() == 1
