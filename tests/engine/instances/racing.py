"""Callers that race each other, as threads of one process and as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machines.engine import Engine, SignalboxError

ROOT = Path(__file__).resolve().parents[3]

# Argv: URL, prefix, JSON list of [method, args, kwargs]. Says "ready", waits for a line, prints the outcomes as JSON.
RACER = """
import json, sys
from machines.engine import Engine, SignalboxError
url, prefix, calls = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
engine = Engine.from_url(url, prefix=prefix)
engine.machines()
print("ready", flush=True)
sys.stdin.readline()
outcomes = []
for method, args, kwargs in calls:
    try:
        getattr(engine, method)(*args, **kwargs)
        outcomes.append("done")
    except SignalboxError as error:
        outcomes.append(type(error).__name__)
print(json.dumps(outcomes))
"""


def in_threads(calls: list[Callable[[], Any]]) -> list[Any]:
    """What each call answered or raised, all begun at one moment."""
    barrier, results = threading.Barrier(len(calls)), [None] * len(calls)

    def run(number: int, call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            results[number] = call()
        except SignalboxError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def in_processes(
    engine: Engine, url: str, calls: list[tuple[str, list[Any], dict[str, Any]]], *, racers: int = 3
) -> Counter:
    """How often each outcome came ("done" or an error's name) when ``racers`` processes make the same calls at once."""
    words = [sys.executable, "-c", RACER, url, engine.keys.prefix, json.dumps(calls)]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) for _ in range(racers)]
    try:
        for process in running:
            assert process.stdout.readline() == "ready\n"
        for process in running:
            process.stdin.write("go\n")
            process.stdin.flush()
        return Counter(word for process in running for word in json.loads(process.communicate(timeout=90)[0]))
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()


def in_a_child(call: Callable[[], Any], meanwhile: Callable[[], Any]) -> tuple[Any, Any]:
    """What a fork answers, as JSON brings it, and what this process does at the same time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(call()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    mine = meanwhile()
    with os.fdopen(reading) as answer:
        theirs = json.loads(answer.read())
    os.waitpid(child, 0)
    return theirs, mine


def kinds(results: list[Any]) -> Counter:
    """How often each kind of result came: the class of an answer or error."""
    return Counter(type(result).__name__ for result in results)
