"""First requests of new connections are read by turns of addresses, a few in each round of the event loop."""

import asyncio
import socket
import urllib.request
from urllib.parse import urlsplit

from dashboard.serving.server import ConnectionTurns

PATIENCE = 60.0


async def test_addresses_take_turns_and_a_round_reads_a_few():
    rounds: list[list[str]] = [[]]
    arrivals = ConnectionTurns(asyncio.get_running_loop(), at_once=4)
    for number in range(8):
        arrivals.add("10.0.0.1", lambda number=number: rounds[-1].append(f"a{number}"))
    for number in range(2):
        arrivals.add("10.0.0.2", lambda number=number: rounds[-1].append(f"b{number}"))
    assert rounds == [[]]
    for _ in range(3):
        await asyncio.sleep(0)
        rounds.append([])
    assert rounds == [["a0", "b0", "a1", "b1"], ["a2", "a3", "a4", "a5"], ["a6", "a7"], []]


async def test_who_comes_when_nobody_waits_is_read_in_the_next_round():
    read = []
    arrivals = ConnectionTurns(asyncio.get_running_loop())
    for name in ("first", "second"):
        arrivals.add("10.0.0.1", lambda name=name: read.append(name))
        await asyncio.sleep(0)
        assert read[-1] == name


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
