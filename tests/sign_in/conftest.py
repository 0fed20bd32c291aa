"""The site with sign-in switched on, in a process of its own, and a real OpenID provider beside it.

The provider is oidc-provider-mock from PyPI: discovery, authorization code with PKCE, signed tokens, keys, user info.
Whom it knows and in which groups is set over HTTP.
"""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from dashboard.serving import server
from machines.conf.server.guarded import GuardedProcess
from tests.conftest import remove
from tests.installation.processes import eventually

PASSWORD = "let me in"
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


def code_of(secret: str, *, ahead: float = 0) -> str:
    """The code that an app shows now, or some seconds ahead: RFC 6238."""
    counter = struct.pack(">Q", int((time.time() + ahead) // 30))
    digest = hmac.new(base64.b32decode(secret), counter, "sha1").digest()
    place = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[place : place + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"


class Site:
    """A running site: its URL, what it wrote, and its database."""

    def __init__(self, url: str, home: Path) -> None:
        self.url = url
        self.home = home

    def read(self, sql: str, *values: object) -> list[tuple]:
        with closing(sqlite3.connect(self.home / "signalbox.sqlite3", timeout=30)) as database:
            return database.execute(sql, values).fetchall()

    def groups_of(self, name: str) -> set[str]:
        rows = self.read(
            "select g.name from auth_group g join auth_user_groups l on l.group_id = g.id"
            " join auth_user u on u.id = l.user_id where u.username = ?",
            name,
        )
        return {row[0] for row in rows}

    def audit(self, actor: str) -> list[tuple]:
        return self.read("select action, outcome, detail from machines_auditentry where actor = ? order by id", actor)


class Person:
    """A browser without scripts: cookies, forms with their token, redirects."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.client = httpx.Client(base_url=site.url, follow_redirects=True, timeout=60)

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)

    def post(self, path: str, page: str = "", **fields: str) -> httpx.Response:
        """Open a page and send a form of it."""
        return self.submit(self.get(page or path), path, **fields)

    def submit(self, page: httpx.Response, path: str = "", **fields: str) -> httpx.Response:
        """Send a form of the page that was answered, by default to its own address."""
        found = TOKEN.search(page.text)
        assert found, f"no form at {page.url}"
        data = {"csrfmiddlewaretoken": found[1], **fields}
        return self.client.post(path or str(page.url), data=data, headers={"Referer": self.site.url})

    def log_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        return self.post("/accounts/login/", login=name, password=password)

    def start_at_provider(self, process: str = "login", page: str = "/accounts/login/") -> str:
        """Post the form of the provider; return the address that the browser goes on to."""
        answer = self.post(f"/accounts/oidc/sso/login/?process={process}", page=page)
        assert answer.status_code == 200, answer.text
        return answer.headers["Refresh"].partition("url=")[2]

    def sign_in(self, subject: str, **start: str) -> httpx.Response:
        """Sign in as somebody whom the provider knows."""
        return self.client.post(self.start_at_provider(**start), data={"sub": subject})

    def is_logged_in(self) -> bool:
        return self.client.get("/account/", follow_redirects=False).status_code == 200


def add_app(person: Person) -> tuple[str, httpx.Response]:
    """Add an app for codes to the account of who is logged in; return its secret, and the page with recovery codes."""
    page = "/accounts/2fa/totp/activate/"
    asked = person.get(page)
    if asked.url.path != page:  # it asks for the password again first
        asked = person.submit(asked, password=PASSWORD)
    assert asked.url.path == page
    found = re.search(r"\b[A-Z2-7]{32}\b", asked.text)
    assert found, asked.text
    assert "error" in person.submit(asked, code="000000").text
    return found[0], person.submit(asked, code=code_of(found[0]))


class Provider:
    def __init__(self, url: str) -> None:
        self.url = url

    def knows(self, subject: str, **claims: object) -> None:
        httpx.put(f"{self.url}/users/{subject}", json=claims, timeout=30).raise_for_status()


@pytest.fixture(scope="package")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with server.listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    with (tmp_path_factory.mktemp("provider") / "log").open("wb") as output:
        command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
        guarded = GuardedProcess(command, output=output, env=os.environ | {"PYTHONWARNINGS": "ignore"})
        url = f"http://127.0.0.1:{port}"
        try:
            eventually(lambda: _answers(f"{url}/.well-known/openid-configuration"), "the provider answers", 180)
            yield Provider(url)
        finally:
            guarded.stop()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="package")
def start_site(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Callable:
    """Start a site with these variables; a context manager."""
    import redis

    @contextmanager
    def start(**variables: str) -> Iterator[Site]:
        home, prefix = tmp_path_factory.mktemp("site"), f"t{secrets.token_hex(4)}:"
        settings = {"REDIS_URL": redis_url, "SIGNALBOX_PREFIX": prefix, "SIGNALBOX_HOME": str(home), **variables}
        with server.listen("127.0.0.1", 0) as listener, (home / "log").open("wb") as output:
            command = [sys.executable, Path(__file__).with_name("serve.py"), str(listener.fileno())]
            guarded = GuardedProcess(command, keep=[listener.fileno()], output=output, env=os.environ | settings)
            site = Site(server.address(listener).rstrip("/"), home)
            try:
                eventually(lambda: _answers(f"{site.url}/healthz"), "the site answers", 240)
                yield site
            finally:
                guarded.stop()
        with redis.Redis.from_url(redis_url) as client:
            for pattern in (prefix, f"{prefix[:-1]}-web"):
                remove(client, pattern)

    return start


@pytest.fixture(scope="package")
def site(start_site: Callable, provider: Provider) -> Iterator[Site]:
    with start_site(
        SIGNALBOX_SIGN_IN="oidc,totp,passkeys",
        SIGNALBOX_OIDC_URL=provider.url,
        SIGNALBOX_OIDC_CLIENT="signalbox",
        SIGNALBOX_OIDC_SECRET="a secret of the client",
        SIGNALBOX_OIDC_NAME="Acme",
        SIGNALBOX_SIGN_IN_GROUPS="ops=operator,bosses=supervisor",
    ) as site:
        yield site
        assert "Traceback" not in (site.home / "log").read_text()


@pytest.fixture
def another(request: pytest.FixtureRequest) -> Iterator[Callable[..., Person]]:
    """Makes a person who is not logged in, at the site of the tests or at the given one."""
    made: list[Person] = []

    def make(site: Site | None = None) -> Person:
        made.append(Person(site or request.getfixturevalue("site")))
        return made[-1]

    yield make
    for person in made:
        person.client.close()


@pytest.fixture
def person(another: Callable[..., Person]) -> Person:
    return another()
