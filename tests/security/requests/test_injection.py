"""Hostile texts in every field and every parameter of every page and operation: each stays a text.

What a page reads is not listed here: its query and its form are watched while it is asked for, so that a new parameter
is in without anybody thinking of it. ``SIGNALBOX_LONG=1`` sends every text to every one; otherwise each gets some of
them, and each text goes to some.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any
from urllib.parse import quote

import pytest
from django.http import QueryDict
from django.test import Client
from django.utils.datastructures import MultiValueDict

import dashboard.api.v1  # noqa: F401  adds the operations that the document lists
from dashboard.api.framework.openapi import document
from dashboard.api.framework.operation import OPERATIONS
from dashboard.site.log_format import Line
from tests.api.table import TABLE as CASES
from tests.pages.reading import fields, read
from tests.pages.table import TABLE
from tests.security.hostile import CRUDE, TEXTS
from tests.security.people import BY_NAME, Kind
from tests.security.reading import wrong_in
from tests.security.world import Answer, World

CORPUS = [*TEXTS, *CRUDE]
LONG = bool(os.environ.get("SIGNALBOX_LONG"))
EACH, FEW = (len(CORPUS), len(CORPUS)) if LONG else (1, 1)  # texts for one parameter
NEVER = ("flushall", "flushdb", "keys", "eval", "config|set", "debug", "shutdown", "script|load", "acl|setuser")
BESIDE = {"csrfmiddlewaretoken"}


def sent(text: str) -> bytes:
    """As whoever means harm sends it: halves of surrogate pairs too."""
    return text.encode("utf-8", "surrogatepass")


@pytest.fixture
def boss(visitors: dict[Kind, Any]) -> Client:
    return visitors[BY_NAME["superuser"]]


@pytest.fixture
def turns() -> Iterator[str]:
    """The texts one after the other, for ever."""
    return itertools.cycle(CORPUS)


@pytest.fixture(autouse=True)
def _lines(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever is logged meanwhile stays a line of the log."""
    yield
    form = Line("{levelname} {message}", style="{")
    for record in caplog.get_records("call"):
        bare = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None, "stack_info": None})
        assert form.format(bare).isprintable()


@pytest.fixture(autouse=True)
def _commands(world: World) -> Iterator[None]:
    """Nothing that was sent became a command of Redis."""
    before = _calls(world)
    yield
    assert _calls(world) == before


def _calls(world: World) -> dict[str, int]:
    found = world.keys.client.info("commandstats")
    return {name: found.get(f"cmdstat_{name}", {}).get("calls", 0) for name in NEVER}


