"""Streams the audit as it happens to the receivers of ``AUDIT_STREAM``: one worker sends each entry, in the order of
the chain, and stores the number of the last one that a receiver took.

A pass that is cut off is repeated, so that a receiver may get entries twice, but misses none: numbers have no gaps, and
what retention removed before it was sent has a seal. An action never waits for a receiver.
"""

import asyncio
import io
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.utils import timezone

from machines.audit.chain import FACTS
from machines.audit.models import AuditEntry, AuditHead, AuditReceiver, describe_address
from machines.conf import conf
from machines.conf.database import DatabaseDuty

from .http_post import load_trusted, post
from .models import Delivery, Webhook

log = logging.getLogger(__name__)

AT_ONCE = 500  # entries of one pass
PAUSE, IDLE = 1.0, 60.0  # seconds between two passes; where there is no receiver
RESTS = (5, 15, 60)  # seconds that a receiver is left alone after a failure, and after each further one
TIMEOUT = 10.0  # seconds for connecting, and for sending a pass
LONGEST = 8000  # characters of a syslog message: what receivers take without a setting
FACILITY = 13 * 8  # "log audit" of RFC 5424
INFO, WARNING = 6, 4
PORTS = {"syslog": 514, "syslog+tcp": 601, "syslog+tls": 6514}

Entries = Sequence[Mapping[str, Any]]
Send = Callable[[Entries], None]
"""Sends entries, or raises OSError and has sent none for sure."""


def format_entry(entry: Mapping[str, Any]) -> str:
    """Return an entry as one line of JSON in ASCII, with its number and digest."""
    return json.dumps(entry | {"at": _format_time(entry["at"])}, default=str)


def _format_time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def make_sender(receiver: str) -> Send:
    """Return what sends to a receiver, as the setting names it."""
    scheme = urlsplit(receiver).scheme
    if receiver == "stdout":
        return write_stdout
    if scheme in PORTS:
        return partial(send_syslog, receiver)
    return partial(post_head, receiver) if scheme == "https" else partial(append_lines, receiver)


def name_receiver(receiver: str) -> str:
    """Return what pages and the database call a receiver: of a web address no path, which may hold a secret."""
    if not receiver.startswith("https:"):
        return receiver
    return " ".join(describe_address(receiver).values())


def write_stdout(entries: Entries) -> None:
    """Write lines to the standard output of the worker."""
    sys.stdout.write("".join(f"{format_entry(entry)}\n" for entry in entries))
    sys.stdout.flush()


def append_lines(path: str, entries: Entries) -> None:
    """Append lines to a file and sync it. Half a line of a process that was killed is ended; what does not fit on the
    disk is taken back."""
    lines = "".join(f"{format_entry(entry)}\n" for entry in entries).encode("ascii")
    with open(path, "ab+", buffering=0) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - 1))
        if file.read(1) not in (b"", b"\n"):
            lines = b"\n" + lines
        try:
            while lines:
                lines = lines[file.write(lines) :]
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(size)
            raise


def format_syslog(entry: Mapping[str, Any]) -> bytes:
    """Return a message of RFC 5424. The details of an entry that is too long are left out."""
    text = format_entry(entry)
    if len(text) > LONGEST:
        text = format_entry(entry | {"detail": {"left_out": len(text)}})[:LONGEST]
    severity = INFO if entry["outcome"] == "done" else WARNING
    place = f"{socket.gethostname()} signalbox {os.getpid()} audit"
    return f"<{FACILITY + severity}>1 {_format_time(entry['at'])} {place} - {text}".encode("ascii", "replace")


def send_syslog(receiver: str, entries: Entries) -> None:
    """Send messages by UDP, one a datagram, or by TCP or TLS, each behind its length (RFC 6587). The connection is that
    of the pass, so that one which the receiver has closed is not written to."""
    url = urlsplit(receiver)
    address = url.hostname or "", url.port or PORTS[url.scheme]
    messages = [format_syslog(entry) for entry in entries]
    if url.scheme == "syslog":
        kind, _, _, _, found = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as datagrams:
            datagrams.connect(found)
            for message in messages:
                datagrams.send(message)
        return
    with socket.create_connection(address, timeout=TIMEOUT) as plain:
        stream: socket.socket = plain
        if url.scheme == "syslog+tls":
            stream = load_trusted().wrap_socket(plain, server_hostname=address[0])
        with stream:
            stream.sendall(b"".join(b"%d %s" % (len(message), message) for message in messages))


def post_head(url: str, entries: Entries) -> None:
    """Post number and digest of the newest entry, signed as a webhook is."""
    last = entries[-1]
    facts = {"type": "audit.head", "timestamp": _format_time(last["at"])}
    body = json.dumps(facts | {"data": {"number": last["number"], "digest": last["digest"]}})
    webhook = Webhook(url=url, secret=conf.AUDIT_STREAM_SECRET)
    result = asyncio.run(post(Delivery(webhook=webhook, key=f"audit-{last['number']}", body=body), timezone.now()))
    if not result.ok:
        raise OSError(result.error)


@dataclass(slots=True)
class _RemainingEntries:
    failures: int = 0
    until: float = 0.0


class AuditStream(DatabaseDuty):
    """The duty. ``clock``: monotonic seconds."""

    MESSAGE = "the audit cannot be streamed: %s"

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rests: dict[str, _RemainingEntries] = {}

    def look(self) -> bool:
        """Send to each receiver what it lacks, some at a time; return whether there is more."""
        more = False
        for receiver in conf.AUDIT_STREAM:
            rest = self._rests.setdefault(receiver, _RemainingEntries())
            if self._clock() >= rest.until:
                more |= self._serve(receiver, rest)
        return more

    def pause(self) -> float:
        return PAUSE if conf.AUDIT_STREAM else IDLE

    def _serve(self, receiver: str, rest: _RemainingEntries) -> bool:
        row = _find_row(name_receiver(receiver))
        rows = AuditEntry.objects.filter(number__gt=row.number).order_by("number")
        entries = list(rows.values("number", "digest", *FACTS)[:AT_ONCE])
        if not entries:
            return False
        try:
            make_sender(receiver)(entries)
        except (OSError, ValueError) as error:
            _note_failure(row, error)
            rest.until = self._clock() + RESTS[min(rest.failures, len(RESTS) - 1)]
            rest.failures += 1
            return False
        rest.failures = 0
        changes = {"number": entries[-1]["number"], "error": "", "since": None}
        AuditReceiver.objects.filter(pk=row.pk, number=row.number).update(**changes)
        return len(entries) == AT_ONCE


def _find_row(name: str) -> AuditReceiver:
    """Return the row of a receiver. A new one gets the entries from now on."""
    row = AuditReceiver.objects.filter(name=name).first()
    if row is None:
        head = AuditHead.objects.first()
        row, _ = AuditReceiver.objects.get_or_create(name=name, defaults={"number": head.number if head else 0})
    return row


def _note_failure(row: AuditReceiver, error: Exception) -> None:
    text = str(error) or type(error).__name__
    if row.error != text:
        log.warning("%s does not take the audit: %s", row.name, text)
    AuditReceiver.objects.filter(pk=row.pk).update(error=text[:500], since=row.since or timezone.now())


def list_failing() -> Iterable[AuditReceiver]:
    """List the receivers of the setting that do not take entries."""
    if not conf.AUDIT_STREAM:
        return []
    names = [name_receiver(receiver) for receiver in conf.AUDIT_STREAM]
    return AuditReceiver.objects.filter(name__in=names).exclude(error="")
