"""One watched topic: its last value, numbered, and the sockets that watch it."""

from __future__ import annotations

from typing import Any

from dashboard.live import frames
from dashboard.live.changes import Inexpressible, changes
from dashboard.live.outbox import Outbox
from dashboard.live.topics import Topic

#: keys that change with every read and are news to nobody by themselves
CLOCKS = frozenset({"now"})


class Feed:
    def __init__(self, topic: Topic, epoch: str) -> None:
        self.topic = topic
        self.epoch = epoch
        self.watchers: set[Outbox] = set()
        self.value: dict[str, Any] | None = None
        self.seq = 0
        self.at = 0
        self.disclosed: frozenset[str] = frozenset()  # sensitive names that its values have shown in clear so far
        self._snapshot: str | None = None

    def offer(self, value: dict[str, Any], at: int, disclosed: frozenset[str] = frozenset()) -> None:
        """A value read at ``at`` (ms, Redis time), and what it shows in clear of sensitive fields. Tells the watchers
        what changed, if anything did."""
        self.disclosed |= disclosed
        old, self.value, self.at, self._snapshot = self.value, value, at, None
        if old is None:
            self.seq += 1
            self._tell_all()
            return
        try:
            patch = changes(old, value)
        except Inexpressible:
            self.seq += 1
            self._tell_all()
            return
        if patch.keys() - CLOCKS:
            self.seq += 1
            self._tell(patch)

    def turn(self, epoch: str) -> None:
        """Numbers start again; the next value goes out as a snapshot."""
        self.epoch, self.seq, self.value, self._snapshot = epoch, 0, None, None

    def snapshot(self) -> str | None:
        """The current value as a frame, encoded once for all who ask; None before the first read."""
        if self._snapshot is None and self.value is not None:
            self._snapshot = frames.encode(self._frame("snapshot", self.value))
        return self._snapshot

    def _tell_all(self) -> None:
        for outbox in self.watchers:
            outbox.snapshot(self.topic)

    def _tell(self, patch: dict[str, Any]) -> None:
        frame = frames.encode(self._frame("delta", patch))
        for outbox in self.watchers:
            outbox.delta(self.topic, frame)

    def _frame(self, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        return frames.value(kind, self.topic, epoch=self.epoch, seq=self.seq, data=data, at=self.at)
