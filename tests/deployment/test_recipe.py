"""The recipe acted out: the commands of the units, accounts of deploy/redis, TLS to Redis and through nginx."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets import Origin
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from machines.conf.server.cluster import free_ports
from machines.engine import Engine
from tests.cluster.site import Live
from tests.cluster.visitor import Visitor
from tests.engine.builders import machine
from tests.installation.processes import eventually

from . import files
from .installation import RedisServer, Units, write_secrets
from .proxy import HOST, Nginx, write_configuration
from .tools import find

pytestmark = pytest.mark.faults
LIBRARY, MIGRATE, WEB, WORKER = files.UNITS
PASSWORD = "a-long-password"
ADDRESS = "127.0.0.2"  # of a client: not the one of the proxy


class Recipe:
    def __init__(self, folder: Path, secrets: Path, server: RedisServer) -> None:
        values = {
            "secret_key": (secrets / "secret_key").read_text(),
            "redis_url_deploy": server.url("deploy", secrets),
            "redis_url_web": server.url("web", secrets),
            "redis_url_worker": server.url("worker", secrets),
            "database_url": f"sqlite:///{folder}/box.sqlite3",
        }
        self.units = Units(folder / "units", values, DJANGO_SUPERUSER_PASSWORD=PASSWORD, LOG_LEVEL="WARNING")
        assert "is loaded" in self.units.run(LIBRARY)
        self.units.run(MIGRATE)
        self.units.run(MIGRATE, "createsuperuser", "--noinput", "--username", "boss", "--email", "boss@example.com")
        self.engine = Engine.from_url(server.url("web", secrets))
        self.units.start(WEB)
        self.units.start(WORKER)
        self.proxy = Nginx(folder / "nginx", self.units.port)

    def visitor(self) -> Visitor:
        return Visitor(self.proxy.origin, transport=self.proxy.transport(ADDRESS))


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recipe]:
    find("nginx")
    folder = tmp_path_factory.mktemp("recipe")
    secrets = write_secrets(folder / "deploy")
    server = RedisServer(folder / "redis", secrets, "redis", tls=True)
    with server.running():
        found = Recipe(folder, secrets, server)
        eventually(found.units.listens, "the site listens")
        visitor = found.visitor()
        eventually(lambda: visitor.get("/readyz").status_code == 200, "the site is ready")
        visitor.close()
        yield found
        found.engine.client.close()
        found.proxy.stop()
        assert found.units.stop() == {WEB: 0, WORKER: 0}, found.units.log(WEB) + found.units.log(WORKER)
        for name in (WEB, WORKER):
            assert "Traceback" not in found.units.log(name), found.units.log(name)


@pytest.fixture
def visitor(recipe: Recipe) -> Iterator[Visitor]:
    found = recipe.visitor()
    found.log_in("boss", PASSWORD)
    yield found
    found.close()


def test_nginx_reads_its_configuration(tmp_path):
    main = write_configuration(tmp_path, *free_ports(3))
    done = subprocess.run(
        [find("nginx"), "-t", "-p", str(tmp_path), "-c", str(main)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr, done.stderr


def test_a_page_its_static_files_and_its_cookies_come_by_tls(recipe, visitor):
    page = visitor.get("/")
    assert page.status_code == 200
    assert page.headers["Strict-Transport-Security"].startswith("max-age=31536000")
    assert "__Host-sessionid=" in visitor.cookie
    script = visitor.get("/static/signalbox/js/shared/base.js")
    assert (script.status_code, script.headers["Content-Type"].partition(";")[0]) == (200, "text/javascript")
    assert "nginx/" not in page.headers.get("Server", "")


def test_plain_http_goes_on_by_tls_and_a_foreign_name_gets_no_certificate(recipe):
    answer = httpx.get(f"http://127.0.0.1:{recipe.proxy.plain}/queues/?q=1", headers={"Host": HOST})
    assert (answer.status_code, answer.headers["Location"]) == (308, f"https://{HOST}/queues/?q=1")
    with (
        socket.create_connection(("127.0.0.1", recipe.proxy.secure), timeout=60) as plain,
        pytest.raises(ssl.SSLError, match="(?i)unrecognized"),
    ):
        recipe.proxy.trust.wrap_socket(plain, server_hostname="evil.example")


@contextlib.contextmanager
def open_socket(recipe: Recipe, visitor: Visitor, origin: str) -> Iterator[ClientConnection]:
    """A websocket through the proxy, opened by a page of ``origin``."""
    address = f"{recipe.proxy.origin.replace('https', 'wss')}/ws/live/"
    headers = {"Cookie": visitor.cookie}
    with (
        socket.create_connection(("127.0.0.1", recipe.proxy.secure), timeout=60) as plain,
        connect(
            address, sock=plain, ssl=recipe.proxy.trust, server_hostname=HOST, origin=Origin(origin),
            additional_headers=headers,
        ) as live,
    ):  # fmt: skip
        yield live


def test_the_live_view_comes_through_and_the_worker_fires_timers(recipe, visitor):
    engine = recipe.engine
    engine.publish(machine("egg", {"Raw": {"after": {"500": "Done"}}, "Done": {}}))
    with open_socket(recipe, visitor, recipe.proxy.origin) as opened:
        live = Live(opened)
        live.watch("machine:egg")
        live.sees("machine:egg", lambda value: value["total"] == 0, "no instance")
        engine.create("egg", "e1")
        live.sees("machine:egg", lambda value: value["total"] == 1, "the new instance")
    eventually(lambda: engine.get("egg", "e1").state == "Done", "the worker fires the timer")
    found = visitor.call("GET", "/machines/egg/instances/e1").json()
    assert found["configuration"] == ["Done"]


def test_a_socket_of_a_foreign_page_is_closed(recipe, visitor):
    with open_socket(recipe, visitor, "https://evil.example") as live, pytest.raises(ConnectionClosed, match="4403"):
        live.recv(timeout=60)


def test_forms_are_taken_from_pages_of_the_site_alone(recipe, visitor):
    fields = {"at": "/accounts/me/"}
    assert visitor.send("/accounts/logout/").status_code == 403
    assert visitor.post("/accounts/logout/", **fields, origin="https://evil.example").status_code == 403
    answer = visitor.post("/accounts/logout/", **fields)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/accounts/login/")
    assert visitor.get("/").status_code == 302


def test_the_address_of_a_client_is_the_one_that_the_proxy_sees(recipe):
    spoofed = {"X-Forwarded-For": "9.9.9.9", "X-Forwarded-Proto": "http", "Forwarded": "for=9.9.9.9"}
    visitor = Visitor(recipe.proxy.origin, transport=recipe.proxy.transport(ADDRESS), headers=spoofed)
    visitor.log_in("boss", PASSWORD)
    assert visitor.get("/").headers["Strict-Transport-Security"], "the site saw https"
    audit = visitor.read("/audit/")
    assert ADDRESS in audit
    assert "9.9.9.9" not in audit
    visitor.close()


def test_a_body_far_too_large_ends_at_the_proxy_and_one_too_large_is_told_so(recipe, visitor):
    assert visitor.send("/accounts/logout/", content=b"x" * (5 * 2**20)).status_code == 413
    answer = visitor.send("/accounts/logout/", content=b"x" * (3 * 2**20 + 1))
    assert answer.status_code == 413
    assert "SB713" in answer.text
