"""Runs the demo from start to end: preparation, processes, shutdown; makes the accounts of its logins."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from django.conf import settings
from django.contrib.auth import get_user_model

from dashboard.serving import server
from dashboard.serving.checks.system_checks import hide_password
from dashboard.site import home
from machines.conf import conf
from machines.conf.server import Cluster, FolderInUse, Server
from machines.conf.server.folder import Lock
from machines.people.permissions import ROLES
from machines.people.roles import make

from . import preparation, showcase
from .processes import GRACE, DemoFailed, Processes

INTERRUPT = 1 << (signal.SIGINT - 1)
COMMAND, MANAGE = ("signalbox", "signalbox") if home.IS_INSTALLED else ("make", "python manage.py")
PORTS = 50  # how many ports are tried
PACE = "600"  # ms of work in each job, so that the queues have a depth to look at
CONCURRENCY = "6"  # jobs at a time: a little more than the traffic asks for at its usual rate
LOOK_EVERY = 0.25  # seconds
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
READY_WITHIN = 60.0  # seconds; a slow machine compiles every module on its first start


@dataclass(frozen=True, kw_only=True)
class Options:
    """``rate``: events a second of the traffic, 0 for none. ``with_parent``: end when our parent process does.
    ``cluster``: run on a Redis Cluster instead of one server."""

    host: str
    port: int
    seed: int
    rate: float
    with_parent: bool
    cluster: bool = False


class Stopped(BaseException):
    """The demo was asked to end. Like KeyboardInterrupt it is caught only at the top."""


class Demo:
    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self.options = options
        self._print = say
        self._parent = Parent() if options.with_parent else None
        self._server: Server | Cluster | None = None

    def run(self) -> None:
        """Run the demo until it is asked to stop, and end every process that it started."""
        with ExitStack() as stack, _stoppable():
            try:
                self._play(stack)
            except Stopped:
                self._print("\nStopping ...")
            finally:
                _ignore_signals()
                stack.close()
        self._print(f"Stopped. Your data stays where it is; `{COMMAND} demo` goes on from there.")

    def _play(self, stack: ExitStack) -> None:
        self._print("Signalbox demo")
        lock = self._lock_folder(stack)
        listener = self._listen(stack)
        self._server = preparation.redis(stack, cluster=self.options.cluster)
        self._print_line("redis", _describe(self._server))
        self._print_line("database", preparation.database())
        self._print_line("machines", preparation.machines())
        self._print_line("roll-outs", showcase.start_rollouts())
        self._print_line("coverage", showcase.record_coverage())
        self._print_line("attached", showcase.fill_table(self.options.seed))
        self._print_line("drafts", preparation.drafts())
        self._print_line("schedules", preparation.schedules())
        accounts = prepare(conf.HOME)
        cast = Processes(conf.HOME / "logs", keep=[lock.descriptor], say=self._print)
        stack.callback(cast.stop)
        self._raise_curtain(cast, listener)
        self._announce(server.address(listener), accounts)
        while True:
            self._look(cast)
            time.sleep(LOOK_EVERY)

    def _lock_folder(self, stack: ExitStack) -> Lock:
        folder = conf.HOME
        try:
            lock = Lock(folder)
        except FolderInUse as error:
            who = f" (process {error.pid})" if error.pid else ""
            raise DemoFailed(
                f"a demo already runs in this folder{who}. Stop that one first, "
                f"or give this one a folder of its own: SIGNALBOX_HOME=/some/folder {COMMAND} demo"
            ) from None
        stack.callback(lock.release)
        self._print_line("folder", str(folder))
        return lock

    def _listen(self, stack: ExitStack) -> socket.socket:
        wanted = self.options.port
        if self.options.host not in settings.ALLOWED_HOSTS:  # the site has to answer to the name it is given here
            os.environ.setdefault("ALLOWED_HOSTS", ",".join([*settings.ALLOWED_HOSTS, self.options.host]))
        listener = stack.enter_context(server.listen(self.options.host, wanted, tries=PORTS))
        taken = listener.getsockname()[1]
        if wanted and taken != wanted:
            self._print_line("port", f"{wanted} is busy, took {taken}")
        return listener

    def _raise_curtain(self, cast: Processes, listener: socket.socket) -> None:
        os.environ.setdefault("SIGNALBOX_INSIGHT", str(conf.HOME / "insight"))
        os.environ.setdefault("SIGNALBOX_DEMO_PACE", PACE)  # the site shows its tour by it
        cast.start("site", "serve", "--fd", str(listener.fileno()), vital=True, keep=[listener.fileno()])
        cast.start("worker", "worker", "--grace", f"{GRACE / 2:g}", "--concurrency", CONCURRENCY)
        self._print_line("worker", "started")
        if self.options.rate:
            seed, rate = str(self.options.seed), f"{self.options.rate:g}"
            cast.start("traffic", "traffic", "--seed", seed, "--rate", rate)
            self._print_line("traffic", f"started, seed {seed}, {rate} events a second")
        self._wait_for(server.address(listener), cast)
        self._print_line("site", "answers")

    def _wait_for(self, url: str, cast: Processes) -> None:
        deadline = time.monotonic() + READY_WITHIN
        while not _is_healthy(url):
            self._look(cast)
            if time.monotonic() > deadline:
                raise DemoFailed(f"the site does not answer at {url}healthz; see {conf.HOME}/logs/site.log")
            time.sleep(0.1)

    def _announce(self, url: str, accounts: list[Login]) -> None:
        self._print(f"\n  Open    {url}\n")
        for account in accounts:
            password = account.password or f"(changed since: {MANAGE} changepassword)"
            self._print(f"  Log in  {account.name:<10} {password:<14} {account.may}")
        self._print(f"\n  Ctrl-C stops everything. Logs are in {conf.HOME / 'logs'}.\n")

    def _look(self, cast: Processes) -> None:
        if self._parent and self._parent.is_ending():
            raise Stopped
        if self._server and not self._server.running:
            self._print_line("redis", "ended by itself; starting it again on its data")
            self._server.revive()
        cast.look()

    def _print_line(self, what: str, words: str) -> None:
        self._print(f"  {what:<10} {words}")


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let Ctrl-C, TERM and a closed terminal end the demo, whatever it is doing."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    for number, handler in before.items():
        if number != signal.SIGHUP or handler is not signal.SIG_IGN:  # ignored under nohup, which is meant
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped


def _ignore_signals() -> None:
    """Ignore the signals, so that asking again changes nothing while the processes end."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def _describe(server: Server | Cluster | None) -> str:
    if server is None:
        return hide_password(conf.REDIS_URL)
    if isinstance(server, Cluster):
        copies = len(server.nodes) - server.primaries
        return f"cluster of {server.primaries} primaries and {copies} replicas, in {server.folder}"
    return f"Valkey, in {server.folder}"


