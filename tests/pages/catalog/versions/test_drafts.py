"""A draft on its page: its findings, what it changes, a conflict with what to do, publishing, discarding."""

from __future__ import annotations

import json

import pytest

from machines.models import Draft
from tests.pages.reading import Element, fields, read

from .test_diff import FIRST, SECOND

PAGE = "/machines/lamp/versions/"


@pytest.fixture
def lamps(engine, db) -> str:
    return engine.publish(FIRST).name


@pytest.fixture
def draft(lamps) -> Draft:
    return Draft.objects.create(machine="lamp", base=1, text=json.dumps(SECOND), author="sue", note="lamps are dimmed")


def address(draft: Draft, more: str = "") -> str:
    return f"{PAGE}drafts/{draft.pk}/{more}"


def conflicts(page: Element) -> list[Element]:
    return [notice for notice in page.all("div", class_="warn") if "Conflict" in notice.text]


def test_a_draft_shows_findings_and_what_it_changes(as_, draft):
    page = read(as_("publisher").get(address(draft)))
    assert page.one("h1").text == f"Draft {draft.pk}"
    assert page.one("section", id="diff").all(class_="diff-added")
    assert "lamps are dimmed" in page.one("div", class_="head").text
    assert "disabled" not in page.one("section", id="publish").one("button", class_="primary").attributes


def test_a_draft_with_errors_lists_them_and_cannot_be_published(as_, draft):
    Draft.objects.filter(pk=draft.pk).update(text=json.dumps(SECOND | {"initial": "of"}))
    page = read(as_("publisher").get(address(draft)))
    assert page.one("ul", class_="findings").all("li", class_="error")
    assert "disabled" in page.one("section", id="publish").one("button", class_="primary").attributes


def test_a_stale_draft_says_what_to_do(as_, engine, draft):
    engine.publish(FIRST | {"description": "another hand was faster"})
    client = as_("publisher")
    page = read(client.get(address(draft)))
    (notice,) = conflicts(page)
    assert "version 2 was published since" in notice.text
    assert notice.one("form")["action"] == address(draft, "rebase/")
    assert client.post(address(draft, "publish/"), {"rollout": "", "expect": draft.revision}).status_code == 409
    client.post(address(draft, "rebase/"), fields(notice.one("form")))
    assert not conflicts(read(client.get(address(draft))))


def test_a_draft_is_published(as_, engine, draft):
    client = as_("publisher")
    form = fields(read(client.get(address(draft))).one("section", id="publish").all("form")[0])
    answer = client.post(address(draft, "publish/"), form | {"rollout": ""})
    assert (answer.status_code, engine.live("lamp").version) == (302, 2)
    assert answer.url == f"{PAGE}2/"
    assert "Published as version 2" in read(client.get(address(draft))).text


def test_a_draft_that_cannot_be_published_names_its_first_error_before_a_warning(as_, draft):
    given = SECOND | {"states": SECOND["states"] | {"lost": {}}, "schedules": [
        {"name": "no good", "when": {"every": "1d"}, "what": {"do": "fire_all", "filter": {}, "event": "x"}},
    ]}  # fmt: skip
    Draft.objects.filter(pk=draft.pk).update(text=json.dumps(given))
    answer = as_("publisher").post(address(draft, "publish/"), {"rollout": "", "expect": draft.revision})
    said = read(answer).text
    assert answer.status_code == 400
    assert 'no transition leads to the state "lost"' in said
    assert "The draft has errors: 'lamp.no good' is no name" in said


def test_a_first_version_is_that_of_all(as_, engine, db):
    draft = Draft.objects.create(machine="lamp", text=json.dumps(FIRST), author="sue")
    client = as_("publisher")
    form = fields(read(client.get(address(draft))).one("section", id="publish").all("form")[0])
    assert "rollout" not in form
    answer = client.post(address(draft, "publish/"), form | {"rollout": "5"}, follow=True)
    assert "Version 1 published: every new instance gets it" in read(answer).text
    assert engine.live("lamp").version == 1


def test_a_discarded_draft_stays_readable(as_, draft):
    client = as_("publisher")
    client.post(address(draft, "discard/"))
    page = read(client.get(address(draft)))
    assert not page.all("section", id="publish")
    assert page.one("div", class_="head").one(class_="badge").text == "discarded"


def test_a_draft_of_another_machine_is_a_404(as_, activation, draft):
    assert as_("publisher").get(f"/machines/activation/versions/drafts/{draft.pk}/").status_code == 404
