"""Parses Redis URLs: one server, a unix socket, a cluster with several seeds, or a service that Sentinels watch.

::

    redis://[user:password@]host[:6379][/db][?option=value&...]                      rediss:// for TLS
    unix://[user:password@]/path/to/socket[?db=0&option=value&...]
    redis+cluster://[user:password@]host[:6379],host[:6379],...[/?option=value&...]  rediss+cluster:// for TLS
    redis+sentinel://[user:password@]host[:26379],host[:26379],.../service[/db][?...]  rediss+sentinel:// for TLS

Options are those of redis-py (``socket_timeout=2``, ``ssl_ca_certs=/etc/ca.pem``). User and password are those of the
data servers; Sentinels with accounts of their own get ``sentinel_username`` and ``sentinel_password``.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from redis.connection import URL_QUERY_ARGUMENT_PARSERS

from machines.engine.errors import BadInput

SCHEMES = (
    "redis",
    "rediss",
    "unix",
    "redis+cluster",
    "rediss+cluster",
    "redis+sentinel",
    "rediss+sentinel",
)
SERVER_PORT = 6379
SENTINEL_PORT = 26379
SENTINEL_OPTIONS = {"sentinel_username": "username", "sentinel_password": "password"}
# Options of redis-py that are text. Its table of parsers has all others.
TEXT_OPTIONS = frozenset(
    [
        "client_name",
        "lib_name",
        "lib_version",
        "encoding",
        "encoding_errors",
        "username",
        "password",
        "ssl_ca_certs",
        "ssl_ca_data",
        "ssl_ca_path",
        "ssl_certfile",
        "ssl_cert_reqs",
        "ssl_keyfile",
        "ssl_password",
    ]
)
HINT = "is a @, comma, / or # in the password written as %40, %2C, %2F or %23?"

_PARSERS: Any = URL_QUERY_ARGUMENT_PARSERS

Seed = tuple[str, int]  # host, port


@dataclass(frozen=True, slots=True)
class RedisURL:
    """A Redis URL in parts. ``seeds``: the hosts and ports it names, of Sentinels for a Sentinel URL; empty for a unix
    socket, which has a ``path``. ``service``: the name under which Sentinels watch the master. ``options``: keyword
    arguments of redis-py. The account and the options are not shown by ``repr``."""

    scheme: str
    seeds: tuple[Seed, ...]
    _: KW_ONLY
    path: str = ""
    service: str = ""
    database: int = 0
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    sentinel_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def tls(self) -> bool:
        """Tell whether connections are encrypted."""
        return self.scheme.startswith("rediss")

    @property
    def kind(self) -> str:
        """Return "server", "cluster" or "sentinel"."""
        return self.scheme.partition("+")[2] or "server"

    @property
    def account_options(self) -> dict[str, Any]:
        """Return the keyword arguments of a connection to a data server, asyncio or not: account, TLS and options."""
        found = dict(self.options)
        if self.username is not None:
            found["username"] = self.username
        if self.password is not None:
            found["password"] = self.password
        if self.tls:
            found["ssl"] = True
        if self.database:
            found["db"] = self.database
        return found

    @property
    def watcher_options(self) -> dict[str, Any]:
        """Return the keyword arguments of a connection to a Sentinel: its account and TLS."""
        found: dict[str, Any] = {name: value for name, value in self.options.items() if name.startswith("ssl_")}
        return found | ({"ssl": True} if self.tls else {}) | dict(self.sentinel_options)


def read_url(url: str) -> RedisURL:
    """Parse a Redis URL. Raises BadInput, whose text never repeats the URL: a password may stand there."""
    scheme = check_scheme(url)
    rest = url.partition("://")[2]
    if "://" not in url or "#" in rest:
        raise _refuse("it has no host, or a # in it")
    place, _, query = rest.partition("?")
    options, sentinel_options = _read_options(query, scheme)
    account, at, place = place.rpartition("@")
    username, password = _read_account(account) if at else (None, None)
    if scheme == "unix":
        if not place.startswith("/"):
            raise _refuse("it has no path of a socket")
        database = int(options.pop("db", 0))
        path = unquote(place)
        return RedisURL(scheme, (), path=path, database=database, username=username, password=password, options=options)
    hosts, _, path = place.partition("/")
    service, database = _read_path(scheme, path)
    return RedisURL(
        scheme,
        _read_seeds(scheme, hosts),
        service=service,
        database=int(options.pop("db", database)),
        username=username,
        password=password,
        options=options,
        sentinel_options=sentinel_options,
    )


def check_scheme(url: str) -> str:
    """Return the scheme of a Redis URL. Raises BadInput for any other URL."""
    scheme = url.partition(":")[0]
    if scheme not in SCHEMES:
        shown = scheme[:20] if ":" in url else ""
        raise BadInput(f"a Redis URL begins with one of {', '.join(SCHEMES)}://, not {shown!r}")
    return scheme


def _refuse(why: str) -> BadInput:
    return BadInput(f"not a Redis URL: {why} ({HINT})")


def _read_account(text: str) -> tuple[str | None, str | None]:
    username, _, password = text.partition(":")
    if "/" in text or "?" in text:
        raise _refuse("its user or password cannot be read")
    return unquote(username) or None, unquote(password) or None


def _read_seeds(scheme: str, hosts: str) -> tuple[Seed, ...]:
    port = SENTINEL_PORT if scheme.endswith("+sentinel") else SERVER_PORT
    names = hosts.split(",")
    if len(names) > 1 and "+" not in scheme:
        raise _refuse(f"{scheme}:// takes one host; {scheme}+cluster:// and {scheme}+sentinel:// take several")
    if "+" in scheme and not all(names):
        raise _refuse("one of its hosts is empty")
    return tuple(dict.fromkeys(_read_seed(name, port) for name in names))


def _read_seed(text: str, port: int) -> Seed:
    """Read ``host``, ``host:port`` or ``[address of IPv6]:port``."""
    host, colon, number = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, number = text, str(port)
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not number.isascii() or not number.isdecimal() or not 0 < int(number) < 65536:
        raise _refuse("a port is a number from 1 to 65535")
    if "[" in host or "]" in host or (":" in host) != bracketed:
        raise _refuse("a host cannot be read; an address of IPv6 stands in brackets")
    return unquote(host) or "localhost", int(number)


def _read_path(scheme: str, path: str) -> tuple[str, int]:
    """Return the service and the number of the database that a path names."""
    service, parts = "", [part for part in path.split("/") if part]
    if scheme.endswith("+sentinel"):
        if not parts:
            raise _refuse(f"write {scheme}://host:{SENTINEL_PORT},.../service with the name that the Sentinels watch")
        service = unquote(parts.pop(0))
    database = parts.pop(0) if parts else "0"
    if parts or not database.isascii() or not database.isdecimal():
        raise _refuse("after the host, and the service of Sentinels, only the number of a database may follow")
    if scheme.endswith("+cluster") and int(database):
        raise _refuse("a cluster has no database but 0")
    return service, int(database)


def _read_options(query: str, scheme: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the options for redis-py, and those of Sentinels."""
    options: dict[str, Any] = {}
    of_sentinels: dict[str, str] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name in SENTINEL_OPTIONS and scheme.endswith("+sentinel"):
            of_sentinels[SENTINEL_OPTIONS[name]] = text
        elif name in TEXT_OPTIONS:
            options[name] = text
        elif name in _PARSERS:
            options[name] = _read_option(name, text)
        else:
            raise BadInput(f"not a Redis URL: no option is called {name[:40]!r}")
    if scheme.endswith("+cluster") and options.pop("db", 0):
        raise _refuse("a cluster has no database but 0")
    return options, of_sentinels


def _read_option(name: str, text: str) -> Any:
    try:
        parse: Callable[[str], Any] = _PARSERS[name]
        return parse(text)
    except (TypeError, ValueError):
        raise BadInput(f"not a Redis URL: the value of the option {name!r} cannot be read") from None
