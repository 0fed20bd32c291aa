"""Records of a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any

from machines.engine.connection.replies import build_refusal, read_explanation
from machines.engine.errors import BadPayload, NotAllowed
from machines.engine.records import Explanation, Timer

TAKEN, REFUSED, FAILED, IGNORED, WAITED = "taken", "refused", "failed", "ignored", "waited"
BAD_PAYLOAD, NOT_ALLOWED = "bad payload", "not allowed"
OUTCOMES = (TAKEN, REFUSED, FAILED, IGNORED, WAITED, BAD_PAYLOAD, NOT_ALLOWED)

Rows = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class SimulatedStep:
    """One step of a simulation, and the instance after it.

    ``input``: number of the input that led to it, from 0; -1 for the creation. ``event``: "(create)" for that, "" where
    only the clock moved. ``outcome``: one of "taken"; "refused" (no transition was enabled); "failed" (a guard or an
    action did; ``error`` says how; nothing changed); "ignored" (the end of a job, a child or a timer for which nobody
    listens); "waited" (no timer was due); "bad payload" (``error``); "not allowed" (``not_allowed``: the transition and
    its groups). ``at``: ms of the made-up clock. ``configuration``: the active leaf states. ``explanation``: as from
    ``explain``, with the guards and their values; None for the creation and where only the clock moved.

    What the step did: ``transitions``; ``changes``: data field -> its new value; ``armed`` and ``disarmed`` timers,
    ``requested`` and ``withdrawn`` jobs, ``started`` and ``ended`` children, ``messages`` to other instances, ``log``:
    entries of ``emit`` and ``log``. What there is then: ``timers``, ``jobs`` and ``children`` that run, ``next``: the
    events that are listened for, ``{"event", "verdict"}``, where "taken" needs no payload, "payload" depends on it,
    and "guard" is refused as the data is; ``done``: the instance has ended.
    """

    input: int
    event: str
    payload: Any
    outcome: str
    at: int
    _: KW_ONLY
    configuration: list[str]
    data: dict[str, Any]
    revision: int = 0
    transitions: list[str] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)
    armed: list[Timer] = field(default_factory=list)
    disarmed: list[Timer] = field(default_factory=list)
    requested: list[dict[str, Any]] = field(default_factory=list)
    withdrawn: list[dict[str, Any]] = field(default_factory=list)
    started: list[dict[str, str]] = field(default_factory=list)
    ended: list[dict[str, str]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    children: list[dict[str, str]] = field(default_factory=list)
    next: list[dict[str, str]] = field(default_factory=list)
    done: bool = False
    explanation: Explanation | None = None
    error: str | None = None
    not_allowed: dict[str, Any] | None = None

    @property
    def taken(self) -> bool:
        """Tell whether the instance took a step."""
        return self.outcome == TAKEN

    @property
    def state(self) -> str:
        """Return the configuration as one line of text."""
        return ", ".join(self.configuration)

    def demand_taken(self, machine: str, id: str) -> None:
        """Raise what ``Engine.fire`` would have raised: Refused, UnknownEvent, NotAllowed, BadPayload."""
        if self.outcome == NOT_ALLOWED and self.not_allowed is not None:
            raise NotAllowed(machine, id, self.event, **self.not_allowed)
        if self.outcome == BAD_PAYLOAD:
            raise BadPayload(str(self.error))
        if self.outcome != TAKEN and self.explanation is not None:
            raise build_refusal(self.explanation)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        explanation = self.explanation.as_dict() if self.explanation else None
        return asdict(self) | {"state": self.state, "taken": self.taken, "explanation": explanation}


def read_record(machine: str, id: str, seen: Mapping[str, Any], text: str) -> SimulatedStep:
    """Read a record of ``lua/simulation/simulations.lua``: ``seen`` is its JSON, decoded. ``text``: its explanation."""
    lists = {name: list(seen.get(name) or ()) for name in _LISTS}
    lists |= {name: _read_timers(seen.get(name) or ()) for name in ("armed", "disarmed", "timers")}
    return SimulatedStep(
        input=int(seen["input"]),
        event=str(seen.get("event", "")),
        payload=seen.get("payload"),
        outcome=str(seen["outcome"]),
        at=int(seen["at"]),
        configuration=list(seen.get("configuration") or ()),
        data=seen["data"],
        revision=int(seen.get("version", 0)),
        changes=dict(seen.get("changes") or {}),
        done=bool(seen.get("done")),
        explanation=read_explanation(machine, id, text) if text else None,
        error=seen.get("error"),
        not_allowed=seen.get("not_allowed"),
        **lists,
    )


_LISTS = ("transitions", "requested", "withdrawn", "started", "ended", "messages", "log", "jobs", "children", "next")


def _read_timers(rows: Sequence[Mapping[str, Any]]) -> list[Timer]:
    found = [
        Timer(str(row["id"]), str(row["event"]), int(row["due"]), str(row["state"]), target=str(row["target"]))
        for row in rows
    ]
    return sorted(found, key=lambda timer: timer.due)
