"""The load driver: raw sockets and commands encoded beforehand, in processes of their own.

A Python client spends far more time on a call than the server does; measured through one, every
contender looks alike. Here a batch costs the driver one send, one receive and counting line ends.
What is left of its cost is printed: when the server is busy all the time, the driver is not what is measured.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe

import hiredis
import redis

from . import workloads
from .children import ask_all, run_children

CHUNK = 1 << 18  # bytes
CALIBRATION = 2  # times through all commands: the first brings every instance into the cycle


@dataclass(slots=True)
class Lane:
    """One connection in one workload: its batches, the line ends each is answered with, and where it is."""

    sock: socket.socket
    batches: list[bytes]
    answers: list[int] = field(default_factory=list)
    at: int = 0
    left: int = 0

    def calibrate(self, depth: int) -> None:
        """Sends everything with full parsing: all must be accepted, and the size of every answer is learned."""
        for _ in range(CALIBRATION):
            self.answers = [self._ask(batch, depth) for batch in self.batches]

    def _ask(self, batch: bytes, depth: int) -> int:
        self.sock.sendall(batch)
        reader, lines, replies = hiredis.Reader(), 0, 0
        while replies < depth:
            data = self.sock.recv(CHUNK)
            lines += data.count(b"\n")
            reader.feed(data)
            while (reply := reader.gets()) is not False:
                replies += 1
                if isinstance(reply, Exception) or (isinstance(reply, list) and reply[0] in (b"REFUSED", b"FAULT")):
                    raise RuntimeError(f"the server did not accept a call of the workload: {reply!r}")
        return lines

    def send(self) -> None:
        self.left = self.answers[self.at]
        self.sock.sendall(self.batches[self.at])
        self.at = (self.at + 1) % len(self.batches)


class Crowd:
    """The connections of one driver process."""

    def __init__(self, url: str, prefix: str, numbers: range) -> None:
        self._prefix = prefix
        self._numbers = numbers
        pool = redis.ConnectionPool.from_url(url, protocol=2, socket_timeout=None)
        self._connections = [pool.make_connection() for _ in numbers]
        for connection in self._connections:
            connection.connect()
        self._lanes: dict[tuple[str, int], list[Lane]] = {}

    def prepare(self, workload: str, depth: int) -> None:
        lanes = []
        for number, connection in zip(self._numbers, self._connections, strict=True):
            commands = workloads.commands(workload, self._prefix, depth, number)
            batches = [b"".join(commands[i : i + depth]) for i in range(0, len(commands), depth)]
            lanes.append(Lane(connection._sock, batches))
            lanes[-1].calibrate(depth)
        self._lanes[workload, depth] = lanes

    def run(self, workload: str, depth: int, seconds: float) -> tuple[int, float, float]:
        """Batches answered, seconds it took, seconds of CPU this process used."""
        lanes = self._lanes[workload, depth]
        by_descriptor = {lane.sock.fileno(): lane for lane in lanes}
        poll = select.epoll()
        for descriptor in by_descriptor:
            poll.register(descriptor, select.EPOLLIN)
        started, cpu = time.perf_counter(), time.process_time()
        done = _pump(poll, by_descriptor, started + seconds)
        took, used = time.perf_counter() - started, time.process_time() - cpu
        poll.close()
        return done, took, used


def _pump(poll: select.epoll, lanes: dict[int, Lane], deadline: float) -> int:
    """Keeps one batch under way on every lane until the deadline; ends with all of them answered."""
    done, under_way, buffer = 0, len(lanes), bytearray(CHUNK)
    for lane in lanes.values():
        lane.send()
    while under_way:
        going_on = time.perf_counter() < deadline
        for descriptor, _ in poll.poll():
            lane = lanes[descriptor]
            size = lane.sock.recv_into(buffer)
            if not size:
                raise ConnectionError("the server closed the connection")
            lane.left -= buffer.count(b"\n", 0, size)
            if lane.left == 0:
                done += 1
                if going_on:
                    lane.send()
                else:
                    under_way -= 1
    return done


def _serve(pipe: Pipe, url: str, prefix: str, numbers: range) -> None:
    """What a driver process does: prepares and runs workloads as it is told."""
    crowd = Crowd(url, prefix, numbers)
    while (order := pipe.recv()) is not None:
        name, *details = order
        try:
            pipe.send(crowd.prepare(*details) if name == "prepare" else crowd.run(*details))
        except Exception as error:
            pipe.send(error)


@dataclass(frozen=True, slots=True)
class Load:
    """One run: operations a second, how many in all, and the share of its time a driver process was busy."""

    rate: float
    calls: int
    busy: float


class Driver:
    """The processes that share the connections, each behind its pipe."""

    def __init__(self, pipes: Sequence[Pipe]) -> None:
        self._pipes = pipes

    def prepare(self, workload: str, depth: int) -> None:
        ask_all(self._pipes, "prepare", workload, depth)

    def run(self, workload: str, depth: int, seconds: float) -> Load:
        found = ask_all(self._pipes, "run", workload, depth, seconds)
        calls = sum(done for done, _, _ in found) * depth
        longest = max(took for _, took, _ in found)
        return Load(calls / longest, calls, max(used / took for _, took, used in found))


@contextlib.contextmanager
def drive(url: str, prefix: str) -> Iterator[Driver]:
    """Start the processes: one less than there are cores, the server has that one."""
    count = min(max((os.cpu_count() or 2) - 1, 1), 4)
    numbers = [range(number, workloads.CONNECTIONS, count) for number in range(count)]
    with run_children(_serve, [(url, prefix, each) for each in numbers]) as pipes:
        yield Driver(pipes)
