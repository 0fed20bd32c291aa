"""Child processes of the benchmarks, each with a pipe: words go in, answers come out."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection as Pipe
from typing import Any


@contextlib.contextmanager
def run_child(target: Any, *words: Any) -> Iterator[Pipe]:
    """Run ``target(pipe, *words)`` in a process of its own; yield this end of the pipe. None tells it to end."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *words), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        with contextlib.suppress(OSError):
            ours.send(None)
        process.join(10)
        process.terminate()


@contextlib.contextmanager
def run_children(target: Any, orders: Iterable[Sequence[Any]]) -> Iterator[list[Pipe]]:
    """Run ``target(pipe, *words)`` for each words, each in a process of its own."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(run_child(target, *words)) for words in orders]


def ask_all(pipes: Sequence[Pipe], *order: Any) -> list[Any]:
    """Send an order to all of the children at once; return their answers."""
    for pipe in pipes:
        pipe.send(order)
    return [receive(pipe) for pipe in pipes]


def receive(pipe: Pipe) -> Any:
    """Return the next answer of a child. Raises the exception that it sends."""
    answer = pipe.recv()
    if isinstance(answer, Exception):
        raise answer
    return answer
