"""Chains, groups and chords of tasks: each is a statechart, made and published when the flow is enqueued.

::

    from machines.tasks import PREVIOUS, call, chain, chord, group

    flow = chain(call(charge, order), group(call(pack, order), call(mail, order)), call(close, PREVIOUS)).enqueue()

A call is a state with one job, a chain its states one after the other, a group a parallel state with a region for each
part. The machine is named by what it does, so flows of one form are instances of one machine; the arguments are their
data. A task whose last attempt failed leaves its instance where it is: a retry of the dead job goes on from there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from asgiref.sync import sync_to_async
from django.db import transaction

from machines.catalog.builtin_machines import FLOW
from machines.conf import conf
from machines.connections import get_engine
from machines.engine import errors
from machines.engine.definitions.durations import format_duration

from . import declarations
from .backend import SignalboxBackend, convert_priority, find_backend
from .framework import InvalidTask, Task, TaskError, TaskResultDoesNotExist, TaskResultStatus
from .results import list_errors, make_result

MAX_CALLS = 100  # of one flow: their results are data of one instance
MAX_DEPTH = 15  # groups in groups: a machine has 32 levels, and each takes two
DONE = "Done"


class Previous:
    """Stands, as an argument of a call, for the result of what comes before it in the chain; of a group, the list."""

    def __repr__(self) -> str:
        return "PREVIOUS"


PREVIOUS = Previous()


class Part:
    """A call, or calls that are put together."""

    def enqueue(self) -> Flow:
        """Start the flow, and return it. With the option ``on_commit`` of its first task's backend it starts when the
        transaction around this call commits. Raises InvalidTask, and TypeError for arguments that are no JSON."""
        return Builder(self).start()

    async def aenqueue(self) -> Flow:
        return await sync_to_async(self.enqueue, thread_sensitive=True)()


@dataclass(frozen=True, slots=True)
class Call(Part):
    task: Task
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chain(Part):
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Group(Part):
    parts: tuple[Part, ...]


def call(task: Task, /, *args: Any, **kwargs: Any) -> Call:
    """Return the call of a task with these arguments, one or several of which may be PREVIOUS."""
    if not isinstance(task, Task):
        raise InvalidTask(f"call takes a task, not {task!r:.100}: decorate the function with @task")
    return Call(task, args, kwargs)


def chain(*parts: Part) -> Chain:
    """Return a flow of parts that run one after the other. Its result is that of the last."""
    return Chain(_check_parts("chain", parts))


def group(*parts: Part) -> Group:
    """Return a flow of parts that run at once. Its result is the list of their results, in the order given."""
    return Group(_check_parts("group", parts))


def chord(parts: Group, callback: Part) -> Chain:
    """Return a flow that runs the callback when all parts of the group have ended well."""
    if not isinstance(parts, Group):
        raise InvalidTask(f"chord takes a group and a call, not {parts!r:.100}: write chord(group(...), call(...))")
    return chain(parts, callback)


def _check_parts(kind: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    if not parts:
        raise InvalidTask(f"a {kind} has one part at least")
    for number, part in enumerate(parts, start=1):
        if not isinstance(part, Part):
            raise InvalidTask(f"part {number} of the {kind} is {part!r:.100}: write call(task, ...)")
    return parts


@dataclass(slots=True)
class Flow:
    """A flow that was enqueued. ``id``: ``<machine>/<instance>``; "" until a transaction that it waits for commits."""

    id: str
    status: TaskResultStatus = TaskResultStatus.READY
    errors: list[TaskError] = field(default_factory=list)
    _result: Any = None

    @property
    def is_finished(self) -> bool:
        return self.status in (TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED)

    @property
    def return_value(self) -> Any:
        """Return the result of the flow. Raises ValueError before it has succeeded."""
        if self.status != TaskResultStatus.SUCCESSFUL:
            raise ValueError(f"the flow {self.id} has no result: it is {self.status.value}")
        return self._result

    def refresh(self) -> None:
        """Read the state of the flow: FAILED while a task of it has no attempt left. Raises TaskResultDoesNotExist."""
        machine, _, id = self.id.partition("/")
        try:
            if not machine.startswith(FLOW):
                raise errors.UnknownMachine(machine)
            found = get_engine().inspect(machine, id, steps=1)
        except (errors.LookupFailed, errors.BadInput):
            raise TaskResultDoesNotExist(self.id) from None
        dead = [job for job in found.jobs if job.place == "dead"]
        self.errors = [error for job in dead for error in list_errors(job)]
        if found.instance.done:
            self.status, self._result = TaskResultStatus.SUCCESSFUL, found.instance.data.get("result")
        elif dead:
            self.status = TaskResultStatus.FAILED
        elif found.instance.revision > 1 or any(job.attempt for job in found.jobs):
            self.status = TaskResultStatus.RUNNING
        else:
            self.status = TaskResultStatus.READY

    async def arefresh(self) -> None:
        await sync_to_async(self.refresh, thread_sensitive=True)()


def get_flow(id: str) -> Flow:
    """Read a flow by its id. Raises TaskResultDoesNotExist for one that has expired or never was."""
    flow = Flow(id)
    flow.refresh()
    return flow


class Builder:
    """Makes the machine of a flow and the data of its instance. ``result_<n>`` is what call ``n`` returned."""

    def __init__(self, whole: Part) -> None:
        self._calls, self._depth, self._names = 0, 0, {DONE}
        self._first: SignalboxBackend | None = None
        self._fields: dict[str, Any] = {"result": {}, "enqueued_at": {"type": "string"}}
        self.data: dict[str, Any] = {}
        states, initial, result = self._add(whole, DONE, "")
        for last in _list_ends(states, DONE):
            last["actions"] = [*last["actions"], {"set": {"result": result}}]
        states[DONE] = {"type": "final"}
        body = {
            "description": f"A flow of tasks: {describe(whole)}"[:1000],
            "accepts": {"from": [], "description": "Only its tasks move it."},
            "retain": {"finished": format_duration(conf.TASK_RESULTS * 1000), "archive": False},
            "context": {"type": "object", "properties": self._fields},
            "initial": initial,
            "states": states,
        }
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
        self.definition = {"id": FLOW + digest, **body}

    def start(self) -> Flow:
        flow = Flow("")
        if self._first is not None and self._first.job_options.on_commit:
            transaction.on_commit(partial(self._create, flow))
        else:
            self._create(flow)
        return flow

    def _create(self, flow: Flow) -> None:
        engine, machine, id = get_engine(), self.definition["id"], uuid4().hex
        try:
            engine.create(machine, id, self.data)
        except errors.UnknownMachine:
            engine.publish(self.definition)
            engine.create(machine, id, self.data)
        flow.id = f"{machine}/{id}"

    # States

    def _add(self, part: Part, target: str, before: str) -> tuple[dict[str, Any], str, str]:
        """Return the states of a part, the first of them, and the expression of its result. ``target``: the state after
        it; ``before``: the expression of the result before it, "" for none."""
        if isinstance(part, Call):
            return self._add_call(part, target, before)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidTask(f"chains and groups of a flow lie {MAX_DEPTH} deep in one another at most")
        if isinstance(part, Chain):
            found = self._add_chain(part, target, before)
        else:
            assert isinstance(part, Group)
            found = self._add_group(part, target, before)
        self._depth -= 1
        return found

    def _add_chain(self, part: Chain, target: str, before: str) -> tuple[dict[str, Any], str, str]:
        states: dict[str, Any] = {}
        open_ends: list[dict[str, Any]] = []
        first = ""
        for one in part.parts:
            added, initial, before = self._add(one, "", before)
            for end in open_ends:
                end["target"] = initial
            open_ends = _list_ends(added, "")
            states |= added
            first = first or initial
        for end in open_ends:
            end["target"] = target
        return states, first, before

    def _add_group(self, part: Group, target: str, before: str) -> tuple[dict[str, Any], str, str]:
        regions, results = {}, []
        name = self._choose_name("together")
        for one in part.parts:
            region, ended = self._choose_name("part"), self._choose_name("ended")
            states, initial, result = self._add(one, ended, before)
            regions[region] = {"initial": initial, "states": states | {ended: {"type": "final"}}}
            results.append(result)
        state = {"type": "parallel", "states": regions, "onDone": {"target": target, "actions": []}}
        return {name: state}, name, f"[{', '.join(results)}]"

    def _add_call(self, part: Call, target: str, before: str) -> tuple[dict[str, Any], str, str]:
        self._calls += 1
        if self._calls > MAX_CALLS:
            raise InvalidTask(f"a flow has {MAX_CALLS} calls at most")
        task, number = part.task, self._calls
        backend = self._check(part, before)
        path, given, result = declarations.get_path(task), f"call_{number}", f"result_{number}"
        self._fields |= {given: {"type": "object"}, result: {}}
        args = [None if one is PREVIOUS else one for one in part.args]
        kwargs = {name: None if one is PREVIOUS else one for name, one in part.kwargs.items()}
        made = make_result(task, task.backend, args, kwargs)
        self.data[given] = {"args": made.args, "kwargs": made.kwargs}
        self.data.setdefault("enqueued_at", made.enqueued_at.isoformat())
        values = {"task": json.dumps(path), "backend": json.dumps(task.backend), "enqueued_at": "enqueued_at"}
        values["args"] = _put(f"{given}.args", part.args, enumerate, before)
        values["kwargs"] = _put(f"{given}.kwargs", part.kwargs, dict.items, before)
        invoke = {
            "id": f"call.{number}",
            "src": declarations.get_handler_name(path),
            "queue": task.queue_name,
            "input": values,
            "priority": convert_priority(task.priority),
            "onDone": {"target": target, "actions": [{"set": {result: "event.result"}}]},
            **_describe_options(backend.job_options.job),
        }
        if backend.job_options.group:
            self.data[given]["group"] = backend.find_group(task, args, kwargs)
            invoke["group"] = f"item({given}, 'group')"
        name = self._choose_name(task.func.__name__)
        return {name: {"description": path, "invoke": invoke}}, name, result

    def _check(self, part: Call, before: str) -> SignalboxBackend:
        """Return the backend of a call. Raises InvalidTask for what no flow can have."""
        path = declarations.get_path(part.task)
        find_backend(declarations.find_decorated(part.task).backend)  # workers have it
        backend = find_backend(part.task.backend)
        backend.validate_task(part.task)
        if part.task.run_after is not None:
            raise InvalidTask(f"{path} has run_after: in a flow a task runs when what is before it has ended")
        if not before and any(one is PREVIOUS for one in (*part.args, *part.kwargs.values())):
            raise InvalidTask(f"{path} has PREVIOUS as an argument, and nothing is before it in the flow")
        self._first = self._first or backend
        return backend

    def _choose_name(self, wanted: str) -> str:
        """Return a name of a state that no other one has."""
        name, number = wanted[:80], 1
        while name in self._names:
            number += 1
            name = f"{wanted[:80]} {number}"
        self._names.add(name)
        return name


def _list_ends(states: Mapping[str, Any], target: str) -> list[dict[str, Any]]:
    """Return the ``onDone`` transitions of the states, and of their calls, that lead to ``target``."""
    owners = [owner for state in states.values() for owner in (state, state.get("invoke", {}))]
    return [owner["onDone"] for owner in owners if owner.get("onDone", {}).get("target") == target]


def _put(base: str, given: Any, items: Any, before: str) -> str:
    """Return the expression of arguments in which the result before stands for PREVIOUS."""
    for key, value in items(given):
        if value is PREVIOUS:
            base = f"put({base}, {json.dumps(key)}, {before})"
    return base


def _describe_options(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a backend as an invoke has them."""
    retry = {name: job[name] for name in ("attempts", "jitter", "stop") if name in job}
    retry["stop"] = list(retry.get("stop", ()))
    if "backoff" in job:
        retry["backoff"] = format_duration(job["backoff"])
    times = {name: format_duration(job[name]) for name in ("lease", "timeout") if job.get(name)}
    return {"retry": retry, **times, **({"weight": job["weight"]} if "weight" in job else {})}


def describe(part: Part) -> str:
    """Return a flow as one line: ``chain(charge, group(pack, mail))``."""
    if isinstance(part, Call):
        return part.task.func.__name__
    assert isinstance(part, Chain | Group)
    return f"{type(part).__name__.lower()}({', '.join(map(describe, part.parts))})"
