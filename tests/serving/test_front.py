"""What comes in over HTTP: answered on the event loop, let through by turns, or turned away with a code."""

import asyncio
import json
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings

from dashboard.serving import admission
from dashboard.serving.admission import Admission
from dashboard.serving.event_loop_views import EventLoopHandler
from dashboard.shared.addresses import caller_of
from dashboard.shared.concurrency_limits import Slots
from tests.cases import for_each
from tests.security.requests.test_headers import check

PATIENCE = 60.0
ROOM = Slots.of(4)  # one of a caller at a time, two of an address; 8 and 16 wait


class Django:
    """In its place: reads the request, works until it may answer, and then answers 200."""

    def __init__(self) -> None:
        self.begun, self.gone, self.bodies = 0, 0, []
        self.may = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone += 1
                return
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.begun += 1
        self.bodies.append(body)
        await self.may.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


class Request(ApplicationCommunicator):
    def __init__(self, application: Any, path: str = "/", *, method: str = "GET", address: str = "10.0.0.1", **headers):
        named = {"host": "testserver", **headers}
        raw = [(name.encode(), value.encode()) for name, value in named.items()]
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(),
            "root_path": "", "scheme": "http", "query_string": b"", "headers": raw, "client": (address, 1),
            "server": ("testserver", 80),
        }  # fmt: skip
        super().__init__(application, scope)

    async def ask(self, body: bytes = b"", more: bool = False) -> None:
        await self.send_input({"type": "http.request", "body": body, "more_body": more})
        await asyncio.sleep(0)

    async def answer(self) -> Any:
        start = await self.receive_output(PATIENCE)
        body = b""
        while True:
            part = await self.receive_output(PATIENCE)
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        return Answer(start, body)


class Answer:
    def __init__(self, start: dict[str, Any], body: bytes) -> None:
        self.status_code, self.content = start["status"], body
        self.headers = {name.decode().title(): value.decode() for name, value in start["headers"]}


async def settled(django: Django, begun: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while django.begun < begun:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@pytest.fixture
async def django() -> Django:
    return Django()


@pytest.fixture
async def site(django: Django) -> Admission:
    return Admission(django, EventLoopHandler(), ROOM)


async def test_a_request_gets_its_body_and_answers(site, django):
    request = Request(site, "/x", method="POST")
    await request.ask(b"one ", more=True)
    await request.ask(b"two")
    django.may.set()
    assert ((await request.answer()).content, django.bodies) == (b"done", [b"one two"])


async def test_of_one_callers_requests_some_work_some_wait_and_the_rest_are_turned_away(site, django):
    cookie = {"cookie": f"{settings.SESSION_COOKIE_NAME}=mallory"}
    requests = [Request(site, "/api/v1/machines", **cookie) for _ in range(20)]
    for request in requests:
        await request.ask()
    refused = [await request.answer() for request in requests[9:]]
    assert {answer.status_code for answer in refused} == {429}
    told = json.loads(refused[0].content)
    assert (told["code"], refused[0].headers["Retry-After"]) == ("SB712", "1")
    assert django.begun == 1
    other = Request(site, "/", address="10.0.0.2")
    await other.ask()
    await settled(django, 2)
    django.may.set()
    assert (await other.answer()).status_code == 200
    assert [(await request.answer()).status_code for request in requests[:9]] == [200] * 9


async def test_health_and_static_files_are_answered_while_every_thread_is_busy(site, django, db, engine):
    for number in range(8):
        await Request(site, "/", address=f"10.0.0.{number}").ask()
    health = Request(site, "/healthz")
    await health.ask()
    answer = await health.answer()
    assert (answer.status_code, json.loads(answer.content)["status"]) == (200, "ok")
    check(answer)
    assert answer.headers["X-Request-Id"]
    static = Request(site, "/static/signalbox/js/shared/base.js")
    await static.ask()
    answer = await static.answer()
    assert (answer.status_code, answer.headers["Content-Type"].partition(";")[0]) == (200, "text/javascript")
    check(answer)
    django.may.set()


async def test_what_the_loop_answers_is_as_strict_as_a_page(site, django, db, engine):
    post = Request(site, "/healthz", method="POST")
    await post.ask()
    assert (await post.answer()).status_code == 405
    stranger = Request(site, "/static/signalbox/js/shared/base.js", host="evil.example")
    await stranger.ask()
    answer = await stranger.answer()
    assert answer.status_code == 400
    check(answer)


@pytest.mark.parametrize(("path", "kind"), [("/", "text/html"), ("/api/v1/machines", "application/problem+json")])
async def test_a_refusal_is_a_page_or_a_problem_with_every_header(site, django, path, kind):
    request = Request(site, path, method="POST", **{"content-length": str(admission.MOST + 1)})
    await request.ask()
    answer = await request.answer()
    assert (answer.status_code, answer.headers["Content-Type"].partition(";")[0]) == (413, kind)
    assert b"SB713" in answer.content
    assert b"3 MiB" in answer.content
    check(answer)
    assert django.begun == 0


async def test_a_body_that_turns_out_too_large_is_turned_away_as_well(site, django):
    request = Request(site, "/", method="POST")
    for _ in range(admission.MOST // 2**20 + 1):
        await request.ask(b"x" * 2**20, more=True)
    assert (await request.answer()).status_code == 413
    assert (django.begun, django.gone) == (0, 1)


async def test_who_waits_too_long_is_told_that_the_site_is_busy(site, django, monkeypatch):
    monkeypatch.setattr(admission, "MAX_WAIT", 0.01)
    first, second = Request(site), Request(site)
    await first.ask()
    await second.ask()
    answer = await second.answer()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert b"SB714" in answer.content
    django.may.set()
    assert (await first.answer()).status_code == 200


async def test_who_goes_while_waiting_gives_the_place_to_the_next(site, django):
    first, second, third = Request(site), Request(site), Request(site)
    for request in (first, second, third):
        await request.ask()
    await second.send_input({"type": "http.disconnect"})
    await second.wait(PATIENCE)
    django.may.set()
    assert [(await request.answer()).status_code for request in (first, third)] == [200, 200]
    assert (django.begun, django.gone) == (2, 1)


async def test_a_slow_sender_holds_no_place(site, django):
    slow = Request(site, "/", method="POST")
    await slow.ask(b"x", more=True)
    quick = Request(site)
    await quick.ask()
    django.may.set()
    assert (await quick.answer()).status_code == 200
    await slow.ask(b"y")
    assert (await slow.answer()).status_code == 200


@for_each("cookie", ["", "sessionid", "a=b; sessionid=x; c=d", 'sessionid="x"; bad[]=1', "\x00;;=="])
def test_any_cookie_is_a_caller(cookie):
    shown = [(b"host", b"testserver"), (b"cookie", cookie.encode())]
    assert len(caller_of(shown)) == (16 if "sessionid=" in cookie else 0)
    assert caller_of([*shown, (b"authorization", b"Bearer x")]) == caller_of([(b"authorization", b"Bearer x")]) != ""


def test_a_caller_is_known_by_the_session_alone():
    several = [b"a=b; sessionid=x; c=d", b"sessionid=x", b"c=d;sessionid=x"]
    assert len({caller_of([(b"cookie", cookie)]) for cookie in several}) == 1
    assert "x" not in caller_of([(b"cookie", b"sessionid=x")])
