"""Records of what a repair would do, and of the jobs an instance waits for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Wait:
    """The job of one invoke of an active state. ``job`` and ``place`` are empty where the job no longer exists.

    ``listened``: whether a transition takes the job's end, so that the job can be skipped.
    """

    invoke: str
    state: str
    src: str
    queue: str
    job: str = ""
    place: str = ""
    listened: bool = False
    suspended: bool = False

    @property
    def repairs(self) -> list[str]:
        """List the repairs that make sense now: "retry", "skip", "cancel"."""
        retried = ["retry"] if self.place in ("dead", "delayed") else []
        if self.suspended:
            return retried
        ended = ["cancel"] if self.place in ("ready", "delayed", "leased") else []
        return retried + (["skip"] if self.listened else []) + ended


@dataclass(frozen=True, slots=True)
class Preview:
    """What a repair would do to an instance at revision ``version``; nothing was done.

    ``changes``: data field -> its new value, None where it would be unset. ``withdrawn``: jobs that would be withdrawn,
    ``{"id", "src", "queue", "place", "invoke"}``; ``added``: jobs that would be enqueued, ``{"src", "queue", "invoke",
    "input"}``; ``renewed``: the job that would be retried, or "". ``disarmed`` and ``armed``: timers, ``{"event",
    "state", "target", "due"}``; a postponed timer is in both. ``ended`` and ``started``: child instances, ``{"invoke",
    "machine", "id"}``. ``messages``: number of messages to be sent; ``held``: messages that wait until a suspended
    instance is resumed. ``done``: whether the instance would be in a final state.
    """

    machine: str
    id: str
    repair: str
    _: KW_ONLY
    revision: int
    before: list[str]
    configuration: list[str]
    moved: bool
    changes: dict[str, Any]
    withdrawn: list[dict[str, Any]] = field(default_factory=list)
    added: list[dict[str, Any]] = field(default_factory=list)
    disarmed: list[dict[str, Any]] = field(default_factory=list)
    armed: list[dict[str, Any]] = field(default_factory=list)
    ended: list[dict[str, str]] = field(default_factory=list)
    started: list[dict[str, str]] = field(default_factory=list)
    transitions: list[str] = field(default_factory=list)
    messages: int = 0
    held: int = 0
    renewed: str = ""
    done: bool = False

    @property
    def state(self) -> str:
        """Return the configuration after the repair as one line of text."""
        return ", ".join(self.configuration)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        return asdict(self) | {"state": self.state}


def read_preview(machine: str, id: str, repair: str, text: str) -> Preview:
    """Read what ``lua/instances/previews.lua`` returns."""
    seen: dict[str, Any] = json.loads(text)
    seen |= {name: sorted(seen[name], key=lambda timer: float(timer["due"])) for name in ("disarmed", "armed")}
    seen |= {name: sorted(seen[name], key=lambda child: str(child["invoke"])) for name in ("ended", "started")}
    seen |= {name: int(seen[name]) for name in ("messages", "held")}
    seen |= {"revision": int(seen.pop("version")), "transitions": str(seen["transitions"]).split()}
    return Preview(machine, id, repair, **seen)


def read_waits(text: str) -> list[Wait]:
    return [_wait(row) for row in json.loads(text)]


def _wait(row: Mapping[str, Any]) -> Wait:
    words = {name: str(row[name]) for name in ("invoke", "state", "src", "queue", "job", "place")}
    return Wait(**words, listened=row["skip"], suspended=row["suspended"])
