"""Several processes that do the same to one thing: contenders of the patterns part."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection as Pipe

from .stage import Stage

PROCESSES = 8

Each = Callable[[int], None]
Make = Callable[[Stage], Each]


class Crowd:
    """``makes``: name -> a function of a module that gives each process its ``run``. The processes start with the first
    run and stop with the first ``close``."""

    def __init__(self, stage: Stage, makes: Mapping[str, Make]) -> None:
        self._url = stage.url
        self._makes = dict(makes)
        self._pipes: list[Pipe] = []

    def runs(self) -> dict[str, Each]:
        return {name: Shared(self, name) for name in self._makes}

    def work(self, name: str, times: int) -> None:
        self._pipes = self._pipes or self._started()
        for pipe in self._pipes:
            pipe.send((name, -(-times // len(self._pipes))))
        answers = [pipe.recv() for pipe in self._pipes]
        if wrong := [answer for answer in answers if answer]:
            raise RuntimeError(wrong[0])

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)
            pipe.close()
        self._pipes = []

    def _started(self) -> list[Pipe]:
        context, pipes = multiprocessing.get_context("spawn"), []
        for _ in range(PROCESSES):
            ours, theirs = context.Pipe()
            context.Process(target=_serve, args=(theirs, self._url, self._makes), daemon=True).start()
            theirs.close()
            pipes.append(ours)
        for pipe in pipes:
            pipe.recv()
        return pipes


class Shared:
    """A contender whose operations are shared out among the processes of a crowd."""

    share = 0.5  # of a measurement for one batch: they wait for the last of them

    def __init__(self, crowd: Crowd, name: str) -> None:
        self._crowd = crowd
        self._name = name

    def __call__(self, times: int) -> None:
        self._crowd.work(self._name, times)

    def close(self) -> None:
        self._crowd.close()


def _serve(pipe: Pipe, url: str, makes: dict[str, Make]) -> None:
    stage = Stage(url)
    runs = {name: make(stage) for name, make in makes.items()}
    pipe.send("ready")
    while (order := pipe.recv()) is not None:
        name, times = order
        try:
            runs[name](times)
            pipe.send("")
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")
