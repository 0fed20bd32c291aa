"""Says the steps of an instance in the words of the diagram of the version that it had at each of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dashboard.shared.diagrams.version_view import load_versions_of
from machines.diagrams import EventWords
from machines.engine import LookupFailed, Step
from machines.engine.definitions import Outline


class HistoryWords:
    """Holds the words of the versions in a history. ``versions``: revision -> version, where the step does not say."""

    def __init__(
        self, machine: str, version: int, outline: Outline | None, versions: Mapping[int, int] | None = None
    ) -> None:
        """Set up the words. ``version``, ``outline``: those that the instance has now."""
        self._machine = machine
        self._version = version
        self._versions = versions or {}
        self._words = {version: EventWords(outline)}
        self._load(set(self._versions.values()))

    def describe(self, step: Step) -> str:
        """Return ``after 45 s`` for the event ``after.t14``; the event's own name where a person or program sent it."""
        version = self._versions.get(step.revision) or step.version or self._version
        if version not in self._words:
            self._load({version})
        return self._words[version].describe(step.event, step.payload)

    def _load(self, versions: Collection[int]) -> None:
        missing = [version for version in versions if version not in self._words]
        if not missing:
            return
        try:
            plans = load_versions_of(self._machine, missing)
        except LookupFailed:  # a version that is gone: general words
            plans = {}
        for version in missing:
            self._words[version] = EventWords(plans[version].outline if version in plans else None)
