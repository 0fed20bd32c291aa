"""The method of the engine that verifies a definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from machines.engine import arguments
from machines.engine.definitions import CompiledDefinition
from machines.engine.simulation.methods import SimulationMethods

from .findings import VerificationFinding

MOST_SNAPSHOTS = 1_000_000


class VerificationMethods(SimulationMethods):
    """Simulation and verification of definitions: a part of ``Engine``."""

    def verify(
        self,
        definition: Mapping[str, Any] | CompiledDefinition | str,
        *,
        budget: int = 3_000,
        seconds: float = 20.0,
    ) -> list[VerificationFinding]:
        """Walk over what a machine can do, by the interpreter in Redis and without reading or writing a key; return
        what is wrong with it ("found", each with a run), what could not be decided, and what was proven.

        ``definition``: a definition, or the name of a published machine. ``budget``: snapshots to try at most;
        ``seconds``: how long at most. It assumes that instances are created with the values that the definition
        declares. ``docs/simulate-and-verify.md`` has the codes. Raises DefinitionError, BadInput, UnknownMachine.
        """
        arguments.check_count("budget", budget, MOST_SNAPSHOTS)
        arguments.check_seconds("seconds", seconds)
        compiled, root = self._compile_given(definition)
        from .verifier import Verifier  # few processes verify

        return Verifier(self._caller, root, compiled).verify(budget, seconds)
