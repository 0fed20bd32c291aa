"""Redis URLs in parts: servers, sockets, clusters with several seeds, services that Sentinels watch."""

import traceback

import pytest

from machines.engine import BadInput
from machines.engine.connection.redis_url import read_url
from tests.cases import for_each


def test_a_server_has_one_host_a_database_an_account_and_options():
    found = read_url("rediss://me:p%40ss@db.example:7000/3?socket_timeout=2.5&ssl_ca_certs=/etc/ca.pem&protocol=2")
    assert (found.kind, found.tls, found.seeds) == ("server", True, (("db.example", 7000),))
    assert found.account_options == {
        "username": "me",
        "password": "p@ss",
        "ssl": True,
        "db": 3,
        "socket_timeout": 2.5,
        "ssl_ca_certs": "/etc/ca.pem",
        "protocol": 2,
    }
    plain = read_url("redis://")
    assert (plain.seeds, plain.tls, plain.account_options) == ((("localhost", 6379),), False, {})
    assert read_url("redis://[::1]").seeds == (("::1", 6379),)
    assert read_url("redis://h?db=4").database == 4


def test_a_socket_has_a_path():
    found = read_url("unix://me:secret@/run/a%20b/redis.sock?db=2")
    assert (found.kind, found.path, found.seeds, found.database) == ("server", "/run/a b/redis.sock", (), 2)
    assert (found.username, found.password) == ("me", "secret")


def test_a_cluster_has_any_number_of_seeds():
    found = read_url("redis+cluster://:secret@a:7001,b,[::1]:7003,a:7001/?max_connections=100")
    assert (found.kind, found.seeds) == ("cluster", (("a", 7001), ("b", 6379), ("::1", 7003)))
    assert found.account_options == {"password": "secret", "max_connections": 100}
    assert read_url("rediss+cluster://a").account_options == {"ssl": True}


def test_sentinels_have_a_service_and_accounts_of_their_own():
    found = read_url(
        "rediss+sentinel://me:secret@a,b:7002/main/1?sentinel_username=w&sentinel_password=x&ssl_ca_certs=/ca"
    )
    assert (found.kind, found.service, found.database) == ("sentinel", "main", 1)
    assert found.seeds == (("a", 26379), ("b", 7002))
    assert found.account_options == {
        "username": "me",
        "password": "secret",
        "ssl": True,
        "ssl_ca_certs": "/ca",
        "db": 1,
    }
    assert found.watcher_options == {"username": "w", "password": "x", "ssl": True, "ssl_ca_certs": "/ca"}


def test_neither_account_nor_options_are_shown():
    found = read_url("redis+sentinel://me:hunter2@a/main?sentinel_password=hunter3")
    assert "hunter" not in repr(found)
    assert "me" not in repr(found).replace("scheme", "")


@for_each(
    "url, why",
    [
        ("redis+sentinel://a", "/service"),
        ("redis+sentinel://a/", "/service"),
        ("redis+sentinel://a/main/x", "number of a database"),
        ("redis+sentinel://a/main/1/2", "number of a database"),
        ("redis+cluster://a/1", "no database but 0"),
        ("redis+cluster://a?db=1", "no database but 0"),
        ("redis+cluster://a,,b", "one of its hosts is empty"),
        ("redis+cluster://", "one of its hosts is empty"),
        ("redis://a,b", r"redis\+cluster:// and redis\+sentinel:// take several"),
        ("redis://a:0", "a port is a number"),
        ("redis://a:65536", "a port is a number"),
        ("redis://a:²", "a port is a number"),
        ("redis://a:b:6379", "brackets"),
        ("redis://[::1", "port|brackets"),
        ("redis://a/x", "number of a database"),
        ("redis://a#b", "no host, or a #"),
        ("redis:a", "no host"),
        ("unix://", "no path"),
        ("redis://a?socket_timeout=soon", "'socket_timeout' cannot be read"),
        ("redis://a?sentinel_password=x", "no option is called 'sentinel_password'"),
        ("redis://a?hair=red", "no option is called 'hair'"),
        ("http://a", "begins with one of redis, rediss"),
    ],
)
def test_a_url_that_cannot_be_read_says_what_would_be_right(url, why):
    with pytest.raises(BadInput, match=why) as caught:
        read_url(url)
    assert "Redis URL" in str(caught.value)


@pytest.mark.parametrize(
    "url", ["redis://u:hunter2/x@h", "redis+cluster://u:hunter2#@h", "redis+sentinel://u:hunter2@h:port/s"]
)
def test_no_error_repeats_a_password(url):
    with pytest.raises(BadInput) as caught:
        read_url(url)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
