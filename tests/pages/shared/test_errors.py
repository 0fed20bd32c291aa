"""Every error becomes a page with a stable code; the mapping is written once."""

from __future__ import annotations

import inspect

import pytest
from django.db import OperationalError
from django.http import Http404
from django.test import RequestFactory

from dashboard.shared.errors import pages, redis_outage, statuses
from machines.engine import errors
from machines.engine.records import Explanation
from tests.cases import for_each
from tests.pages.reading import read

REFUSED = Explanation("m", "i", "go", False, 1, ["A"], why="no transition")
RAISED = [
    (errors.UnknownMachine("m"), 404),
    (errors.UnknownInstance("m", "i"), 404),
    (errors.LookupFailed("no such job"), 404),
    (errors.BadInput("no"), 400),
    (errors.BadPayload("no"), 400),
    (errors.DefinitionError([]), 422),
    (errors.Refused(REFUSED), 422),
    (errors.UnknownEvent(REFUSED), 422),
    (errors.InstanceExists("m", "i"), 409),
    (errors.Conflict("m", "i", expected=1, actual=2), 409),
    (errors.LeaseLost("j", why="withdrawn"), 409),
    (errors.EngineFault("odd"), 500),
    (errors.SignalboxError("?"), 500),
]


@pytest.fixture
def request_of():
    """A request by nobody in particular."""

    def made(method: str = "get", path: str = "/machines/m/"):
        from django.contrib.auth.models import AnonymousUser

        request = getattr(RequestFactory(), method)(path)
        request.user = AnonymousUser()
        return request

    return made


@pytest.fixture
def mapper():
    return pages.EngineErrorMiddleware(lambda request: None)


@for_each("error, status", RAISED)
def test_an_engine_error_becomes_a_page_with_its_code(mapper, request_of, error, status):
    answer = mapper.process_exception(request_of(), error)
    assert answer.status_code == status
    assert error.code in read(answer).text


@for_each("error, status", RAISED)
def test_the_api_gets_the_same_as_json(mapper, request_of, error, status):
    answer = mapper.process_exception(request_of(path="/api/v1/x/"), error)
    assert answer.status_code == status
    assert error.code.encode() in answer.content


def test_every_engine_error_has_a_status():
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.SignalboxError)]
    known = {kind for kind, (status, _) in statuses.ANSWERS.items() if status}
    assert [kind.__name__ for kind in kinds if known.isdisjoint(kind.__mro__)] == ["SignalboxError"]


def test_an_error_that_is_not_the_engines_is_left_alone(mapper, request_of):
    assert mapper.process_exception(request_of(), ValueError("ours")) is None
    assert mapper.process_exception(request_of(), errors.EngineUnavailable("away")) is None


def test_a_post_that_may_have_counted_says_so(request_of):
    answer = redis_outage.RedisOutageMiddleware(lambda request: None).process_exception(
        request_of("post"), errors.EngineUnavailable("away")
    )
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "It is unknown whether this request was applied. Check before you send it again." in read(answer).text


@pytest.mark.parametrize(("method", "loads_again"), [("get", True), ("post", False)])
def test_the_page_of_a_locked_database_does_not_ask_for_redis(request_of, method: str, loads_again: bool):
    """Redis answers all the while: a page that asks for it would say that it is back."""
    middleware = redis_outage.RedisOutageMiddleware(lambda request: None)
    answer = middleware.process_exception(request_of(method), OperationalError("database is locked"))
    page = answer.content.decode()
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "Another process is writing to the database." in page
    assert "Redis" not in read(answer).text
    assert "outage" not in page.replace("data-outage-text", "")
    assert ('<meta http-equiv="refresh" content="5">' in page, "<noscript>" in page) == (loads_again, False)


@for_each(
    "text, locked", [("database is locked", True), ("database table is locked", True), ("Account is locked", False)]
)
def test_a_locked_account_is_no_locked_database(request_of, text: str, locked: bool):
    middleware = redis_outage.RedisOutageMiddleware(lambda request: None)
    assert bool(middleware.process_exception(request_of(), OperationalError(text))) == locked


@pytest.mark.parametrize(
    ("handler", "status", "code"),
    [
        (pages.bad_request, 400, "SB700"),
        (pages.forbidden, 403, "SB703"),
        (pages.not_found, 404, "SB704"),
        (pages.stale_form, 403, "SB708"),
    ],
)
def test_the_sites_own_errors_have_codes_too(request_of, handler, status, code):
    answer = handler(request_of())
    assert answer.status_code == status
    assert code in read(answer).text


def test_a_right_that_is_missing_is_one_line_of_the_log(as_, caplog):
    assert as_("viewer", "vera").get("/webhooks/").status_code == 403
    (record,) = [one for one in caplog.records if one.name == "django.request"]
    assert record.getMessage() == "vera lacks the right operate: /webhooks/"
    assert (record.levelname, record.exc_info) == ("WARNING", None)


def test_the_page_for_a_fault_needs_nothing_that_may_have_failed(request_of):
    answer = pages.fault(request_of())
    assert answer.status_code == 500
    assert "SB710" in read(answer).text


def test_a_sentence_in_a_404_is_shown_and_djangos_own_dict_is_not(request_of):
    assert "No such place." in read(pages.not_found(request_of(), Http404("No such place."))).text
    assert "tried" not in read(pages.not_found(request_of(), Http404({"tried": []}))).text


def test_an_address_there_is_not_is_a_404(client):
    answer = client.get("/nowhere/")
    assert answer.status_code == 404
    assert "SB704" in read(answer).text


def test_a_forbidden_page_names_the_right(as_, waiting):
    answer = as_("viewer").post("/machines/activation/instances/ATV-123:NBCSports/fire/")
    text = read(answer).text
    assert answer.status_code == 403
    assert "You may not create instances and fire events (machine 'activation')." in text
    assert "SB434" in text
    assert "Missing permission: fire" in text


def test_the_503_page_stands_alone():
    from django.template.loader import render_to_string

    page = render_to_string("signalbox/503.html", {"code": "SB500", "title": "Redis unavailable", "message": "Away."})
    assert "SB500" in page
    assert "/healthz" in page
