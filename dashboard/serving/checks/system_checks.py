"""Django system checks of an installation. Each has a stable id and a hint.

    W001  Redis does not answer                     W006  notifications cannot be switched on
    E002  the server is too old                     W007  a SIGNALBOX_ variable that nothing reads
    E003  the server has no functions               E008  sessions or cache are on no shared store
    E004  the server may throw keys away            W009  DEBUG is on while the site answers to foreign names
    W005  the server keeps nothing over a restart
    E016  the dict SIGNALBOX has a name or value that does not fit
    W012  slots of the cluster have no owner        E011  the account lacks a permission
    W013  one lost shard would stop the whole cluster
    W014  fewer than two replicas                   W015  min-replicas-to-write is not set

On a cluster each primary is asked, and a message names the nodes that it is about.
A server that is away is a warning: migrations and ``createsuperuser`` do not need it, and the site comes back with it.
A server that would lose data is an error, and nothing starts on it.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.core.checks import ERROR, CheckMessage, Error, Info, Tags, Warning, register, run_checks
from django.core.exceptions import ImproperlyConfigured
from django_redis.exceptions import ConnectionInterrupted
from redis import RedisCluster
from redis.exceptions import ResponseError

from dashboard.live.limits import limits
from dashboard.site import environment
from dashboard.site.stores import SESSION_ENGINES
from machines.conf import conf
from machines.conf.project import TAG, WORKER_TAG
from machines.conf.table import find_problems, label
from machines.engine.connection import server_permissions
from machines.engine.connection.calls import Caller
from machines.engine.connection.client import FAILURES
from machines.engine.connection.library_loader import MISSING
from machines.engine.connection.routing import list_nodes
from machines.engine.connection.server_permissions import find_denial
from machines.engine.errors import EngineFault, LibraryNotLoaded, NotPermitted, SignalboxError

OLDEST = (7, 0)
SLOTS = 16384
# Read elsewhere than in settings.py: by the test suite and the test kit.
OTHER_NAMES = ("SIGNALBOX_TEST_SERVER", "SIGNALBOX_TEST_ACCOUNT", "SIGNALBOX_TEST_URL")
LOCAL = frozenset({"localhost", ".localhost", "127.0.0.1", "[::1]", "testserver"})


KINDS = {"E": Error, "W": Warning, "I": Info}


def report(id: str, text: str, hint: str) -> CheckMessage:
    """Make the message of a check. The letter of its ``id`` says how grave it is."""
    return KINDS[id[0]](text, hint=hint, id=f"signalbox.{id}")


@register(TAG, WORKER_TAG)
def redis_server(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the server, or each primary of a cluster."""
    from machines.connections import get_engine

    if find_problems():  # which machines/conf/project.py says
        return []
    try:
        client = get_engine().client
        nodes = list_nodes(client)
    except (*FAILURES, SignalboxError) as error:
        return [_describe(error, "")]
    if not isinstance(client, RedisCluster):
        return _ask(client, NODE_CHECKS)
    found: dict[tuple[str, str], list[tuple[str, CheckMessage]]] = {}
    for node in nodes:
        address = _describe_address(node)
        for message in _ask(node, (*NODE_CHECKS, *CLUSTER_CHECKS), address):
            found.setdefault((str(message.id), message.msg), []).append((address, message))
    return [_name_nodes(each, len(nodes)) for each in found.values()]


def _ask(
    client: Any, checks: tuple[Callable[[Any], Iterator[CheckMessage]], ...], node: str = ""
) -> list[CheckMessage]:
    """Run checks until one meets an error, and return all that was found."""
    found: list[CheckMessage] = []
    try:
        client.ping()
        for check in checks:
            found += check(client)
            if any(message.id == "signalbox.E011" for message in found):
                break  # the others would say the same again
    except (*FAILURES, SignalboxError) as error:
        found.append(_describe(error, node))
    return found


def _describe(error: Exception, node: str) -> CheckMessage:
    if server_permissions.is_denied(str(error)) or isinstance(error, NotPermitted):
        named = server_permissions.find_missing(str(error)) or "a permission"
        return _report_lacking([*getattr(error, "missing", ())] or [named])
    place = f"the node {node} of {hide_password(conf.REDIS_URL)}" if node else hide_password(conf.REDIS_URL)
    setting = "REDIS_URL" if environment.is_own_site() else label("REDIS_URL")
    hint = f"Start it, or set {setting}. `signalbox demo` brings a server of its own."
    return report("W001", f"Redis does not answer at {place}: {error}", hint)


