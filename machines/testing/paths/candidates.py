"""What can be done to an instance next: events with the payloads that verification tries, ends of jobs, and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from machines.engine import Instance
from machines.engine.definitions import CompiledDefinition
from machines.engine.definitions.model import MISSING, State
from machines.engine.definitions.outline import is_match
from machines.engine.definitions.reading.document import read_sound_machine
from machines.engine.expressions import walk
from machines.engine.limits import is_reserved_event
from machines.engine.verification.usage import Usage, list_links
from machines.engine.verification.walk import FIELD, Alphabet
from machines.testing.scenarios.document import When
from machines.testing.scenarios.runner import Sandbox

MOST_STARTS = 8
SECOND, DAY = 1000, 86_400_000  # ms
LONGEST_WAIT = 3650 * DAY


class Choices:
    """What is tried with one machine. ``starts``: data to create instances with, first what has to be given, then
    values of fields that nothing sets."""

    def __init__(self, compiled: CompiledDefinition) -> None:
        machine = read_sound_machine(compiled.source)
        assert machine is not None  # it was compiled
        self._machine = machine
        known = compiled.program.get("known", ())
        needed = [field.name for field in machine.fields.values() if field.required and field.initial is MISSING]
        usage = Usage(machine, given=needed)
        self._alphabet, self._usage = Alphabet(machine, usage, known), usage
        free = Alphabet(machine, Usage(machine, given=[*needed, *usage.list_free_fields()]), known)
        self.starts = [*self._alphabet.creations, *free.creations][:MOST_STARTS]

    def select_relevant(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data that decide what happens; of texts that chance makes only that they are there."""
        found = {name: value for name, value in data.items() if name in self._usage.relevant}
        return found | {name: True for name in self._usage.blurred if isinstance(found.get(name), str)}

    def list_states(self, instance: Instance) -> list[State]:
        """List the active states, those around others included."""
        return list({one.name: one for leaf in instance.configuration for one in self._machine.lineage(leaf)}.values())

    def list_events(self, instance: Instance, to: str) -> Iterator[When]:
        """List the events that an active state listens for, with their payloads."""
        heard = {name for state in self.list_states(instance) for one in state.all_transitions for name in one.events}
        for each in self._alphabet.events:
            name = each["event"]
            if not is_reserved_event(name) and any(is_match(descriptor, name) for descriptor in heard):
                yield When("event", name, payload=_fill(each["payload"], instance.data) or None, machine=to)

    def list_results(self, invoke: str, data: Any) -> list[Any]:
        """List the results that a job may end with. ``data``: of its instance."""
        return [_fill(one, data) for one in self._alphabet.results.get(invoke, [None])]

    def list_times(self, instance: Instance) -> Iterator[float]:
        """List the seconds since the epoch that guards of active states compare the time with."""
        guards = [one.guard for state in self.list_states(instance) for one in state.all_transitions if one.guard]
        compared = [node for guard in guards for node in walk(guard.expression.tree) if node[0] == "cmp"]
        for node in compared:
            for _, *sides in list_links(node):
                parts = [part for side in sides for part in walk(side)]
                values = [instance.data.get(part[1]) if part[0] == "data" else part[1] for part in parts if part[1:]]
                if ["now"] in parts:
                    yield from (one for one in values if isinstance(one, int | float) and not isinstance(one, bool))


def list_candidates(sandbox: Sandbox, choices: Mapping[str, Choices]) -> list[When]:
    """List what can be done now, events first, to the instance and to the machines that it talks to."""
    instance = sandbox.read()
    found = [] if instance.done else list(choices[sandbox.machine].list_events(instance, ""))
    others = {name: sandbox.find_instances(name) for name in choices if name != sandbox.machine}
    for name, running in others.items():
        if len(running) == 1:
            found += choices[name].list_events(running[0], name)
    found += _list_job_ends(sandbox, choices)
    found += _list_delays(sandbox, choices, [instance, *(one for running in others.values() for one in running)])
    return list({repr(one): one for one in found}.values())


def _fill(value: Any, data: Any) -> Any:
    """Put the values that data fields have now where a value names them."""
    if isinstance(value, dict) and FIELD in value:
        return data.get(value[FIELD]) if isinstance(data, dict) else None
    return {key: _fill(one, data) for key, one in value.items()} if isinstance(value, dict) else value


def _list_job_ends(sandbox: Sandbox, choices: Mapping[str, Choices]) -> Iterator[When]:
    """List results and the failure of each job of an invoke that is ready."""
    for job in sandbox.list_waiting():
        if job.invoke and job.place == "ready" and job.machine in choices:
            to = "" if job.machine == sandbox.machine else job.machine
            for result in choices[job.machine].list_results(job.invoke, job.data):
                yield When("job", job.invoke, machine=to, outcome="done", result=result)
            yield When("job", job.invoke, machine=to, outcome="failed", error="failed by the scenario")


def _list_delays(sandbox: Sandbox, choices: Mapping[str, Choices], instances: list[Instance]) -> Iterator[When]:
    """List how long it is until the next timer, and until guards that ask for the time change their answer.
    ``instances``: its own first."""
    now = sandbox.kit.now
    dues = [timer.due for one in instances for timer in one.timers]
    dues += [job.due for job in sandbox.list_waiting() if job.place == "delayed"]
    waits = [min(dues) - now] if dues else []
    times = choices[sandbox.machine].list_times(instances[0])
    for wait in dict.fromkeys([*waits, *(round(at * 1000) - now + SECOND for at in times)]):
        if 0 < wait <= LONGEST_WAIT:
            yield When("after", delay=wait)
