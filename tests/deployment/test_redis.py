"""deploy/redis on real servers: the configuration, the accounts, and a restart that loses nothing."""

from __future__ import annotations

import pytest
import redis

from dashboard.serving.checks.redis_accounts import ACCOUNTS
from machines.engine import Engine
from machines.management import library_command
from tests.engine.builders import door

from . import files
from .installation import RedisServer, write_secrets

pytestmark = pytest.mark.second_redis


@pytest.mark.parametrize("program", ["", "redis"], ids=["valkey", "redis 7.0"])
def test_the_configuration_and_the_accounts_hold_over_a_restart(tmp_path, program):
    secrets = write_secrets(tmp_path / "secrets")
    server = RedisServer(tmp_path / "redis", secrets, program)
    with server.running():
        assert library_command.run(["load", "--url", server.url("deploy", secrets)], {}) == 0
        engine = Engine.from_url(server.url("web", secrets))
        engine.publish(door())
        engine.create("door", "north")
        engine.fire("door", "north", "open")
        engine.client.close()
    with server.running():
        engine = Engine.from_url(server.url("worker", secrets))
        assert engine.get("door", "north").state == "Open"
        engine.client.close()
        with server.client(
            username="signalbox-admin", password=(secrets / "redis_password_admin").read_text()
        ) as admin:
            wanted = {"maxmemory-policy": "noeviction", "appendonly": "yes", "notify-keyspace-events": "K$"}
            found = {name: admin.config_get(name)[name] for name in wanted}
            assert {name: "".join(sorted(value)) for name, value in found.items()} == {
                name: "".join(sorted(value)) for name, value in wanted.items()
            }
        with server.client(username="signalbox-probe", password="none") as probe:
            assert probe.ping()
            with pytest.raises(redis.exceptions.NoPermissionError):
                probe.get("sb:machines")
        with server.client() as nobody, pytest.raises(redis.exceptions.AuthenticationError):
            nobody.ping()


@pytest.mark.pure
def test_the_lines_of_the_accounts_are_those_of_the_product():
    lines = dict(line.split(" ", 2)[1:] for line in files.read("redis/users.acl").splitlines())
    for name in ("deploy", "web", "worker"):
        reset, *rules = ACCOUNTS[name].rules()
        assert reset == "reset"
        assert lines[f"signalbox-{name}"].split() == [*rules, f"#{name.upper()}"]
    assert lines["default"] == "off nopass ~* &* +@all", "Redis 7.0 could not read its file again: docs/acl.md"
    assert lines["signalbox-probe"].split() == ["on", "nopass", "-@all", "+ping"]