def _describe_address(node: Any) -> str:
    connection = node.connection_pool.connection_kwargs
    return f"{connection['host']}:{connection['port']}"


def _name_nodes(found: list[tuple[str, CheckMessage]], primaries: int) -> CheckMessage:
    """Return one message for all nodes that it is about."""
    _, message = found[0]
    if message.id != "signalbox.W001":
        where = "each primary" if len(found) == primaries else ", ".join(address for address, _ in found)
        message.msg = f"{message.msg} (on {where} of the cluster)"
    return message


def _check_version(client: Any) -> Iterator[CheckMessage]:
    info = client.info("server")
    words = re.findall(r"\d+", str(info.get("redis_version", "0")))
    if tuple(int(word) for word in words[:2]) < OLDEST:
        text = f"the server is version {info.get('redis_version')}; Signalbox needs Redis 7.0 or later, or Valkey"
        yield report("E002", text, "Functions came with Redis 7.0.")


def _check_functions(client: Any) -> Iterator[CheckMessage]:
    try:
        client.execute_command("FCALL_RO", "sb_library", 0)
    except ResponseError as error:
        if MISSING in str(error) or server_permissions.is_denied(str(error)):
            return
        hint = "The account in REDIS_URL needs +function and +fcall, and the server must not rename them away."
        yield report("E003", f"the server refuses FUNCTION: {error}", hint)


def _check_library(client: Any) -> Iterator[CheckMessage]:
    """Look at the whole installation: of a cluster, at each primary that answers."""
    from machines.connections import get_engine

    try:
        get_engine().require_library()
    except LibraryNotLoaded as error:  # a warning: what starts now goes on by itself once the library is there
        hint = "Run `signalbox library load` with the deployment account: docs/acl.md has its line."
        yield report("W011", error.message, hint)
    except NotPermitted:
        raise
    except EngineFault as error:
        yield report("E012", f"{error.message} ({error.code})", "docs/deploy.md#upgrade")


def _check_permissions(client: Any) -> Iterator[CheckMessage]:
    """Ask for each command that a step may run: a step that lacks one is refused half-way."""
    from machines.connections import get_prefix

    try:
        missing = Caller(client, get_prefix()).missing_commands(f"{get_prefix()}permitted")
    except NotPermitted:
        raise
    except EngineFault:  # no library, or another release's, which cannot be asked
        return
    if missing:
        yield _report_lacking(missing)


def _report_lacking(missing: list[str]) -> CheckMessage:
    text = f"the account in REDIS_URL may not run what Signalbox needs on Redis; it lacks {', '.join(missing)}"
    return report("E011", text, "docs/acl.md has the line of each account.")


def _check_eviction(client: Any) -> Iterator[CheckMessage]:
    policy = client.info("memory").get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        text = f"maxmemory-policy is {policy}: a full server would throw instances and jobs away"
        yield report("E004", text, "Set maxmemory-policy to noeviction, in the server's configuration too.")


def _check_persistence(client: Any) -> Iterator[CheckMessage]:
    info = client.info("persistence")
    if not info.get("aof_enabled") and _read_config(client, "save") == "":
        text = "the server keeps nothing over a restart: neither append-only file nor snapshots are on"
        yield report("W005", text, "Set appendonly to yes.")


def _check_replication(client: Any) -> Iterator[CheckMessage]:
    """Look at servers with replicas and at nodes of clusters, which fail over to a replica."""
    info = client.info("replication")
    replicas = int(info.get("connected_slaves", 0))
    if not replicas and not client.info("cluster").get("cluster_enabled"):
        return
    if replicas < 2:
        text = f"the server has {replicas} replica{'s' * (replicas != 1)}: a failover leaves a single copy or none"
        yield report("W014", text, "Give each shard two replicas: docs/durability.md#failover.")
    if replicas and _read_config(client, "min-replicas-to-write") == "0":
        text = "min-replicas-to-write is 0: a primary cut off from its replicas goes on writing what a failover loses"
        hint = "Set min-replicas-to-write to 1 and min-replicas-max-lag to 10: docs/durability.md#failover."
        yield report("W015", text, hint)


def _check_notifications(client: Any) -> Iterator[CheckMessage]:
    """Ask by setting what is set already, which changes nothing."""
    try:
        client.config_set("notify-keyspace-events", _read_config(client, "notify-keyspace-events") or "")
    except ResponseError:
        text = "notify-keyspace-events cannot be set here: unless the server's configuration says K$, open pages are "
        text += "refreshed every few seconds only"
        yield report("W006", text, "Set notify-keyspace-events to K$ in the server's configuration, or allow CONFIG.")


