"""What every test may ask for: a real server, a key prefix of its own, an engine on both.

``redis_url``   the server of this run: Valkey from its wheel, or what the environment names:
                REDIS_URL_TEST=redis://...          a server that runs already
                SIGNALBOX_TEST_SERVER=redis          Debian's redis-server, or any other program
                SIGNALBOX_TEST_ACCOUNT=worker        with the rights of this account (docs/acl.md) and no others
``prefix``      keys of this test only; Django's settings point at them, they are removed afterwards
``engine``      an Engine on that prefix; ``machines.connections.get_engine()`` gives one on the same keys

``tests/selection.py`` gives each test its markers by these fixtures.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings as django_settings
from django.db import connections
from django.test import TransactionTestCase
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from dashboard.serving.checks import redis_accounts
from dashboard.serving.middleware import request_ids
from dashboard.site import stores
from machines.conf.server import Server
from machines.connections import engine_at_hand
from machines.engine.connection import library_loader, retries
from tests.clusters import Cluster
from tests.configuration import configure

from . import once

# A submission is judged by the same examples as the one before it; a laptop goes on looking for new ones. No example is
# judged by the time that it takes, and all examples of a property share the fixtures of its test.
hypothesis_settings.register_profile(
    "signalbox", derandomize=bool(os.environ.get("CI")), deadline=None, suppress_health_check=list(HealthCheck)
)
hypothesis_settings.load_profile("signalbox")

OWNERS: dict[str, str] = {}
"""URL of an account -> that of the server's owner, who may remove what tests leave."""
LOOKING = ("scan", "dump", "config|get", "monitor")
"""What tests look with, and the product does not."""
NOWHERE = "unix:///nonexistent/signalbox-test.sock"
IN_CI = bool(os.environ.get("CI"))
PROGRAMS = {"": None, "valkey": None, "redis": "redis-server"}
# Django's own fixtures log in, and sessions live in Redis.
NEED_PREFIX = {"client", "admin_client", "async_client", "engine"}
pytest_plugins = ["tests.selection"]


def pytest_configure(config: pytest.Config) -> None:
    """A test that forgets to ask for a prefix must not reach the server of whoever runs it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what runs in its background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # else no process of a test could be interrupted
    # A test that takes Redis away looks at once, unless it says otherwise.
    retries.RETRY_FOR = 0.0
    configure(django_settings, RETRY_FOR=0)
    configure(django_settings, REDIS_URL=NOWHERE, TEST_PREFIX="shared")  # each test sets a prefix by itself
    django_settings.CACHES = stores.caches(NOWHERE, "test:")
    configure(django_settings, HOME=Path(tempfile.gettempdir()) / "signalbox-test-home-that-is-not-there")
    django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    _use_database(config, os.environ.get("DATABASE_URL_TEST", ""))
    once.share()


def _use_database(config: pytest.Config, url: str) -> None:
    """What DATABASE_URL names is somebody's; tests use DATABASE_URL_TEST, or SQLite in a file of their own.

    A file, because the site fixture serves from other threads, which a database in memory does not take well.
    """
    folder = tempfile.TemporaryDirectory(prefix="signalbox-test-")
    config.add_cleanup(folder.cleanup)
    database = stores.database(url, Path(folder.name))
    if not url:
        database["TEST"] = {"NAME": str(Path(folder.name) / "test.sqlite3")}
    django_settings.DATABASES["default"].clear()
    django_settings.DATABASES["default"].update(database)
    connections.configure_settings(django_settings.DATABASES)
    del connections["default"]


def missing(what: str, hint: str) -> None:
    """A laptop skips what it does not have; CI must have it."""
    if IN_CI:
        pytest.fail(f"{what} is missing here, and CI must have it: {hint}")
    pytest.skip(f"{what} is missing here; {hint}")


def program(name: str) -> str | None:
    """The server program called ``name`` in SIGNALBOX_TEST_SERVER, or None for the wheel's Valkey."""
    named = PROGRAMS.get(name, name)
    if named is not None and shutil.which(named) is None:
        missing(f"the program {named}", "install it (Debian: redis-server)")
    return named


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server of this run."""
    if given := os.environ.get("REDIS_URL_TEST"):
        yield given
        return
    named = program(os.environ.get("SIGNALBOX_TEST_SERVER", ""))
    with Server(tmp_path_factory.mktemp("server"), program=named) as server:
        account = os.environ.get("SIGNALBOX_TEST_ACCOUNT")
        yield as_account(server.url, account) if account else server.url


def as_account(url: str, name: str) -> str:
    """The same server for an account of ``dashboard.serving.checks.redis_accounts`` that is made there, on the keys of
    tests."""
    with redis.Redis.from_url(url) as admin:
        rules = [*redis_accounts.ACCOUNTS[name].rules("t"), *(f"+{command}" for command in LOOKING), ">a-password"]
        admin.execute_command("ACL", "SETUSER", name, *rules)
        admin.config_set("notify-keyspace-events", "K$")  # accounts may not
        library_loader.put(admin)  # nor this
    made = url.replace("unix://", f"unix://{name}:a-password@", 1)
    OWNERS[made] = url
    return made


@pytest.fixture(scope="session")
def other_redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Debian's Redis 7.0, beside the server of this run: for what the two are known to do differently."""
    with Server(tmp_path_factory.mktemp("redis"), program=program("redis")) as server:
        yield server.url


