"""What `manage.py check` says about a server, told by real servers that are set up wrong."""

import re

import pytest
import redis

from dashboard.serving.checks import system_checks
from machines.conf.server import Server
from tests.configuration import configure
from tests.installation.processes import ROOT, eventually


def found(settings=None) -> dict[str, str]:
    return {message.id: message.msg for message in system_checks.redis_server(None)}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A server of this module's own, which tests may set up as badly as they like."""
    with Server(tmp_path_factory.mktemp("own")) as server:
        yield server.url


@pytest.fixture
def server(own, prefix, settings):
    configure(settings, REDIS_URL=own)
    with redis.Redis.from_url(own, decode_responses=True) as client:
        before = client.config_get("*")
        yield client
        for name in ("maxmemory-policy", "appendonly", "save", "notify-keyspace-events"):
            client.config_set(name, before[name])
        eventually(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the log is whole again")


def test_a_good_server_has_nothing_to_say(server):
    assert found() == {}


def test_looking_changes_nothing(server):
    server.config_set("notify-keyspace-events", "Kl")
    before = server.config_get("*")
    found()
    assert server.config_get("*") == before


def test_a_server_that_evicts_is_an_error(server):
    server.config_set("maxmemory-policy", "allkeys-lru")
    assert "maxmemory-policy is allkeys-lru" in found()["signalbox.E004"]


def test_a_server_that_forgets_is_a_warning(server):
    server.config_set("appendonly", "no")
    server.config_set("save", "")
    assert "keeps nothing over a restart" in found()["signalbox.W005"]


def test_snapshots_alone_are_enough(server):
    server.config_set("appendonly", "no")
    server.config_set("save", "3600 1")
    assert found() == {}


@pytest.mark.parametrize(
    ("rules", "id"),
    [
        (["-config"], "signalbox.W006"),
        (["-config|set"], "signalbox.W006"),
    ],
)
def test_an_account_that_may_not_do_enough_is_told_what_it_lacks(server, own, settings, rules, id):
    server.acl_setuser(
        "narrow", enabled=True, passwords=["+secret"], keys=["*"], channels=["*"], commands=["+@all", *rules]
    )
    configure(settings, REDIS_URL=own.replace("unix://", "unix://narrow:secret@"))
    assert set(found()) == {id}


def test_a_server_that_is_away_is_a_warning_without_its_password(prefix, settings):
    configure(settings, REDIS_URL="redis://:hunter2@127.0.0.1:1/0")
    [(id, message)] = found().items()
    assert id == "signalbox.W001"
    assert "redis://:***@127.0.0.1:1/0" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host/0", "redis://host/0"),
        ("redis://:pw@host/0", "redis://:***@host/0"),
        ("rediss://me:pw@host:1/0", "rediss://me:***@host:1/0"),
        ("unix://me:pw@/tmp/s", "unix://me:***@/tmp/s"),
    ],
)
def test_a_url_is_shown_without_its_password(url, shown):
    assert system_checks.hide_password(url) == shown


def test_a_misspelt_variable_is_noticed(monkeypatch):
    monkeypatch.setenv("SIGNALBOX_PREFX", "x:")
    [message] = system_checks.variables(None)
    assert message.id == "signalbox.W007"
    assert message.hint == "Did you mean SIGNALBOX_PREFIX?"


def test_sessions_elsewhere_are_an_error(settings):
    assert system_checks.stores(None) == []
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.file"
    assert [message.id for message in system_checks.stores(None)] == ["signalbox.E008"]


def test_debug_is_a_warning_where_strangers_may_look(settings):
    settings.DEBUG = True
    settings.ALLOWED_HOSTS = ["localhost"]
    assert system_checks.debug(None) == []
    settings.ALLOWED_HOSTS = ["localhost", "box.example.com"]
    assert [message.id for message in system_checks.debug(None)] == ["signalbox.W009"]


def test_every_id_is_on_the_troubleshoot_page():
    page = (ROOT / "docs" / "troubleshoot.md").read_text()
    source = (ROOT / "dashboard" / "serving" / "checks" / "system_checks.py").read_text()
    ids = set(re.findall(r'report\("([EW]\d+)"', source))
    assert len(ids) > 14
    assert {id for id in ids if f"`signalbox.{id}`" not in page} == set()
