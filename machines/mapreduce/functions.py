"""The registry of functions that may map and reduce, and the errors of a run.

Only a name goes to Redis, and a worker looks it up in its own list: nothing is ever imported or evaluated because a
key says so. Functions come into the list where they are defined, in an app's ``handlers.py``::

    @mapper
    def count_words(lines):         # the items of one chunk
        return len(" ".join(lines).split())

    @reducer("greatest")            # under another name than its own
    def greatest_of(parts):         # what the chunks gave, in their order
        return max(parts)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from machines.engine import limits
from machines.engine.arguments import show
from machines.engine.errors import BadInput, SignalboxError

Function = TypeVar("Function", bound=Callable[..., Any])
BUILTINS: tuple[Callable[..., Any], ...] = (sum, len, min, max, sorted, any, all)


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
        """Register a function, with or without a name. The function itself stays as it is. The function itself stays as
        it is."""
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
    shown = ("run",)

    def __init__(self, run: str, state: str) -> None:
        self.run = run
        super().__init__(
            f"run {run} is {state}: it takes no more items (those of a call that was still adding when the run was "
            f"started may or may not be part of it)"
        )


class NotFinished(SignalboxError):
    """``done`` of ``total`` chunks are mapped."""

    code = "SB472"
    shown = ("run", "done", "total")

    def __init__(self, run: str, state: str, done: int, total: int) -> None:
        self.run = run
        self.done = done
        self.total = total
        hint = "; call map() first" if state == "collecting" else ""
        super().__init__(f"run {run} is {state}: {done} of {total} chunks are mapped{hint}")


class RunFailed(SignalboxError):
    """``error`` and ``kind``: text and class of the last attempt's exception; ``chunk``: where, if it was a map."""

    code = "SB473"
    shown = ("run", "error", "kind", "chunk")

    def __init__(self, run: str, error: str, kind: str = "", chunk: int | None = None) -> None:
        self.run = run
        self.error = error
        self.kind = kind
        self.chunk = chunk
        what = f"run {run} failed" if chunk is None else f"chunk {chunk} of run {run} failed"
        super().__init__(f"{what}: {kind}: {error}" if kind else f"{what}: {error}")


class MapFailed(RunFailed):
    code = "SB474"


class ReduceFailed(RunFailed):
    code = "SB475"
