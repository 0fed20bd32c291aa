"""The audit as a stream: each entry, in order, to a file, the output, syslog and a web address; none is lost while a
receiver is away, and no action waits for it."""

from __future__ import annotations

import json
import logging
import re
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from machines.alarms.detection import Figures, raise_alarms
from machines.audit import chain
from machines.audit.entries import record
from machines.conf.kinds import Receivers, Unfit
from machines.conf.table import resolve
from machines.models import AuditEntry, AuditReceiver
from machines.webhooks import audit_stream as streaming
from machines.webhooks import http_post
from machines.webhooks.audit_stream import AuditStream, format_entry, list_failing
from machines.webhooks.signing import new_secret, signature
from tests.cases import for_each
from tests.configuration import configure
from tests.webhooks.conftest import Receiver, receiver
from tests.webhooks.test_tls import certificate

__all__ = ["certificate", "receiver"]
pytestmark = pytest.mark.django_db(transaction=True)
SYSLOG = re.compile(rb"<(\d+)>1 \S+T\S+\+00:00 \S+ signalbox \d+ audit - (\{.*\})", re.DOTALL)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stream(settings, clock) -> Callable[..., AuditStream]:
    """A duty that has seen its receivers once: from then on they get what is written."""

    def make(*receivers: str, **more: Any) -> AuditStream:
        configure(settings, AUDIT_STREAM=list(receivers), **more)
        found = AuditStream(clock=clock)
        found.run_once()
        return found

    return make


@pytest.fixture
def tcp() -> Iterator[Callable[..., tuple[int, bytearray]]]:
    """A server that keeps what it is sent."""
    servers: list[socketserver.TCPServer] = []

    def start(port: int = 0, tls: ssl.SSLContext | None = None) -> tuple[int, bytearray]:
        got = bytearray()

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                while part := self.request.recv(65_536):
                    got.extend(part)

        socketserver.TCPServer.allow_reuse_address = True
        server = socketserver.TCPServer(("127.0.0.1", port), Handler)
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_address[1], got

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def write(*names: str) -> list[AuditEntry]:
    for name in names:
        assert record(name, "fire", machine="m", instance="one", target="go", detail={"revision": 2})
    return list(AuditEntry.objects.order_by("number"))[-len(names) :]


def read_frames(got: bytes) -> list[bytes]:
    """Read messages, each behind its length."""
    found = []
    while got:
        length, _, got = got.partition(b" ")
        found.append(got[: int(length)])
        got = got[int(length) :]
    return found


def read_file(path: Path) -> list[int]:
    return [json.loads(line)["number"] for line in path.read_text().splitlines()]


def test_each_entry_is_a_line_of_a_file_from_which_its_digest_can_be_computed(stream, tmp_path):
    write("before")
    duty = stream(str(tmp_path / "audit"))
    entries = write("ann", "bob")
    assert duty.run_once() is False
    write("cid")
    duty.run_once()
    duty.run_once()
    lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    assert [(line["number"], line["actor"]) for line in lines] == [(2, "ann"), (3, "bob"), (4, "cid")]
    held = {name: lines[1][name] for name in chain.FACTS} | {"at": entries[1].at}
    assert chain.digest_of(lines[0]["digest"], 3, held) == lines[1]["digest"]


def test_the_output_gets_lines_too(stream, capsys):
    duty = stream("stdout")
    write("ann")
    duty.run_once()
    assert json.loads(capsys.readouterr().out)["actor"] == "ann"


def test_syslog_by_datagrams(stream):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        duty = stream(f"syslog://127.0.0.1:{server.getsockname()[1]}")
        write("ann")
        record("bob", "fire", machine="m", outcome="refused", detail={"said": "é" * 9000})
        duty.run_once()
        found = [SYSLOG.fullmatch(server.recv(65_536)) for _ in range(2)]
    assert [int(one[1]) for one in found] == [110, 108]
    said = [json.loads(one[2]) for one in found]
    assert [one["actor"] for one in said] == ["ann", "bob"]
    assert said[1]["detail"]["left_out"] > 9000


def wait_for(got: bytearray) -> bytearray:
    """Wait until a server has read what was sent."""
    for _ in range(600):
        if got:
            return got
        threading.Event().wait(0.05)
    raise AssertionError("nothing came")


def test_syslog_by_tls_wants_a_certificate_of_the_name(stream, tcp, certificate, clock):
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)
    port, got = tcp(tls=served)
    duty = stream(f"syslog+tls://localhost:{port}")
    write("ann")
    duty.run_once()
    assert "certificate" in next(iter(list_failing())).error.lower()
    http_post.load_trusted().load_verify_locations(certificate[0])
    clock.now += streaming.RESTS[0]
    try:
        duty.run_once()
    finally:
        http_post.load_trusted.cache_clear()
    assert b'"actor": "ann"' in wait_for(got)


