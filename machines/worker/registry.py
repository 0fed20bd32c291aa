"""The registry of job handlers, and their discovery in installed apps.

::

    from machines.worker import handler

    @handler("provision")
    def provision(job):          # or: async def provision(job)
        return {"ok": True}

    @handler("index", max_jobs=100)
    def index(jobs):             # a list; one outcome each
        return [{"ok": True} for job in jobs]

Finding the handlers: each installed app's ``handlers.py``, and modules that are named. Django is needed for apps only.
"""

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from machines.engine import limits

from .job import Job

MOST_JOBS = 100  # of one call: as many as one take brings

Function = TypeVar("Function", bound=Callable[..., Any])


class HandlerError(ValueError):
    """A handler cannot be registered; the text says which and why."""


class ForeignJob(Exception):
    """A job of another machine names a handler that works for one machine alone."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered function; ``where`` is its dotted path, for messages. ``queue``: whether queues of its name are for
    it. ``machine``: the only one whose jobs it takes, "" for jobs of any, beside machines whose names begin with
    ``family``. ``max_jobs``: the most jobs of one call, which then gets a list; 0 for calls with one job."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    where: str
    queue: bool = True
    machine: str = ""
    family: str = ""
    max_jobs: int = 0

    def check(self, job: Job) -> None:
        """Raise ForeignJob for a job of a machine that it does not work for."""
        if not self.machine or self.machine == job.machine:
            return
        if not self.family or not job.machine.startswith(self.family):
            raise ForeignJob(
                f"the handler {self.name!r} takes jobs of the machine {self.machine!r} alone: nothing was done"
            )


class Registry:
    """Handlers by name. A worker process uses ``handlers``, the one below; tests make their own."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._queues: set[tuple[str, str]] = set()

    def handler(
        self, name: str, *, queue: bool = True, machine: str = "", family: str = "", max_jobs: int | None = None
    ) -> Callable[[Function], Function]:
        """Register a handler: ``name`` is what a definition's ``src`` says. The function itself stays as it is. With
        ``queue``, workers also listen to queues of that name. ``machine``: the only one whose jobs it takes; jobs of
        others fail at once, but for machines whose names begin with ``family``. With ``max_jobs``, 1 to 100, a call
        gets a list of so many jobs of one queue at most, and returns the outcome of each, a result or an exception;
        None stands for a list of None."""
        if (why := limits.check_handler_name(name)) is not None:
            raise HandlerError(f'a handler\'s name {why}; write @handler("name")')
        if max_jobs is not None and (type(max_jobs) is not int or not 1 <= max_jobs <= MOST_JOBS):
            raise HandlerError(f"max_jobs of the handler {name!r} is {max_jobs!r}, not a number from 1 to {MOST_JOBS}")

        def register(function: Function) -> Function:
            self._add(_make_handler(name, function, queue, machine, family, max_jobs or 0))
            return function

        return register

    def _add(self, handler: Handler) -> None:
        known = self._handlers.get(handler.name)
        if known is not None and known.where != handler.where:
            raise HandlerError(f"two handlers are called {handler.name!r}: {known.where} and {handler.where}")
        self._handlers[handler.name] = handler

    def add_queue(self, machine: str, queue: str) -> None:
        """Have workers serve a queue that no definition feeds from their start."""
        self._queues.add((machine, queue))

    def claims(self, machine: str, queue: str) -> bool:
        """Tell whether a queue that no definition feeds is for the handlers here."""
        known = self._handlers.get(queue)
        return (machine, queue) in self._queues or (
            known is not None and known.queue and known.machine in ("", machine)
        )

    def list_queues(self, machines: Iterable[str]) -> set[tuple[str, str]]:
        """List the queues of these machines that ``claims`` tells to be for the handlers here, whether or not they
        exist."""
        named = [handler for handler in self._handlers.values() if handler.queue]
        found = {(machine, one.name) for machine in machines for one in named if one.machine in ("", machine)}
        return found | {queue for queue in self._queues if queue[0] in machines}

    def get(self, name: str) -> Handler | None:
        return self._handlers.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._handlers

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._handlers))

    def __len__(self) -> int:
        return len(self._handlers)


def _make_handler(
    name: str, function: Callable[..., Any], queue: bool, machine: str, family: str, max_jobs: int
) -> Handler:
    call = getattr(function, "__call__", None)  # noqa: B004  an object whose __call__ is a coroutine function counts as async
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
    where = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    return Handler(name, function, is_async, where, queue, machine, family, max_jobs)


handlers = Registry()
handler = handlers.handler


def discover(modules: Iterable[str] = ()) -> Registry:
    """Import ``handlers`` of every installed app, and the modules named; return the registry they filled.

    An app without that module is fine; one whose module cannot be imported stops the start.
    """
    from django.utils.module_loading import autodiscover_modules

    autodiscover_modules("handlers")
    return import_handlers(modules)


def import_handlers(modules: Iterable[str]) -> Registry:
    """Import modules that register handlers. Raises HandlerError for a module that does not exist."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise  # the module is there, and something that it imports is not
            raise HandlerError(
                f"there is no module {module!r}; name it as for an import, from the folder of this command"
            ) from None
    return handlers
