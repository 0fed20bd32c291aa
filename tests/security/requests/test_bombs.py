"""Texts that are small to send and large to read are answered with words about what is wrong, by every reader there is.

The limit of each test is for a reader that hangs. The figures are in ``benchmarks/``.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from dashboard.live import messages
from dashboard.live.limits import Limits
from machines.catalog.submissions import GUESS, Submission, read
from machines.formats import READERS
from machines.models import Machine
from tests.cases import for_each
from tests.pages.table import TABLE
from tests.security.bombs import BODIES, FORMS, FRAMES, HARMLESS, HEADERS, QUERIES, READ
from tests.security.people import BY_NAME, Kind
from tests.security.world import Answer, World

TEXTS = [(format, name) for format, found in READ.items() for name in found]
MOST = 1_200  # findings in one answer
WORDS = 1_000  # characters in one finding
LARGEST = 400_000  # bytes of an answer to anything that was refused
LARGEST_PAGE = 1_500_000  # the page of the API alone has half a megabyte
LONGEST_HEADER = 2_000


def test_every_reader_has_its_bombs():
    assert set(READ) == set(READERS)
    assert len(TEXTS) > 90


@for_each("format, name", TEXTS)
def test_a_definition_is_refused_in_words(format: str, name: str):
    found = read(READ[format][name](), format=format)
    _check(found, harmless=(format, name) in HARMLESS)


@for_each("format, name", [pair for pair in TEXTS if pair[0] != "json"])
def test_so_is_one_whose_format_is_guessed(format: str, name: str):
    _check(read(READ[format][name](), format=GUESS), harmless=(format, name) in HARMLESS)


def _check(found: Submission, harmless: bool) -> None:
    assert found.findings if harmless else found.errors, found.findings
    assert len(found.findings) <= MOST
    for finding in found.findings:
        said = str(finding)
        assert said.encode()
        assert len(said) <= WORDS, said[:200]
        assert "root:" not in said


def _whole(answer: Answer, *, refused: bool = True) -> None:
    assert (400 if refused else 200) <= answer.status < 500, answer.text[:300]
    assert len(answer.body) < LARGEST
    assert "zq=1" not in str(answer.headers)
    if answer.kind == "application/problem+json":
        assert json.loads(answer.body)["detail"]
    elif answer.status >= 400:
        assert answer.text.lower().startswith("<!doctype html>")


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_refused_in_words(world: World, visitors: dict[Kind, Any], name: str):
    program = visitors[BY_NAME["token with everything"]]
    for path in ("machines/door/instances/front/events", "definitions/check", "sessions"):
        body = BODIES[name]()
        answer = world.ask(program, "post", f"/api/v1/{path}", data=body, content_type="application/json")
        _whole(answer)
        assert answer.kind == "application/problem+json"


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_refused_in_words(world: World, visitors: dict[Kind, Any], name: str):
    """By pages, by the login, where anybody may send one, and by the admin."""
    kind, body = FORMS[name]()
    boss = visitors[BY_NAME["superuser"]]
    machine = Machine.objects.get(name="activation")
    row = f"{reverse('admin:machines_machine_instance', args=[machine.pk])}?id=ATV-123%3ANBCSports"
    forms = [TABLE[page].url(page) for page in ("fire", "force", "bulk-new", "webhook-make", "view-save", "tokens")]
    for path in (*forms, row):
        _whole(world.ask(boss, "post", path, data=body, content_type=kind))
    answer = world.ask(visitors[BY_NAME["anonymous"]], "post", reverse("signalbox:login"), data=body, content_type=kind)
    _whole(answer, refused=False)


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_breaks_nothing(world: World, visitors: dict[Kind, Any], name: str):
    paths = [TABLE[page].url(page) for page in ("overview", "machine", "login", "diagram", "healthz")]
    for path in (
        *paths,
        "/static/signalbox/js/shared/base.js",
        "/api/v1/machines",
        "/api/v1/machines/door/instances/front",
    ):
        for kind in ("superuser", "anonymous"):
            answer = world.ask(visitors[BY_NAME[kind]], "get", path, headers=HEADERS[name])
            assert answer.status < 500, path
            assert "zq=1" not in str(answer.headers)
            assert max(len(text) for text in answer.headers.values()) < LONGEST_HEADER, path


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_breaks_nothing(world: World, visitors: dict[Kind, Any], name: str):
    """Each query at every fifth page, and each page with every fifth query."""
    boss = visitors[BY_NAME["superuser"]]
    pages = [page for page, entry in TABLE.items() if entry.get == 200]
    for page in pages[list(QUERIES).index(name) % 5 :: 5]:
        answer = world.ask(boss, "get", f"{TABLE[page].url(page).partition('?')[0]}?{QUERIES[name]}")
        assert answer.status < 500, page
        assert len(answer.body) < LARGEST_PAGE, page
    for path in ("machines", "machines/door/instances", "audit", "search", "workers", "alarms", "views"):
        answer = world.ask(boss, "get", f"/api/v1/{path}?{QUERIES[name]}")
        assert 400 <= answer.status < 500, path
        assert len(answer.body) < LARGEST, path


@for_each("name", FRAMES)
def test_a_frame_is_refused_in_words(name: str):
    with pytest.raises(messages.BadFrame) as caught:
        messages.read_command(FRAMES[name](), limit=Limits().frame)
    told = messages.encode(messages.error(caught.value.code, caught.value.message, caught.value.topic))
    assert len(told) < 2_000