def test_a_receiver_that_is_away_stops_nothing_and_misses_nothing(stream, tcp, clock, tmp_path, caplog):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]  # nobody listens
        duty = stream(f"syslog+tcp://127.0.0.1:{port}", str(tmp_path / "audit"))
        write("ann", "bob")
        caplog.set_level(logging.WARNING)
        duty.run_once()
        assert read_file(tmp_path / "audit") == [1, 2], "the other one has them"
        (failing,) = list_failing()
        assert (failing.number, "refused" in failing.error) == (0, True)
        (alarm,) = raise_alarms(Figures(receivers=[failing]))
        assert alarm.kind == "audit"
        assert alarm.text.startswith(f"{failing.name} does not take the audit since entry 0: ")
        duty.run_once()
        assert caplog.text.count("does not take the audit") == 1
    _, got = tcp(port)
    duty.run_once()
    assert not got, "it rests for some seconds"
    clock.now += streaming.RESTS[0]
    write("cid")
    duty.run_once()
    assert [json.loads(SYSLOG.fullmatch(one)[2])["number"] for one in read_frames(bytes(wait_for(got)))] == [1, 2, 3]
    assert list(list_failing()) == []


def test_a_process_that_dies_before_the_number_is_stored_sends_again(stream, tmp_path, monkeypatch):
    duty = stream(str(tmp_path / "audit"))
    write("ann")
    with monkeypatch.context() as patched:
        patched.setattr(AuditReceiver.objects, "filter", lambda **terms: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            duty._serve(str(tmp_path / "audit"), streaming._RemainingEntries())
    write("bob")
    duty.run_once()
    numbers = read_file(tmp_path / "audit")
    assert sorted(set(numbers)) == [1, 2]


def test_half_a_line_is_ended_and_a_full_disk_leaves_none(stream, tmp_path):
    path = tmp_path / "audit"
    duty = stream(str(path))
    path.write_text('{"number": 1, "act')
    write("ann")
    duty.run_once()
    assert json.loads(path.read_text().splitlines()[1])["actor"] == "ann"
    full = stream("/dev/full")
    write("bob")
    full.run_once()
    assert "No space left" in next(iter(list_failing())).error


def test_a_web_address_gets_the_head_signed(stream, receiver: Receiver, monkeypatch, settings):
    secret = new_secret()
    url = f"http://127.0.0.1:{receiver.server.server_address[1]}/secret-path"
    configure(settings, AUDIT_STREAM_SECRET=secret)
    entries = write("ann", "bob")
    streaming.post_head(url, [{"at": one.at, "number": one.number, "digest": one.digest} for one in entries])
    path, headers, body = receiver.requests[0]
    assert json.loads(body)["data"] == {"number": 2, "digest": entries[1].digest}
    signed = signature(secret, headers["webhook-id"], int(headers["webhook-timestamp"]), body)
    assert (path, headers["webhook-signature"]) == ("/secret-path", signed)
    receiver.answers = [500]
    with pytest.raises(OSError, match="HTTP 500"):
        streaming.post_head(url, [{"at": entries[0].at, "number": 1, "digest": "a"}])
    assert "secret-path" not in streaming.name_receiver(url.replace("http:", "https:"))


def test_more_than_one_pass_takes(stream, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "AT_ONCE", 2)
    duty = stream(str(tmp_path / "audit"))
    write(*"abcde")
    assert [duty.run_once(), duty.run_once(), duty.run_once()] == [True, True, False]
    assert read_file(tmp_path / "audit") == [1, 2, 3, 4, 5]


def test_a_line_is_ascii_and_one_line():
    entry = {"at": AuditEntry().at, "reason": "a\nb\u2028é\0", "number": 1}
    line = format_entry(entry)
    assert line.isascii()
    assert len(line.splitlines()) == 1


@for_each(
    "word",
    [
        "file", "var/log/audit", "syslog:host", "syslog://", "syslog://host:port", "http://host/", "https://",
        "syslog+udp://host", "/with space", "syslog://user@host",
    ],
)  # fmt: skip
def test_what_is_no_receiver_is_refused_without_showing_it(word):
    with pytest.raises(Unfit, match="A: entry 2 is no receiver; write stdout, the path") as refused:
        Receivers().read("A", ["stdout", word])
    assert f" {word!r}" not in str(refused.value)


def test_receivers_that_fit():
    words = ["stdout", "/var/log/audit.jsonl", "syslog://[::1]:514", "syslog+tls://logs.example.org", "https://h/x?y=1"]
    assert Receivers().parse("A", ", ".join(words)) == words
    _, problems = resolve({"AUDIT_STREAM": words})
    assert [problem.partition(" has a web address, so ")[2].count("AUDIT_STREAM_SECRET") for problem in problems] == [1]
