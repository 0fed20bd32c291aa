"""The process that ``apprise_post`` starts: reads one order from its input, and writes what is wrong, or nothing."""

import contextlib
import difflib
import json
import logging
import os
import re
import signal
import socket
import sys
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote

import apprise
from apprise.exception import AppriseException

from machines.conf.server.guardian import on_parent_death

from .public_addresses import explain_inside, may_lead_to

SHOWN = 300  # characters of what a service says
LOCAL = "{schema}://"  # the template of services that are this machine itself, as its desktop
FILES = ("template", "keyfile", "subfile", "pgpkey")  # of a query, which a plugin would read here


class Inside(Exception):
    """A service would connect to an address that is not public."""


class Gate:
    """Lets connections out to public addresses alone, and to hosts that the settings name."""

    def __init__(self, allowed: list[str]) -> None:
        self._allowed = allowed
        self._look_up = socket.getaddrinfo
        self._named: set[str] = set()  # addresses of such hosts

    def close(self) -> None:
        socket.getaddrinfo = self._judge_lookup
        sys.addaudithook(self._judge_connection)

    def _judge_lookup(self, host: Any, *rest: Any, **more: Any) -> Any:
        found = self._look_up(host, *rest, **more)
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "localhost")
        for entry in found:
            text = str(entry[4][0]).partition("%")[0]
            if not may_lead_to(name, ip_address(text), self._allowed):
                raise Inside(explain_inside(name))
            self._named.add(text)
        return found

    def _judge_connection(self, event: str, given: tuple[Any, ...]) -> None:
        if event not in ("socket.connect", "socket.sendto"):
            return
        address = given[1]
        if not isinstance(address, tuple):
            raise Inside("a service of apprise may not use a socket of this machine")
        host = str(address[0]).partition("%")[0]
        try:
            judged = host in self._named or may_lead_to(host, ip_address(host), self._allowed)
        except ValueError:  # a name
            self._judge_lookup(host, address[1])
            return
        if not judged:
            raise Inside(explain_inside(host))


class LastWords(logging.Handler):
    """Keeps what apprise said last: it returns False, and logs why."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


def main() -> None:
    order = json.load(sys.stdin)
    on_parent_death(signal.SIGKILL)
    if os.getppid() != order["parent"]:
        return
    words = LastWords(logging.WARNING)
    logger = logging.getLogger("apprise")
    logger.addHandler(words)
    logger.propagate = False
    apprise.AttachmentManager().remove("file")  # plugins read files by it; a query that names one is refused as well
    Gate(order["hosts"]).close()
    try:
        why = _run(order["url"], order["message"], order["hosts"], words)
    except Inside as error:
        why = str(error)
    except Exception as error:  # of a plugin
        why = _hide(f"{type(error).__name__}: {error}", order["url"])
    sys.stdout.write(why[:SHOWN])


def _run(url: str, message: dict[str, str], allowed: list[str], words: LastWords) -> str:
    """Open the service, and send the message if there is one; return what is wrong."""
    scheme, services = url.partition("://")[0].lower(), apprise.NotificationManager()
    known = sorted(services.schemas())
    if scheme not in known:
        close = difflib.get_close_matches(scheme, known, n=1)
        return f"apprise has no service {scheme}://" + (f"; did you mean {close[0]}://?" if close else "")
    if LOCAL in services[scheme].templates:
        return f"{scheme}:// is this machine itself, where nobody reads it"
    if found := _find_file(url):
        return f"{found}= names a file, and no file is read"
    try:
        service = apprise.Apprise.instantiate(url, suppress_exceptions=False)
    except (AppriseException, TypeError, ValueError) as error:
        return _hide(f"{services[scheme].service_name}: {error}", url)
    if service is None:
        right = next(iter(services[scheme].templates), "").replace("{schema}", scheme)
        return f"this is no address of {services[scheme].service_name}; one looks like {right}"
    with contextlib.suppress(ValueError):  # a name, or no host at all
        host = str(getattr(service, "host", "") or "").strip("[]")
        if not may_lead_to(host, ip_address(host), allowed):
            return explain_inside(host)
    if message and not service.notify(**message):
        return _hide(words.text, url) or "the service took no message"
    return ""


def _find_file(url: str) -> str:
    """Return which part of a query names a file, as apprise takes queries apart."""
    names = (part.partition("=")[0].replace("+", " ") for part in re.split("[?&;]", url)[1:])
    return next((name for name in (unquote(name).strip().lower() for name in names) if name in FILES), "")


def _hide(text: str, url: str) -> str:
    """Return a text without parts of the address, which are secrets of the service."""
    for part in sorted(set(re.split(r"[/@:?&=]+", url)[1:]), key=len, reverse=True):
        if len(part) > 3:
            text = text.replace(part, "•••").replace(unquote(part), "•••")
    return text


if __name__ == "__main__":
    main()
