"""The methods of the engine that try a definition out without storing anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from machines.engine import arguments
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status, build_error, read_fields
from machines.engine.definitions import CompiledDefinition
from machines.engine.errors import Suspended
from machines.engine.keys import Keys
from machines.engine.publishing.catalog import Catalog

from .records import SimulatedStep
from .simulator import START, Simulator, read_definition


class SimulationMethods:
    """Simulation of definitions: a part of ``Engine``."""

    keys: Keys
    _caller: Caller
    _catalog: Catalog

    def simulate(
        self,
        definition: Mapping[str, Any] | CompiledDefinition | str,
        events: Iterable[Any],
        data: Mapping[str, Any] | None = None,
        *,
        id: str = "simulated",
        now: int = START,
        parent: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> list[SimulatedStep]:
        """Create an instance in memory and give it events, by the interpreter in Redis and without reading or writing a
        key; return a record for each step, the creation first.

        ``definition``: a definition, or the name of a published machine. ``events``: each is the name of an event, a
        pair of name and payload, or an object: ``{"event", "payload", "groups"}``; ``{"advance": ms, "5m" or "next"}``,
        which winds the clock and fires the timers that become due; ``{"edit": data}``, as the repair; ``{"job": invoke,
        "done": result}`` or ``{"job", "failed": error, "kind", "attempts"}``; ``{"child": invoke, "done"}``,
        ``{"child", "failed"}`` or ``{"child", "event", "payload"}``; ``{"message": event, "payload", "from":
        {"machine", "id"}}``. ``now``: ms at which the clock begins. ``parent``: ``{"machine", "id", "invoke"}`` of an
        instance that invoked this one. ``seconds``: how long it may take.

        An event that is refused is a record like any other. Raises DefinitionError, BadPayload for data that does not
        fit, BadInput for an input that makes no sense where it stands, UnknownMachine.
        """
        arguments.encode_whole("now", now)
        compiled, root = self._compile_given(definition)
        return Simulator(self._caller, root, compiled.program).run(events, data, id, now, parent, seconds)

    def preview_events(
        self,
        machine: str,
        id: str,
        events: Iterable[Any],
        data: Mapping[str, Any] | None = None,
        *,
        now: int | None = None,
    ) -> list[SimulatedStep]:
        """Give events, as ``simulate`` takes them, to a copy in memory of an instance as it is now; change nothing, and
        return a record for each step. With ``data``, to an instance that is created with it. Which jobs wait is not
        known to the copy.

        Raises UnknownInstance, Suspended, BadPayload for data that does not fit, BadInput.
        """
        moment = self._caller.read_clocks()[0] if now is None else now
        snapshot, version = None, None
        if data is None:
            reply = self._caller.call("sb_get", self._catalog.partition(machine, id).root, id)
            if reply[0] != Status.OK:
                raise build_error(machine, id, reply)
            raw = read_fields(reply)
            if "_suspended" in raw:
                raise Suspended(machine, id, since=int(raw["_suspended"]))
            snapshot, version = {"raw": raw, "now": moment}, int(raw["_def"].partition(":")[0])
        compiled, root = self._compile_given(self._catalog.definition(arguments.check_machine(machine), version))
        return Simulator(self._caller, root, compiled.program).run(events, data, id, moment, snapshot=snapshot)

    def _compile_given(
        self, definition: Mapping[str, Any] | CompiledDefinition | str
    ) -> tuple[CompiledDefinition, str]:
        if isinstance(definition, str):
            definition = self._catalog.definition(arguments.check_machine(definition), None)
        compiled = read_definition(definition)
        return compiled, self.keys.partition(str(compiled.program["machine"])).root
