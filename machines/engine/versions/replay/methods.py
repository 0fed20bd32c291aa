"""The method of the engine that replays histories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from machines.engine import arguments
from machines.engine.connection.calls import Caller
from machines.engine.definitions import CompiledDefinition
from machines.engine.publishing.catalog import Catalog
from machines.engine.versions.records import Replay

from .replayer import Replayer


class ReplayMethods:
    """Replays of histories: a part of ``Engine``."""

    _caller: Caller
    _catalog: Catalog

    def replay(
        self,
        machine: str,
        version: int | Mapping[str, Any] | CompiledDefinition,
        sample: int | None = None,
        *,
        states: Mapping[str, str | Sequence[str]] | None = None,
    ) -> Replay:
        """Run recorded histories on a version, by the interpreter in Redis and without writing, and compare each step:
        configuration, transitions, and the data fields that both versions have.

        ``version``: a published one, or a definition that is not published. ``sample``: the number of instances, spread
        over partitions and states; None for all. Each history runs from its creation to its first difference.
        ``states``: state of a recorded version -> state, or states, of the replayed one, where names differ. It leaves
        the server half of its time. Raises BadInput, DefinitionError, UnknownMachine.
        """
        return Replayer(self._caller, self._catalog, arguments.check_machine(machine)).replay(version, sample, states)
