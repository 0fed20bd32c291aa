"""``signalbox library load``: puts the functions library onto the server, for the deployment account.

It needs Redis alone. Where the address of Redis is in the environment it runs without Django and its settings, so that
a deployment gives it no other secret; ``manage.py library load`` takes the address from the project's settings.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from machines.conf.table import REDIS
from machines.engine import Engine
from machines.engine.connection import library
from machines.engine.connection.library_loader import Visit
from machines.engine.errors import SignalboxError
from machines.engine.keys import PREFIX

URLS = ("REDIS_URL", "REDIS_URL_FILE")
ACTIONS = ("load",)
ABOUT = (
    "Loads the functions library of this release onto the Redis server, or onto each primary of a cluster; never over "
    "that of a newer release. Run it with the deployment account, once for each release and after nodes were added."
)


class Failed(Exception):
    """Some server has no library that this release works with. ``str()`` says which, and what to do."""


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command without Django; return the exit code."""
    parser = ArgumentParser(prog="signalbox library", description=ABOUT)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument(
        "--url", help=f"the Redis of the engine (default: REDIS_URL or the file REDIS_URL_FILE, else {REDIS})"
    )
    parser.add_argument(
        "--prefix",
        default=environment.get("SIGNALBOX_PREFIX") or PREFIX,
        help=f"of all keys (default: SIGNALBOX_PREFIX, else {PREFIX})",
    )
    given = parser.parse_args(arguments)
    try:
        url = given.url or _read_url(environment)
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"REDIS_URL_FILE cannot be read: {error}")
    try:
        load(Engine.from_url(url, prefix=given.prefix), _write)
    except (SignalboxError, Failed) as error:
        sys.stderr.write(f"signalbox library: {error}\n")
        return 1
    return 0


def load(engine: Engine, write: Callable[[str], object]) -> None:
    """Load the library, and write a line for each server. Raises Failed, and SignalboxError for what a server or the
    data on it refuse."""
    visits = engine.load_library(again=False)
    faults = []
    for visit in visits:
        fault = _find_fault(visit)
        write(f"{visit.address or 'the server'}: {fault or _describe(visit)}")
        faults += [fault] * bool(fault)
    if faults:
        raise Failed(f"{len(faults)} of {len(visits)} servers have no library of release {library.RELEASE}")


def _find_fault(visit: Visit) -> str:
    if visit.error is not None:
        return f"does not answer ({visit.error}); run this command again when it does"
    if visit.held is not None and visit.held.number > library.RELEASE:
        return (
            f"no downgrade: the library of release {visit.held.number} stays, and this one, of release "
            f"{library.RELEASE}, was not loaded over it; nothing was changed. Run this command of the newer release"
        )
    return ""


def _describe(visit: Visit) -> str:
    if not visit.loaded:
        return f"the library of release {library.RELEASE} is there"
    before = "there was none" if visit.held is None else f"in place of that of release {visit.held.number}"
    return f"the library of release {library.RELEASE} is loaded, {before}"


def _read_url(environment: Mapping[str, str]) -> str:
    path = environment.get("REDIS_URL_FILE")
    if path:
        return Path(path).read_text(encoding="utf-8").strip()
    return environment.get("REDIS_URL") or REDIS


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
