"""The machine of tasks, and the ``OPTIONS`` of a backend in ``TASKS``: how the jobs of its tasks are tried, and which
modules declare tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from machines.engine import SignalboxError
from machines.engine.jobs.records import Enqueue, build_arguments

MACHINE = "django_tasks"
OF_JOBS = ("attempts", "backoff", "lease", "timeout", "jitter", "stop", "weight")
MODULES, ON_COMMIT = "modules", "on_commit"
NAMES = ("group", "unique")
KNOWN = (*OF_JOBS, MODULES, ON_COMMIT, *NAMES, "debounce")
NO_RESULT = "ResultRefused"  # an exception that another attempt would raise again


class InvalidOptions(ValueError):
    """The OPTIONS of a backend do not fit; the text says which, and what would."""


@dataclass(frozen=True, slots=True)
class Options:
    """``job``: arguments of ``Engine.enqueue``; ``modules``: those that declare tasks, beside ``tasks`` of each app;
    ``on_commit``: whether tasks wait for the transaction around ``enqueue``; ``group``, ``unique``: the argument of a
    task whose value is the group or the unique key of its job, "" for none; ``debounce``: ms of the last call."""

    job: Mapping[str, Any] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    on_commit: bool = False
    group: str = ""
    unique: str = ""
    debounce: int = 0


def read_options(given: object) -> Options:
    """Return the options of a backend, checked. Raises InvalidOptions."""
    if not isinstance(given, Mapping):
        raise InvalidOptions(f"OPTIONS is a dict, not {type(given).__name__}")
    if unknown := sorted(str(name) for name in given if name not in KNOWN):
        raise InvalidOptions(f"OPTIONS has no {', '.join(unknown)}; it has {', '.join(KNOWN)}")
    modules = given.get(MODULES, ())
    if not isinstance(modules, list | tuple) or not all(isinstance(name, str) for name in modules):
        raise InvalidOptions("OPTIONS: modules is a list of names of modules")
    for name in NAMES:
        if not isinstance(named := given.get(name, ""), str) or (named and not named.isidentifier()):
            raise InvalidOptions(f"OPTIONS: {name} is the name of an argument of the tasks")
    job = {name: given[name] for name in OF_JOBS if name in given}
    for name in ("jitter", ON_COMMIT):
        if not isinstance(given.get(name, True), bool):
            raise InvalidOptions(f"OPTIONS: {name} is True or False")
    try:
        debounce = given.get("debounce", 0)
        build_arguments(Enqueue(MACHINE, "task", unique=given.get("unique"), debounce=debounce, **job))
        job["stop"] = (*job.get("stop", ()), NO_RESULT)
        build_arguments(Enqueue(MACHINE, "task", **job))
    except SignalboxError as error:
        raise InvalidOptions(f"OPTIONS: {error}") from None
    named = {name: given.get(name, "") for name in NAMES}
    return Options(job, tuple(modules), given.get(ON_COMMIT, False), **named, debounce=debounce)
