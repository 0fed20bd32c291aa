"""``serve --processes``: web processes on one port hold more sockets than one may; one that dies is replaced."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.installation.processes import ROOT, alive, descendants, eventually
from tests.live.service import Service

pytestmark = pytest.mark.faults
OF_ONE = 4  # sockets that one person may have in one process


@pytest.fixture
def site(redis_url, prefix, tmp_path):
    """The supervisor's process, its address, and the cookie of a user."""
    service = Service(redis_url, prefix, tmp_path)  # makes the database and the user
    service.stop()
    environment = service._environment | {"SIGNALBOX_SOCKETS": str(OF_ONE), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "manage.py", "serve", "--processes", "2", "--port", "0"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    address = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline()).group()
    yield process, address, service.cookie
    process.terminate()
    process.wait(60)
    process.stdout.close()


def open_socket(address: str, cookie: str) -> connect:
    headers = {"Cookie": f"sessionid={cookie}"}
    return connect(f"ws://{address}/ws/live/", origin=f"http://{address}", additional_headers=headers)


async def hold(address: str, cookie: str, count: int) -> None:
    """Hold so many sockets at once; a process that has its share refuses, and the next try may reach another."""
    async with asyncio.timeout(120), contextlib.AsyncExitStack() as held:
        while count:
            socket = None
            try:
                socket = await open_socket(address, cookie)
                await socket.send('{"type":"subscribe","topic":"overview"}')
                await socket.recv()
            except (ConnectionClosed, InvalidStatus, OSError):
                if socket is not None:
                    await socket.close()
                await asyncio.sleep(0.1)
            else:
                held.push_async_callback(socket.close)
                count -= 1


def web_processes(supervisor: int) -> set[int]:
    """Those that serve: the supervisor's children."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(supervisor)], capture_output=True, text=True, check=False)
    return {int(pid) for pid in found.stdout.split()}


def test_two_processes_hold_more_sockets_than_one_may_are_replaced_when_they_die_and_end_together(site):
    process, address, cookie = site
    eventually(lambda: len(web_processes(process.pid)) == 2, "two web processes")
    asyncio.run(hold(address, cookie, OF_ONE + 2))
    victim = min(web_processes(process.pid))
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: len(web_processes(process.pid) - {victim}) == 2, "another one takes its place")
    asyncio.run(hold(address, cookie, 1))
    everyone = descendants(process.pid)
    process.terminate()
    assert process.wait(60) == 0
    eventually(lambda: not any(alive(pid) for pid in everyone), "all end")


def test_a_number_of_processes_out_of_range_is_refused():
    command = [sys.executable, "manage.py", "serve", "--processes", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "processes must be 1 to 64, not 0" in done.stderr