@pytest.fixture(scope="session")
def program_of_this_run() -> str | None:
    """The server program the suite runs on; None for the wheel's Valkey."""
    return program(os.environ.get("SIGNALBOX_TEST_SERVER", ""))


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory, program_of_this_run: str | None) -> Iterator[list]:
    """A cluster of three servers. A test that breaks one starts a cluster of its own."""
    from .engine.connection import clusters

    with clusters.running(tmp_path_factory.mktemp("cluster"), program_of_this_run) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, program_of_this_run: str | None) -> Iterator[Cluster]:
    """Three primaries with a replica each, for the tests of one module that stop nodes or fail over."""
    with Cluster(tmp_path_factory.mktemp("cluster"), program=program_of_this_run, persistent=True) as cluster:
        yield cluster


@pytest.fixture
def own_server(tmp_path: Path, program_of_this_run: str | None) -> Iterator[Server]:
    """A server of this test's own, of the kind this run uses; its data is on no disk."""
    with Server(tmp_path / "server", program=program_of_this_run, persistent=False) as server:
        yield server


@pytest.fixture(scope="session")
def cleaner(redis_url: str) -> Iterator[redis.Redis]:
    """A client that may remove what tests leave on the server of this run."""
    with redis.Redis.from_url(OWNERS.get(redis_url, redis_url), retry=Retry(NoBackoff(), 0)) as client:
        yield client


@pytest.fixture
def prefix(redis_url: str, cleaner: redis.Redis, settings) -> Iterator[str]:
    """A key prefix of this test's own, with the site, its cache and its sessions pointed at it."""
    prefix = f"t{secrets.token_hex(4)}:"
    configure(settings, REDIS_URL=redis_url, PREFIX=prefix)
    settings.CACHES = stores.caches(redis_url, prefix)
    yield prefix
    request_ids.ids.wait()
    configure(settings, REDIS_URL=redis_url, PREFIX=prefix)
    if (made := engine_at_hand()) is not None:
        made.client.close()
    remove(cleaner, prefix.removesuffix(":"))  # with what cache and sessions put beside it


def remove(client: redis.Redis, prefix: str) -> None:
    """Remove every key that starts with ``prefix``, and no other."""
    if keys := list(client.scan_iter(match=f"{prefix}*", count=10_000)):
        client.unlink(*keys)


@pytest.fixture
def engine(redis_url: str, prefix: str) -> Iterator:
    """An engine on this test's prefix."""
    from machines.engine import Engine

    engine = Engine.from_url(redis_url, prefix=prefix)
    yield engine
    engine.client.close()


@pytest.fixture
def site(prefix: str, transactional_db: None) -> Iterator[str]:
    """The whole site, websockets included, under uvicorn in a thread of this process. Its URL, without a slash."""
    from dashboard.serving import server as serving

    with serving.listen("127.0.0.1", 0) as listener:
        server = serving.server()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="site")
        thread.start()
        yield serving.address(listener).rstrip("/")
        server.should_exit = True
        thread.join(timeout=60)
        assert not thread.is_alive(), "the site does not stop"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker) -> None:
    """The database of this process, with its tables; a test that commits leaves it empty."""
    from . import database

    with django_db_blocker.unblock():
        database.keep_rows()
    flush = TransactionTestCase._fixture_teardown

    def empty(case: TransactionTestCase) -> None:
        if case.available_apps is not None or case.serialized_rollback or not database.empty("default"):
            flush(case)

    TransactionTestCase._fixture_teardown = empty


@pytest.fixture(autouse=True)
def _sessions_have_a_place(request: pytest.FixtureRequest) -> None:
    """Django's client fixtures come with a prefix, whether the test asks for one or not."""
    if NEED_PREFIX & set(request.fixturenames):
        request.getfixturevalue("prefix")


@pytest.fixture(autouse=True)
def _accounts_of_fixtures_are_not_in_the_audit(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nearly every test makes accounts, and looks for other things in the audit; the marker asks for their entries."""
    from machines.people.roles import leave_accounts_unrecorded

    wanted = request.node.get_closest_marker("account_audit")
    with contextlib.nullcontext() if wanted else leave_accounts_unrecorded():
        yield


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """A PostgreSQL in which databases may be made and dropped."""
    url = os.environ.get("POSTGRES_URL_TEST", "")
    if not url:
        missing("POSTGRES_URL_TEST", "set it to postgres://user:password@host/postgres, or run it by .ci/postgres")
    return url
