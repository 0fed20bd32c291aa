"""The methods of the engine about machines and their published definitions."""

from __future__ import annotations

from typing import Any

from machines.engine.definitions import CompiledDefinition
from machines.engine.jobs.ready_queues import ReadyQueues
from machines.engine.publishing.catalog import Catalog
from machines.engine.publishing.sensitive_fields import SensitiveFields
from machines.engine.records import PublishedMachine
from machines.engine.versions.rollout.methods import GuardSettings as GuardSettings
from machines.engine.versions.rollout.methods import RolloutMethods


class MachineMethods(RolloutMethods):
    """Machines and their definitions: a part of ``Engine``."""

    _catalog: Catalog
    _ready_queues: ReadyQueues

    def publish(
        self,
        definition: dict[str, Any] | CompiledDefinition,
        *,
        version: int | None = None,
        alone: bool = False,
        rollout: float | None = None,
        guard: GuardSettings = None,
        actor: str = "",
        reason: str = "",
    ) -> PublishedMachine:
        """Check, compile and store a definition as the machine's current version. A compiled definition is only stored.

        The same content again is the same version. ``version`` publishes under a known number, to restore a backup.
        ``alone``: without the machines embedded in it. ``rollout``: the percentage of new instances that get the
        version, for ``actor`` and ``reason``; the current one stays. ``guard``: when that stops by itself, False for
        never. Without ``rollout`` a new version ends the roll-out of another. Raises DefinitionError with every
        finding, VersionRefused.
        """
        start = None
        if rollout is not None:
            name = definition.program["machine"] if isinstance(definition, CompiledDefinition) else definition.get("id")
            start = self._start_words(name, rollout, guard, actor, reason)
        published = self._catalog.publish(definition, version, alone, start=start)
        self._ready_queues.announce(published)
        return published

    def machines(self) -> dict[str, int]:
        """Return machine name -> number of its current version."""
        return self._catalog.machines()

    def current_versions(self) -> dict[str, str]:
        """Return machine name -> ``<version>:<digest>`` of the current version; no other content has the same."""
        return self._catalog.current_versions()

    def recent_versions(self) -> dict[str, str]:
        """Return the same for duties that ask again and again: what an earlier release publishes is seen after five
        minutes."""
        return self._catalog.recent_versions()

    def catalog_revision(self) -> str:
        """Return a text that changes when a machine is published or deleted: cheap, for callers that look often. A
        publication by an earlier release may not change it."""
        return self._catalog.revision()

    def versions(self, machine: str) -> list[int]:
        """List the numbers of a machine's published versions. Raises UnknownMachine."""
        return self._catalog.versions(machine)

    def definition(self, machine: str, version: int | None = None) -> dict[str, Any]:
        """Return the definition as it was published, by default the current version. Raises UnknownMachine."""
        return self._catalog.definition(machine, version)

    def count_partitions(self, machine: str) -> int:
        """Return the number of partitions that a machine got with its first publication. Raises UnknownMachine."""
        return len(self._catalog.partitions(machine))

    def list_partition_counts(self) -> dict[str, int]:
        """Return machine -> number of its partitions; on a cluster the last copy while the list does not answer."""
        return self._catalog.directory()

    def sensitive(self, machine: str) -> SensitiveFields:
        """Return the fields that any published version marks as sensitive. The engine itself returns them in clear:
        the code that shows data to people redacts it. Raises UnknownMachine."""
        return self._catalog.sensitive(machine)
