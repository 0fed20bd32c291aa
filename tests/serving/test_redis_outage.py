"""Redis goes away: what the pages and the health address say, and that they recover."""

import pytest
import redis
from django.test import Client

from dashboard.serving.health import HealthChecks
from dashboard.serving.sessions import SessionStore
from dashboard.shared.errors import redis_outage
from machines.conf.server import Server
from machines.engine.errors import EngineUnavailable
from tests.configuration import configure


@pytest.fixture
def server(tmp_path, prefix, settings, monkeypatch, db):
    """A server the test may stop, with the site pointed at it. Health is always looked at: no answer is that of the
    look before."""
    from dashboard.site import stores

    server = Server(tmp_path / "own").start()
    configure(settings, REDIS_URL=server.url)
    settings.CACHES = stores.caches(server.url, prefix)
    monkeypatch.setattr(HealthChecks, "FRESH", 0.0)
    yield server
    server.stop()


@pytest.fixture
def client():
    return Client()


def test_healthz_is_ok_when_redis_and_database_answer(server, client):
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok", "redis": "ok", "database": "ok"})
    assert "no-store" in response.headers["Cache-Control"]


def test_healthz_names_the_part_that_is_down_by_its_code_and_shows_no_details(server, client):
    server.stop()
    response = client.get("/healthz")
    assert response.status_code == 503
    assert response.json() == {"status": "down", "redis": "SB500", "database": "ok"}


def test_healthz_is_ok_again_when_the_server_is_back(server, client):
    server.stop()
    assert client.get("/healthz").status_code == 503
    server.start()
    assert client.get("/healthz").status_code == 200


def test_a_page_says_503_with_a_code_and_when_to_come_back(server, client, django_user_model):
    user = django_user_model.objects.create_superuser("admin", password="x")
    client.force_login(user)
    server.stop()
    response = client.get("/")
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "5"
    assert "SB500" in response.content.decode()
    assert "Redis unavailable" in response.content.decode()
    assert "Nothing was changed" in response.content.decode()


def test_a_person_is_still_logged_in_when_the_server_is_back(server, client, django_user_model):
    user = django_user_model.objects.create_superuser("admin", password="x")
    client.force_login(user)
    server.stop()
    client.get("/")
    server.start()
    assert client.get("/").status_code == 200


def test_a_request_waits_for_its_session_once(server):
    one = SessionStore("s" * 32)
    server.stop()
    with pytest.raises(redis_outage.CAUSES) as first:
        one.load()
    server.start()
    with pytest.raises(redis_outage.CAUSES) as second:
        one.load()
    assert second.value is first.value
    assert SessionStore("s" * 32).load() == {}  # of the next request


def test_a_login_that_cannot_be_kept_is_a_503_too(server, client, django_user_model):
    """The session is written after the view has answered, where no middleware sees what goes wrong."""
    django_user_model.objects.create_superuser("admin", password="x")
    server.stop()
    client.raise_request_exception = False
    response = client.post("/accounts/login/", {"username": "admin", "password": "x"})
    assert response.status_code == 503
    assert "SB500" in response.content.decode()
    assert "It is unknown whether" in response.content.decode()


def test_a_form_that_met_the_outage_comes_back_to_be_sent_again(server, django_user_model):
    """Sessions are away together with the engine, so nobody can be asked who this is; the form must not be lost."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(django_user_model.objects.create_superuser("admin", password="x"))
    client.get("/accounts/login/?next=/")
    client.cookies["csrftoken"] = "c" * 32
    form = {"csrfmiddlewaretoken": "c" * 32, "event": "go", "expect": "1", "key": "k-1", "payload-token": '"<b>'}
    server.stop()
    response = client.post("/machines/m/instances/i/fire/", form)
    page = response.content.decode()
    assert response.status_code == 503
    assert 'action="/machines/m/instances/i/fire/"' in page
    assert 'name="key" value="k-1"' in page
    assert 'value="&quot;&lt;b&gt;"' in page
    assert page.count("csrfmiddlewaretoken") == 1
    assert "It is unknown whether this request was applied. Sending it again is safe" in page


def test_a_form_without_a_key_is_not_offered_again(server, client, django_user_model):
    client.force_login(django_user_model.objects.create_superuser("admin", password="x"))
    server.stop()
    response = client.post("/machines/m/instances/i/delete/", {"expect": "1", "reason": "r", "sure": "on"})
    assert response.status_code == 503
    assert ">Resend<" not in response.content.decode()
    assert "Check before you send it again" in response.content.decode()


@pytest.mark.parametrize("form", [None, {"expect": "1"}, {"key": "k-1"}], ids=["read", "unkeyed", "keyed"])
def test_the_page_says_one_thing_about_the_request(server, client, django_user_model, form):
    client.force_login(django_user_model.objects.create_superuser("admin", password="x"))
    server.stop()
    fire = "/machines/m/instances/i/fire/"
    response = client.get("/") if form is None else client.post(fire, form)
    page = response.content.decode()
    said = ["Nothing was changed", "Check before you send it again", "Sending it again is safe"]
    assert [text in page for text in said].count(True) == 1
    assert ("is unknown" in page) == (form is not None)
    # Only what was read is loaded again by itself, with script and without.
    assert ("data-reload" in page) == ('http-equiv="refresh"' in page) == (form is None)
    assert (response["Retry-After"], response["Cache-Control"]) == ("5", "no-store")


def test_a_program_gets_json(server, client):
    response = redis_outage.answer(_request("/api/v1/live/"), EngineUnavailable("away"))
    assert response.status_code == 503
    assert b'"code": "SB500"' in response.content


@pytest.mark.parametrize(
    "error",
    [EngineUnavailable("away"), redis.exceptions.ConnectionError("refused"), redis.exceptions.TimeoutError("slow")],
)
def test_what_counts_as_an_outage(error):
    assert redis_outage.is_outage(error)
    wrapped = RuntimeError("in a template")
    wrapped.__cause__ = error
    assert redis_outage.is_outage(wrapped)
    assert not redis_outage.is_outage(ValueError("a bug"))


def _request(path: str):
    from django.test import RequestFactory

    return RequestFactory().get(path)