class Watching:
    """Which names of queries and forms were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: set[str] = set()
        for name in ("__getitem__", "__contains__", "get", "getlist"):
            monkeypatch.setattr(MultiValueDict, name, self._watched(getattr(MultiValueDict, name)), raising=False)

    def _watched(self, read: Callable[..., Any]) -> Callable[..., Any]:
        def watched(holder: Any, key: Any, *more: Any, **named: Any) -> Any:
            if isinstance(holder, QueryDict) and isinstance(key, str):
                self.names.add(key)
            return read(holder, key, *more, **named)

        return watched


def read_by(world: World, client: Client, method: str, address: str) -> list[str]:
    """The names a page reads: those it reads when nothing is sent, and those it reads then when these are."""
    with pytest.MonkeyPatch.context() as patched:
        watching, known = Watching(patched), set()
        for _ in range(2):
            known |= watching.names
            world.ask(client, method, address, data=dict.fromkeys(sorted(known), "1"))
    return sorted(watching.names - BESIDE)


def complain(wrong: dict[str, Any], where: str, text: str, answer: Answer) -> None:
    if found := wrong_in(answer):
        wrong[f"{where} {text[:40]!r}"] = found[:5]


def test_no_parameter_of_a_page_is_more_than_a_text(world: World, boss: Client, turns: Iterator[str]):
    wrong: dict[str, Any] = {}
    tried = 0
    for page, entry in TABLE.items():
        address = entry.url(page)
        path, _, query = address.partition("?")
        plain = QueryDict(query).dict()
        for name in read_by(world, boss, "get", address):
            for text in itertools.islice(turns, EACH):
                answer = world.ask(boss, "get", path, data=plain | {name: sent(text)})
                complain(wrong, f"{page} {name}", text, answer)
                tried += 1
    assert wrong == {}
    assert tried > 200


def test_no_field_of_a_form_is_more_than_a_text(world: World, boss: Client, turns: Iterator[str]):
    """Each by itself, all others being empty; pages that are led to are looked at, too."""
    wrong: dict[str, Any] = {}
    tried = 0
    for page, entry in TABLE.items():
        if entry.post == 405:
            continue
        address = entry.url(page)
        for name in read_by(world, boss, "post", address):
            for text in itertools.islice(turns, FEW):
                answer = world.ask(boss, "post", address, data={name: sent(text)}, follow=True)
                complain(wrong, f"{page} {name}", text, answer)
                tried += 1
    assert wrong == {}
    assert tried > 200


def _forms(world: World, boss: Client) -> Iterator[tuple[str, dict[str, str]]]:
    """Every form that a page shows, with where it goes and what it sends as it stands."""
    seen = set()
    for page, entry in TABLE.items():
        address = entry.url(page)
        answer = boss.get(address)
        if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
            continue
        for form in read(answer).all("form"):
            action = form.attributes.get("action") or address
            if form.attributes.get("method", "get") == "post" and (action, *fields(form)) not in seen:
                seen.add((action, *fields(form)))
                yield action, fields(form)


def test_no_field_of_a_form_that_is_filled_in_is_more_than_a_text(world: World, boss: Client, turns: Iterator[str]):
    """As a browser sends it, with one field after the other replaced: so far that what it asks for is done."""
    wrong: dict[str, Any] = {}
    tried = 0
    for action, filled in list(_forms(world, boss)):
        for name in filled:
            for text in itertools.islice(turns, EACH):
                given = {"reason": "a test"} | filled | {name: sent(text)}
                answer = world.ask(boss, "post", action, data=given, follow=True)
                complain(wrong, f"{action} {name}", text, answer)
                tried += 1
    assert wrong == {}
    assert tried > 200


def _paths(address: str, arguments: dict[str, Any], text: str) -> Iterator[str]:
    """The address with the text in place of each of its arguments."""
    path = address.partition("?")[0]
    written = quote(sent(text), safe="")
    for part in path.strip("/").split("/"):
        if any(str(value) in (part, quote(part)) or quote(str(value), safe="") == part for value in arguments.values()):
            yield path.replace(f"/{part}/", f"/{written}/")


def test_no_part_of_a_path_is_more_than_a_text(world: World, boss: Client, turns: Iterator[str]):
    wrong: dict[str, Any] = {}
    tried = 0
    for page, entry in TABLE.items():
        for text in itertools.islice(turns, EACH if entry.arguments else 0):
            for path in _paths(entry.url(page), entry.arguments, text):
                complain(wrong, page, text, world.ask(boss, "get", path))
                tried += 1
    assert wrong == {}
    assert tried > 100


def _leaves(body: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each text in a body."""
    if isinstance(body, dict):
        for name, inner in body.items():
            yield from _leaves(inner, (*way, name))
    elif isinstance(body, list):
        for number, inner in enumerate(body):
            yield from _leaves(inner, (*way, number))
    elif isinstance(body, str):
        yield way


def _with(body: Any, way: tuple[Any, ...], text: str) -> Any:
    found = deepcopy(body)
    holder = found
    for step in way[:-1]:
        holder = holder[step]
    holder[way[-1]] = text
    return found


def _described() -> dict[str, dict[str, Any]]:
    return {one["operationId"]: one for methods in document()["paths"].values() for one in methods.values()}