def _check_coverage(client: Any) -> Iterator[CheckMessage]:
    info = client.cluster("INFO")
    if int(info["cluster_slots_ok"]) < SLOTS:
        lost = SLOTS - int(info["cluster_slots_ok"])
        text = f"{lost} slots of the cluster have no owner that answers: machines with partitions there are incomplete"
        hint = "Bring the lost nodes back, or give their slots to others: `redis-cli --cluster check`."
        yield report("W012", text, hint)
    if _read_config(client, "cluster-require-full-coverage") == "yes":
        text = "cluster-require-full-coverage is yes: when one shard is lost, all others refuse calls, too"
        hint = "Set cluster-require-full-coverage to no: pages then show the other shards, and name what is missing."
        yield report("W013", text, hint)


NODE_CHECKS: tuple[Callable[[Any], Iterator[CheckMessage]], ...] = (
    _check_version,
    _check_functions,
    _check_library,
    _check_permissions,
    _check_eviction,
    _check_persistence,
    _check_replication,
    _check_notifications,
)
"""About one server, or one primary of a cluster."""
CLUSTER_CHECKS: tuple[Callable[[Any], Iterator[CheckMessage]], ...] = (_check_coverage,)
"""About a primary of a cluster."""


@register(TAG)
def live_limits(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the names of the limits of the live view, which are keys of ``SIGNALBOX["LIVE"]``."""
    if find_problems():  # which machines/conf/project.py says
        return []
    try:
        limits()
    except ImproperlyConfigured as error:
        return [report("E016", str(error), "dashboard/live/limits.py has every limit.")]
    return []


@register(TAG, WORKER_TAG)
def variables(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Warn of misspelt variables, which would silently do nothing. Only ours are looked at; the environment holds much
    else."""
    if not environment.is_own_site():  # another project has variables of its own
        return []
    known = [*environment.of_process().names, *OTHER_NAMES]
    strangers = [name for name in os.environ if name.startswith("SIGNALBOX_") and name not in known]
    return [report("W007", f"nothing reads the variable {name}", _suggest(name, known)) for name in strangers]


@register(TAG, WORKER_TAG, Tags.caches)
def stores(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if not environment.is_own_site():  # another project knows where its sessions and its cache have to be
        return []
    backend = settings.CACHES.get("default", {}).get("BACKEND", "")
    sessions = settings.SESSION_ENGINE
    if backend.startswith("django_redis.") and sessions in SESSION_ENGINES.values():
        return []
    text = f"sessions ({sessions}) are neither on Redis nor in SQL, or the cache ({backend}) is not on Redis: other "
    text += "processes would not see them"
    return [report("E008", text, "Keep CACHES and SESSION_ENGINE as dashboard/settings.py has them.")]


@register(TAG, Tags.security)
def debug(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    foreign = sorted(set(settings.ALLOWED_HOSTS) - LOCAL)
    if not environment.is_own_site() or not settings.DEBUG or not foreign:
        return []
    text = f"DEBUG is on, and the site answers to {', '.join(foreign)}: errors would show its insides to strangers"
    return [report("W009", text, "Unset DEBUG.")]


def cache_rights() -> list[CheckMessage]:
    """Report what the account in CACHE_URL lacks. Called where a site starts: the account of a worker needs no
    cache."""
    if not environment.is_own_site():
        return []
    try:
        cache.get("probe")
    except (*FAILURES, ConnectionInterrupted, SignalboxError) as error:
        if (denied := find_denial(error)) is not None:
            text = f"the account in CACHE_URL may not use cache and sessions: {denied}"
            return [report("E011", text, "docs/acl.md has the line of the account of the site.")]
    return []


def refusals() -> str:
    """Return why nothing may start on this installation, in words; "" if nothing prevents it."""
    found = [message for message in [*run_checks(tags=[TAG]), *cache_rights()] if message.level >= ERROR]
    return "\n".join(f"{message.msg} ({message.id}). {message.hint}" for message in found)


def hide_password(url: str) -> str:
    """Return the URL without its password."""
    return re.sub(r"(?<=://)([^/@]*:)[^/@]*@", r"\1***@", url)


def _read_config(client: Any, name: str) -> str | None:
    """Return a server setting, or None if CONFIG is forbidden."""
    try:
        found = client.config_get(name)
    except ResponseError:
        return None
    value = next(iter(found.values()), "")
    return value.decode() if isinstance(value, bytes) else str(value)


def _suggest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]}?" if close else f"These exist: {', '.join(n for n in known if 'SIGNALBOX' in n)}."
