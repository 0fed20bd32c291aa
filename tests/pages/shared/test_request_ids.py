"""Each request has an id that its answer, its lines of the log, its audit entries and its errors share."""

import asyncio
import io
import logging
import os
import socket
import threading

import pytest
from django.conf import settings as configured
from django.test import AsyncClient

from dashboard.serving.middleware.request_ids import Ids, ids, name_request
from dashboard.site.log_format import Line, RequestFilter
from machines.audit.entries import record
from machines.audit.request_context import given_id, request_id, run_in_own_context
from machines.connections import get_engine
from machines.engine.ids import decode, encode_local, is_id
from machines.models import AuditEntry
from tests.configuration import configure
from tests.installation.processes import eventually
from tests.live.sockets import Socket
from tests.pages.reading import fields, read

INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"


@pytest.fixture
def log():
    """What the log says, as the site writes it."""
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(Line(configured.LOGGING["formatters"]["line"]["format"], style="{"))
    handler.addFilter(RequestFilter())
    logging.getLogger().addHandler(handler)
    yield handler.stream
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def ready(prefix):
    """The first range of ids is at hand."""
    get_engine().ids.next()


def test_every_answer_has_an_id_of_its_own_in_the_order_they_came(as_, ready, activation):
    client = as_("viewer")
    paths = [
        "/",
        "/nowhere/",
        "/static/signalbox/css/machines/instance_filter.css",
        "/api/v1/nowhere",
        "/admin/",
        "/accounts/login/",
        "/healthz",
    ]
    answers = [client.get(path) for path in paths]
    ids = [answer.headers["X-Request-Id"] for answer in answers]
    answers[2].close()
    assert ids == sorted(set(ids))
    assert {decode(id).node for id in ids} == {0}
    assert request_id.get() == ""


def test_what_comes_of_a_request_names_it(as_, ready, waiting, log):
    client = as_("supervisor", "sue")
    answer = client.post(f"{INSTANCE}suspend/", {"reason": "a test", "expect": "1"})
    id = answer.headers["X-Request-Id"]
    assert AuditEntry.objects.get().request == id
    assert f"WARNING django.request [{id}]: Conflict: {INSTANCE}" in log.getvalue()
    shown = read(client.get("/audit/", {"request": id}))
    assert id in shown.text
    assert len(shown.all("tr", data_entry=str(AuditEntry.objects.get().pk))) == 1
    assert "No matching entries" in read(client.get("/audit/", {"request": "0000000000000"})).text
    rows = b"".join(client.get("/audit/entries.csv", {"request": id}).streaming_content).decode().splitlines()
    assert (len(rows), f'"{id}"' in rows[1]) == (2, True)


def test_an_error_names_the_request_to_people_and_programs(as_, ready, log):
    client = as_("viewer")
    page = client.get("/machines/nothing/")
    assert f"Request {page.headers['X-Request-Id']}" in " ".join(read(page).text.split())
    problem = client.get("/api/v1/nowhere")
    assert problem.json()["request"] == problem.headers["X-Request-Id"]


@pytest.mark.parametrize(
    ("given", "written"),
    [("trace/abc-1:2", " given trace/abc-1:2"), ("", ""), ("a b", ""), ("x" * 65, ""), ("é", ""), ("[x]", "")],
)
def test_what_a_sender_calls_it_is_written_beside_ours_and_never_in_its_place(client, ready, log, given, written):
    id = client.get("/nowhere/", headers={"X-Request-Id": given}).headers["X-Request-Id"]
    logging.getLogger("dashboard").warning("after it")
    assert id != given
    assert is_id(id)
    with_it = [line for line in log.getvalue().splitlines() if id in line]
    assert [line.partition(id)[2].partition("]")[0] for line in with_it] == [written]
    assert "WARNING dashboard: after it" in log.getvalue()


async def test_over_asgi_too_where_many_are_answered_at_once(ready, transactional_db):
    client = AsyncClient()
    answers = await asyncio.gather(*(client.get("/accounts/login/") for _ in range(8)))
    assert len({answer.headers["X-Request-Id"] for answer in answers}) == 8


async def test_a_socket_has_one_from_its_handshake_on(prefix, transactional_db):
    stranger = Socket()
    await stranger.send_input({"type": "websocket.connect"})
    accepted = await stranger.receive_output(timeout=60)
    ids = [value.decode() for name, value in accepted["headers"] if name == b"x-request-id"]
    assert [is_id(id) for id in ids] == [True]
    stranger.stop()


async def test_a_task_that_outlives_its_request_works_for_none():
    async def told():
        return request_id.get(), given_id.get()

    with name_request("trace-1") as made:
        assert await asyncio.create_task(told()) == (made, "trace-1")
        assert await asyncio.create_task(told(), context=run_in_own_context()) == ("", "")


def test_without_redis_an_id_says_that_it_was_made_without(client, settings, db):
    configure(settings, REDIS_URL="unix:///nonexistent/none.sock")
    answer = client.get("/healthz")
    assert decode(answer.headers["X-Request-Id"]).node is None
    assert answer.status_code in (200, 503)


def test_no_request_waits_for_a_redis_that_hangs(settings):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        configure(settings, REDIS_URL=f"redis://127.0.0.1:{silent.getsockname()[1]}")
        own = Ids()
        made = [own.take() for _ in range(200)]
        asking = [thread for thread in threading.enumerate() if thread.name == "request ids" and thread.is_alive()]
        assert len(asking) == 1  # it waits, and nobody else did
        assert all(decode(id).node is None for id in made)
    asking[0].join(timeout=60)


def test_the_first_range_is_taken_beside_and_then_ids_are_of_a_node(prefix):
    own = Ids()
    get_engine()
    eventually(lambda: decode(own.take()).node is not None, "ids of a node")


def test_a_child_does_not_wait_for_the_thread_that_its_parent_had():
    with ids._at_it:
        child = os.fork()
        if child == 0:
            os._exit(int(ids._at_it.locked()))
        assert os.waitpid(child, 0)[1] == 0


def test_the_search_says_when_and_where_an_id_was_made(as_, ready, activation):
    client = as_("supervisor")
    id = client.get("/").headers["X-Request-Id"]
    shown = read(client.get("/search/", {"q": id.upper()}))
    assert f"{id} was created at" in shown.text
    assert f"by node 0, sequence number {decode(id).sequence}" in shown.text
    assert client.get(shown.one("a", href=f"/audit/?request={id}")["href"]).status_code == 200
    assert "was created at" not in read(client.get("/search/", {"q": id + "0"})).text
    assert not read(as_("viewer").get("/search/", {"q": id})).all("a", href=f"/audit/?request={id}")
    assert "without a node number" in read(client.get("/search/", {"q": encode_local(decode(id).at, 5)})).text
    for only_looks_like_one in ("z" * 13, encode_local(decode(id).at + 86_400_000, 5)):
        assert "was created at" not in read(client.get("/search/", {"q": only_looks_like_one})).text


def test_an_instance_from_the_form_has_such_an_id_and_twice_is_once(as_, ready, engine, activation):
    client = as_("supervisor")
    form = fields(read(client.get("/machines/activation/")).one("form", action="/machines/activation/create/"))
    for _ in range(2):
        answer = client.post("/machines/activation/create/", form)
    assert answer.url == f"/machines/activation/instances/{form['key']}/"
    assert is_id(form["key"])
    assert sum(engine.counts("activation").values()) == 1


def test_what_nobody_asked_for_has_none(db):
    assert record("a worker", "bulk.run")
    assert AuditEntry.objects.get().request == ""