def _is_healthy(url: str) -> bool:
    host = url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(host, timeout=2)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status in (200, 400)  # 400: its settings do not allow this host name
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class Parent:
    """Watches the process that started the demo (``make``). The demo ends with it.

    Ctrl-C in a terminal reaches both. A signal sent to ``make`` alone does not: after SIGTERM it ends us, after SIGKILL
    it is gone, but after SIGINT it waits for us to end, in silence. What shows it then is that it no longer catches
    SIGINT: it gives the signal back its default before it waits.
    """

    def __init__(self) -> None:
        self._pid = os.getppid()
        self._caught = self._catches()

    def is_ending(self) -> bool:
        return os.getppid() != self._pid or (self._caught and not self._catches())

    def _catches(self) -> bool:
        """Return whether the process has a handler for SIGINT; False if the system does not say (macOS)."""
        try:
            status = Path(f"/proc/{self._pid}/status").read_text()
        except OSError:
            return False
        masks = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
        return bool(masks and int(masks[0], 16) & INTERRUPT)


ADMIN = "admin"
ACCOUNTS = {
    ADMIN: "full access",
    "supervisor": "views, fires events, repairs and manages",
    "operator": "views and fires events",
    "viewer": "views only",
}


@dataclass(frozen=True, slots=True)
class Login:
    """``password`` is empty where it was changed since."""

    name: str
    password: str
    may: str


def prepare(folder: Path) -> list[Login]:
    """Make the missing accounts. Passwords are generated once and kept in ``folder``/logins.json."""
    kept = _keep_passwords(folder / "logins.json")
    return [Login(name, _prepare_account(name, kept[name]), may) for name, may in ACCOUNTS.items()]


def _prepare_account(name: str, password: str) -> str:
    """Return the password that works for the account, or an empty one when ours does not."""
    user, created = get_user_model().objects.get_or_create(
        username=name, defaults={"is_staff": name == ADMIN, "is_superuser": name == ADMIN}
    )
    if created:
        user.set_password(password)
        user.save(update_fields=["password"])
        if name in ROLES:
            user.groups.add(make(name))
    return password if user.check_password(password) else ""


def _keep_passwords(path: Path) -> dict[str, str]:
    """Return the passwords of earlier starts, with new ones where they are missing. Only its owner may read the
    file."""
    fresh = {name: secrets.token_urlsafe(9) for name in ACCOUNTS}
    text = home.keep(path, json.dumps(fresh, indent=2))
    os.chmod(path, 0o600)
    try:
        known = json.loads(text)
    except ValueError:
        known = {}
    return {name: str(known.get(name) or fresh[name]) for name in ACCOUNTS}
