"""A run as callers use it, from its first item to its result."""

import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar, overload

from machines.catalog import builtin_machines
from machines.engine import Engine, Instance, arguments, limits
from machines.engine.arguments import show
from machines.engine.errors import BadInput, EngineUnavailable, InstanceExists, Refused, SignalboxError, Suspended
from machines.engine.search.page_merge import find_pages

from .store import CHUNK, RUN, Store, split_pages

Function = TypeVar("Function", bound=Callable[..., Any])
BUILTINS: tuple[Callable[..., Any], ...] = (sum, len, min, max, sorted, any, all)
MAX_CHUNKS = 500  # a suspended run keeps a thousand messages: what all its chunks tell it has to fit twice
PAUSE, LONGEST_PAUSE = 0.02, 0.5  # seconds between two looks whether a run has ended
TRIES = 5  # tries of a call while Redis is away
TRY_AGAIN = 0.1  # seconds before the second try; doubles

Answer = TypeVar("Answer")


class FunctionError(ValueError):
    """A function cannot be registered; the text says which and why."""


class Functions:
    """Functions of one kind by name. ``kind`` is the decorator's name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._functions: dict[str, Callable[..., Any]] = {function.__name__: function for function in BUILTINS}

    @overload
    def register(self, given: str) -> Callable[[Function], Function]: ...
    @overload
    def register(self, given: Function) -> Function: ...
    def register(self, given: Any) -> Any:
        """Register a function, with or without a name. The function itself stays as it is."""
        if isinstance(given, str):
            return lambda function: self._add(given, function)
        return self._add(getattr(given, "__name__", ""), given)

    def get(self, name: str) -> Callable[..., Any] | None:
        return self._functions.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._functions))

    def name_of(self, given: str | Callable[..., Any]) -> str:
        """Return the name a function, or a name, is registered under. Raises UnregisteredFunction."""
        if isinstance(given, str):
            if given in self._functions:
                return given
            raise UnregisteredFunction(
                f"no function is registered as {self.kind} {show(given)}; registered here: {', '.join(self)}"
            )
        for name, function in self._functions.items():
            if function is given:
                return name
        raise UnregisteredFunction(
            f"{_locate(given)} is not registered as a {self.kind}, so no worker can run it: define it with "
            f"@{self.kind} in the handlers.py of an installed app (a lambda cannot be used), or take one of "
            f"{', '.join(self)}"
        )

    def _add(self, name: str, function: Function) -> Function:
        if (why := limits.check_handler_name(name)) is not None:
            raise FunctionError(f'the name of a {self.kind} {why}; write @{self.kind}("name")')
        if not callable(function) or inspect.iscoroutinefunction(function):
            raise FunctionError(f"{name!r} is no plain function: a {self.kind} is called, not awaited")
        known = self._functions.get(name)
        if known is not None and _locate(known) != _locate(function):
            raise FunctionError(f"two functions are called {name!r}: {_locate(known)} and {_locate(function)}")
        self._functions[name] = function
        return function


def _locate(function: object) -> str:
    module = getattr(function, "__module__", "?")
    return f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)}"


mappers = Functions("mapper")
reducers = Functions("reducer")
mapper = mappers.register
reducer = reducers.register


class UnregisteredFunction(BadInput):
    code = "SB470"


class AlreadyStarted(SignalboxError):
    code = "SB471"

    def __init__(self, run: str, state: str) -> None:
        super().__init__(
            f"run {run} is {state}: it takes no more items (those of a call that was still adding when the run was "
            f"started may or may not be part of it)",
            run=run,
        )


class NotFinished(SignalboxError):
    """``done`` of ``total`` chunks are mapped."""

    code = "SB472"

    def __init__(self, run: str, state: str, done: int, total: int) -> None:
        hint = "; call map() first" if state == "collecting" else ""
        super().__init__(
            f"run {run} is {state}: {done} of {total} chunks are mapped{hint}", run=run, done=done, total=total
        )


class RunFailed(SignalboxError):
    """``error`` and ``kind``: text and class of the last attempt's exception; ``chunk``: where, if it was a map."""

    code = "SB473"

    def __init__(self, run: str, error: str, kind: str = "", chunk: int | None = None) -> None:
        what = f"run {run} failed" if chunk is None else f"chunk {chunk} of run {run} failed"
        super().__init__(
            f"{what}: {kind}: {error}" if kind else f"{what}: {error}", run=run, error=error, kind=kind, chunk=chunk
        )


class MapFailed(RunFailed):
    code = "SB474"


class ReduceFailed(RunFailed):
    code = "SB475"


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of ``total`` chunks are mapped; ``state`` is the run's."""

    done: int
    total: int
    state: str


