"""Many connections that arrive together, and one that is kept."""

import socket
import urllib.request
from urllib.parse import urlsplit

PATIENCE = 60.0


def test_many_that_come_at_once_are_all_answered_and_those_that_leave_hold_up_nobody(site):
    where = urlsplit(site)
    host = f"Host: {where.netloc}\r\n".encode()
    opened = [socket.create_connection((where.hostname, where.port), timeout=PATIENCE) for _ in range(60)]
    for number, one in enumerate(opened):
        one.sendall(b"GET /healthz HTTP/1.1\r\n")
        if number % 3 == 0:
            one.close()
    for one in opened:
        if one.fileno() >= 0:
            one.sendall(host + b"Connection: close\r\n\r\n")
    answers = []
    for one in opened:
        if one.fileno() >= 0:
            with one, one.makefile("rb") as file:
                answers.append(file.readline().split()[1])
    assert answers == [b"200"] * 40


def test_a_connection_that_is_kept_is_read_without_waiting_again(site):
    where = urlsplit(site)
    with socket.create_connection((where.hostname, where.port), timeout=PATIENCE) as one, one.makefile("rb") as file:
        for _ in range(3):
            one.sendall(f"HEAD /healthz HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
            assert file.readline().split()[1] == b"200"
            while file.readline().strip():
                pass
    with urllib.request.urlopen(f"{site}/healthz", timeout=PATIENCE) as answer:
        assert answer.status == 200
