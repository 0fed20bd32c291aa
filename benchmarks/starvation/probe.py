"""Somebody who works while another attacks: ``/healthz`` and pages, asked for steadily by a process of its own."""

from __future__ import annotations

import http.client
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from urllib.parse import urlsplit

from .scene import HERE, Scene

HEALTH_EVERY, PAGE_EVERY = 0.05, 0.25  # seconds
TIMEOUT = 30.0
TIMED_OUT = 0  # a status


@dataclass(slots=True)
class Lane:
    """``times``: ms of each answer; ``statuses``: how many answers of each."""

    times: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)

    @property
    def bad(self) -> dict[int, int]:
        return {status: count for status, count in self.statuses.items() if status != 200}

    def at(self, share: float) -> float:
        found = sorted(self.times)
        return found[min(len(found) - 1, int(len(found) * share))] if found else 0.0


def serve(pipe: Pipe, scene: Scene) -> None:
    """Told "start" it begins to ask; told "stop" it answers with (healthz, pages)."""
    while pipe.recv() is not None:
        pages = ["/", f"/machines/{scene.machine}/", f"/machines/{scene.machine}/instances/{scene.ids[7]}/", "/queues/"]
        stop = threading.Event()
        lanes = Lane(), Lane()
        asked = ((lanes[0], ["/healthz"], HEALTH_EVERY), (lanes[1], pages, PAGE_EVERY))
        threads = [threading.Thread(target=_ask, args=(scene, stop, *one)) for one in asked]
        for thread in threads:
            thread.start()
        pipe.recv()
        stop.set()
        for thread in threads:
            thread.join()
        pipe.send(lanes)


def _ask(scene: Scene, stop: threading.Event, lane: Lane, paths: list[str], every: float) -> None:
    """One after the other. While an answer is late, the questions that should have been asked meanwhile count as well,
    each with what was left of the wait: one long silence is not one slow answer."""
    number = 0
    while not stop.is_set():
        started = time.perf_counter()
        status = _status(scene, paths[number % len(paths)])
        took = time.perf_counter() - started
        lane.statuses[status] = lane.statuses.get(status, 0) + 1
        late = took
        while late > 0:
            lane.times.append(late * 1000)
            late -= every
        number += 1
        stop.wait(max(0.0, every - took))


def _status(scene: Scene, path: str) -> int:
    where = urlsplit(scene.origin)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=TIMEOUT, source_address=(HERE, 0))
    try:
        connection.request("GET", path, headers={"Cookie": scene.worker, "Accept": "text/html"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except OSError:
        return TIMED_OUT
    finally:
        connection.close()