class Run:
    """A run that is there. All calls raise UnknownInstance when it has been removed, and EngineUnavailable."""

    def __init__(self, id: str, engine: Engine) -> None:
        self.id = id
        self._engine = engine

    def add_items(self, items: Iterable[Any]) -> int:
        """Add items, of which none need be a number: whatever JSON carries. How many there were.

        They are sent page by page, and never held together. All of one call count, or none: an iterable that raises
        leaves nothing behind, and neither does a process that dies. Raises BadPayload, AlreadyStarted.
        """
        if isinstance(items, (str, bytes, dict)):
            raise BadInput(f"items come as a list or another iterable, not as {type(items).__name__}")
        self._prepare()
        if (instance := self._get()).state != "collecting":
            raise AlreadyStarted(self.id, instance.state)
        store = Store(self._engine, self.id)
        adder = _insist(store.adder)
        total = self._put(store, adder, items)
        if total:
            _insist(lambda: store.complete(adder, total))
            self._count(adder, total)
        return total

    def _put(self, store: Store, adder: int, items: Iterable[Any]) -> int:
        total = number = 0
        try:
            for number, page in enumerate(split_pages(items)):
                _insist(partial(store.put, adder, number, page))
                total += page.count
        except BaseException:
            with suppress(SignalboxError):  # they do not count in any case
                store.discard(adder, number + 1)
            raise
        return total

    def _count(self, adder: int, items: int) -> None:
        payload = {"adder": adder, "items": items}
        try:
            _insist(lambda: self._engine.fire(RUN, self.id, "add", payload))
        except Suspended:
            return  # they are there; their number is shown when the run is split
        except Refused as refused:
            raise AlreadyStarted(self.id, refused.explanation.state) from refused

    def map(self) -> None:
        """Let workers begin: all items are there. Said twice, it begins once. Said twice, it begins once."""
        self._prepare()
        _insist(lambda: self._engine.fire(RUN, self.id, "map", key="map"))

    def reduce(self, timeout: float | None = None) -> Any:
        """Wait for the result, ``timeout`` seconds at most. Raises NotFinished, MapFailed, ReduceFailed."""
        until = None if timeout is None else time.monotonic() + arguments.check_seconds("timeout", timeout)
        pause = PAUSE
        while (instance := self._get()).state in ("mapping", "reducing"):
            left = LONGEST_PAUSE if until is None else until - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(pause, left))
            pause = min(pause * 2, LONGEST_PAUSE)
        return self._result(instance)

    def result(self) -> Any:
        """Return the result as it was kept. Raises NotFinished, MapFailed, ReduceFailed."""
        return self._result(self._get())

    def progress(self) -> Progress:
        instance = self._get()
        return Progress(len(instance.data["finished"]), instance.data["chunks"], instance.state)

    def retry(self) -> None:
        """Run again what is not finished of a failed run: chunks that are mapped stay so. Raises Refused."""
        self._engine.fire(RUN, self.id, "retry")

    def remove(self) -> None:
        """Have a worker remove the run with its items, chunks and result. It goes by itself a day after its end."""
        self._engine.fire(RUN, self.id, "remove")

    def chunks(self, state: str, limit: int = 50) -> list[Instance]:
        """List chunks of this run in a state of map_reduce_chunk, the longest-staying first."""
        arguments.check_count("limit", limit, MAX_CHUNKS)
        pages = find_pages(self._engine, CHUNK, state=state, where={"run": self.id}, limit=limit, partial=False)
        return list(islice(chain.from_iterable(pages), limit))

    def _prepare(self) -> None:
        """Do nothing: the run is there."""

    def _get(self) -> Instance:
        return self._engine.get(RUN, self.id)

    def _result(self, instance: Instance) -> Any:
        data = instance.data
        if instance.state == "failed":
            raise _failure(self.id, data)
        if instance.state != "done":
            raise NotFinished(self.id, instance.state, len(data["finished"]), data["chunks"])
        return Store(self._engine, self.id).result()


class MapReduce(Run):
    """A new run. ``map_function`` gets the items of a chunk as a list, ``reduce_function`` what the chunks gave, as a
    list in their order; both give anything JSON carries. They are run by workers, which know only registered ones.

    It is there for others, under ``id``, from the first call on. Raises UnregisteredFunction, BadInput.
    """

    def __init__(
        self,
        name: str,
        map_function: str | Callable[[list[Any]], Any] = sum,
        reduce_function: str | Callable[[list[Any]], Any] = sum,
        chunks: int = 10,
        *,
        engine: Engine | None = None,
    ) -> None:
        if (why := limits.check_handler_name(name)) is not None:
            raise BadInput(f"the name of a run {why}", code="SB401")
        if isinstance(chunks, bool) or not isinstance(chunks, int) or not 1 <= chunks <= MAX_CHUNKS:
            raise BadInput(
                f"chunks is a whole number from 1 to {MAX_CHUNKS}, not {arguments.show(chunks)}", code="SB402"
            )
        self._data = {
            "name": name,
            "map": mappers.name_of(map_function),
            "reduce": reducers.name_of(reduce_function),
            "chunks": chunks,
        }
        self._there = False
        engine = engine or _engine_of_this_process()
        super().__init__(f"{name}:{engine.new_id()}", engine)

    @classmethod
    def open(cls, id: str, *, engine: Engine | None = None) -> Run:
        """Open a run that another process made. Raises UnknownInstance."""
        engine = engine or _engine_of_this_process()
        return Run(engine.get(RUN, id).id, engine)

    def _prepare(self) -> None:
        if not self._there:
            for name in (CHUNK, RUN):  # a run is of no use without the other
                _insist(partial(builtin_machines.publish, self._engine, name))
            _insist(self._create)
            self._there = True

    def _create(self) -> None:
        try:
            self._engine.create(RUN, self.id, self._data)
        except InstanceExists:
            return  # the answer to the try before was lost: nobody else draws the same id

    def _get(self) -> Instance:
        self._prepare()
        return super()._get()


def _engine_of_this_process() -> Engine:
    from machines.connections import get_engine

    return get_engine()


def _failure(run: str, data: dict[str, Any]) -> RunFailed:
    error, kind, chunk = data.get("error") or "", data.get("kind") or "", data.get("chunk")
    if chunk is not None:
        return MapFailed(run, error, kind, chunk)
    reducing = data["planned"] and len(data["finished"]) == data["chunks"]
    return (ReduceFailed if reducing else RunFailed)(run, error, kind)


def _insist(call: Callable[[], Answer]) -> Answer:
    """Make a call that may be said twice, a few times while Redis is away."""
    for attempt in range(TRIES - 1):
        try:
            return call()
        except EngineUnavailable:
            time.sleep(TRY_AGAIN * 2**attempt)
    return call()