def test_no_text_in_a_body_of_the_api_is_more_than_that(world: World, visitors: dict[Kind, Any], turns: Iterator[str]):
    wrong: dict[str, Any] = {}
    program, tried = visitors[BY_NAME["token with everything"]], 0
    described = _described()
    for word in dict.fromkeys(case.stands for case in CASES.values()):
        with world.standing(word) as filled:
            for name, case in CASES.items():
                example = described[name].get("requestBody", {}).get("content", {}).get("application/json", {})
                for body in (case.body, example.get("example")) if case.stands == word and case.body else ():
                    for way in _leaves(body):
                        for text in itertools.islice(turns, EACH):
                            answer = _send(world, program, name, filled, body=_with(body, way, text))
                            complain(wrong, f"{name} {way}", text, answer)
                            tried += 1
    assert wrong == {}
    assert tried > 150


def test_no_parameter_of_the_api_is_more_than_a_text(world: World, visitors: dict[Kind, Any], turns: Iterator[str]):
    wrong: dict[str, Any] = {}
    program, tried = visitors[BY_NAME["token with everything"]], 0
    with world.standing(
        "worker", "bulk", "asked", "draft", "plan", "hook", "view", "key", "locked", "failure"
    ) as filled:
        for name, described in _described().items():
            for term in described["parameters"]:
                for text in itertools.islice(turns, EACH):
                    given = {term["in"]: {term["name"]: text}}
                    complain(wrong, f"{name} {term['name']}", text, _send(world, program, name, filled, **given))
                    tried += 1
    assert wrong == {}
    assert tried > 200


def _send(
    world: World, client: Client, name: str, filled: dict[str, Any], *, body: Any = None,
    path: dict[str, str] | None = None, query: dict[str, str] | None = None, header: dict[str, str] | None = None,
) -> Answer:  # fmt: skip
    operation, case = OPERATIONS[name], CASES[name]
    where, _, terms = case.path.format(**filled).partition("?")
    if path:
        where = _replaced(operation.path, where, path)
    written = [f"{term}={quote(sent(text), safe='')}" for term, text in (query or {}).items()]
    terms = "&".join([terms, *written]).strip("&")
    given = case.body if body is None else body
    data = {} if given is None else {"data": json.dumps(given)}
    headers = {term: text.encode("utf-8", "replace").decode("latin-1") for term, text in (header or {}).items()}
    return world.ask(
        client, operation.method.lower(), f"/api/v1{where}" + (f"?{terms}" if terms else ""),
        content_type="application/json", headers=headers, **data,
    )  # fmt: skip


def _replaced(pattern: str, path: str, given: dict[str, str]) -> str:
    parts = path.split("/")
    for argument, text in given.items():
        place = next(n for n, part in enumerate(pattern.split("/")) if part.endswith(f":{argument}}}"))
        parts[place] = quote(sent(text), safe="")
    return "/".join(parts)


HEADERS = (
    "Accept", "Accept-Language", "Authorization", "Content-Type", "Cookie", "Idempotency-Key", "If-Match", "Origin",
    "Referer", "User-Agent", "X-CSRFToken", "X-Forwarded-For", "X-Forwarded-Host", "X-Request-Id", "X-Section",
)  # fmt: skip
ASKED = ("login", "audit", "machine", "metrics", "nothing")


def test_no_header_is_more_than_a_text(world: World, boss: Client, turns: Iterator[str]):
    wrong: dict[str, Any] = {}
    for page in ASKED:
        path = TABLE[page].url(page) if page in TABLE else "/no/such/page/"
        for header in HEADERS:
            for text in itertools.islice(turns, FEW):
                written = text.encode("utf-8", "replace").decode("latin-1")
                for method in ("get", "post"):
                    answer = world.ask(boss, method, path, headers={header: written})
                    complain(wrong, f"{method} {page} {header}", text, answer)
    assert wrong == {}
