"""The methods of the engine that repair instances: changes that no transition provides.

Each repair is one atomic step with an actor and a reason, both in the instance's history. ``preview`` runs the same
code without the commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import partial
from typing import Any, Required, TypedDict, Unpack

from machines.engine import arguments, limits, permits
from machines.engine.base import EngineBase
from machines.engine.errors import BadInput
from machines.engine.permits import Permit
from machines.engine.records import Instance, InStates

Data = Mapping[str, Any]
Words = list[str]
OVERDUE = ("fire", "shift")
DRY = "dry"


class HoldOptions(TypedDict, total=False):
    """The options of ``suspend`` and ``resume``.

    ``actor`` and ``reason`` are required and stand in the history. ``expect``: the revision the caller saw; any other
    raises Conflict. ``now``: ms since the epoch, in place of the server's clock. ``permit``: the rights of the person
    behind the call, None for a program; with a permit, each repair raises NeedsApproval where the definition requires
    an approval that the permit lacks.
    """

    actor: Required[str]
    reason: Required[str]
    expect: int | None
    now: int | None
    permit: Permit | None


class RepairOptions(HoldOptions, total=False):
    """The options of a repair: those of ``HoldOptions``, and a ``key``. The same key again within a day returns the
    first outcome and changes nothing."""

    key: str | None


class RepairMethods(EngineBase):
    """Repairs of instances: a part of ``Engine``. ``options`` are those of ``RepairOptions``."""

    def force(
        self,
        machine: str,
        id: str,
        state: str | Sequence[str],
        *,
        data: Data | None = None,
        **options: Unpack[RepairOptions],
    ) -> Instance:
        """Put the instance into ``state`` and change ``data`` (None unsets), whatever its transitions say.

        In a chart with nested states, ``state`` may be compound, or several states of different regions; regions
        without a given state are entered by default. No entry or exit action runs, and no history state remembers;
        jobs, timers and children of the states left are ended, those of the states entered begin. The reason is
        required and stands in the history.
        """
        return self._repair("force", machine, id, {"state": state, "data": data}, **options)

    def edit(self, machine: str, id: str, changes: Data, **options: Unpack[RepairOptions]) -> Instance:
        """Change data fields, None unsets; each is checked against its declared type. Nothing else happens: guards
        read the new data with the next event. Raises BadPayload."""
        return self._repair("edit", machine, id, {"changes": changes}, **options)

    def reset(self, machine: str, id: str, *, keep_data: bool = False, **options: Unpack[RepairOptions]) -> Instance:
        """Return the instance to the initial configuration of its own version, and, unless ``keep_data``, to the data
        of a new instance before its first action.

        Like ``force`` it runs no action; all jobs, timers, delayed events and children are ended, history states
        forget, and the initial states begin what they invoke. A suspended instance stays suspended.
        """
        return self._repair("reset", machine, id, {"keep_data": keep_data}, **options)

    def retry(self, machine: str, id: str, invoke: str, **options: Unpack[RepairOptions]) -> Instance:
        """Make the dead job of an active state's invoke ready again with its attempts reset, or a delayed one ready
        at once. Raises BadInput where there is no such job."""
        return self._repair("retry", machine, id, {"invoke": invoke}, **options)

    def skip(
        self, machine: str, id: str, invoke: str, result: Any = None, **options: Unpack[RepairOptions]
    ) -> Instance:
        """Withdraw the job of an invoke, and move the instance as if the job had ended with ``result``; actions run.

        Raises Refused where no transition takes its end, BadInput where none listens for it, Suspended.
        """
        return self._repair("skip", machine, id, {"invoke": invoke, "result": result}, **options)

    def cancel(self, machine: str, id: str, invoke: str, **options: Unpack[RepairOptions]) -> Instance:
        """Withdraw the open job of an invoke, and move the instance by ``error.invoke.<id>``, kind "Withdrawn".
        Without a transition for that event the instance stays in its state. Raises BadInput, Suspended."""
        return self._repair("cancel", machine, id, {"invoke": invoke}, **options)

    def suspend(self, machine: str, id: str, **options: Unpack[HoldOptions]) -> Instance:
        """Suspend an instance: events raise ``Suspended``, timers wait, messages and finished jobs queue up in
        order."""
        return self._repair("suspend", machine, id, {}, **options)

    def resume(self, machine: str, id: str, *, overdue: str = "fire", **options: Unpack[HoldOptions]) -> Instance:
        """Resume a suspended instance; what waited for it is applied in the order it came.

        ``overdue``: timers "fire" at the time they were set for, at once when it has passed (the default), or "shift"
        by as long as the instance was suspended.
        """
        return self._repair("resume", machine, id, {"overdue": overdue}, **options)

    def delete(
        self,
        machine: str,
        id: str,
        *,
        actor: str = "",
        reason: str = "",
        expect: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        """Remove an instance with its history and open jobs; return it as it was."""
        said = {"actor": arguments.check_actor(actor), "reason": arguments.check_reason(reason)}
        words = self._list_words("delete", machine, id, {}, said, expect=expect, permit=permit)
        return self._change("sb_delete", machine, id, words, expect=expect)

    def pin_instance(self, machine: str, id: str, pinned: bool = True, **options: Unpack[RepairOptions]) -> Instance:
        """Pin an instance to its version, so that no plan moves it, or unpin it; a step in its history. Arguments and
        errors as of other repairs."""
        return self._repair("pin_instance", machine, id, {"pinned": pinned}, **options)

    # Preview

    def preview(
        self, machine: str, id: str, repair: str, *, expect: int | None = None, now: int | None = None, **asked: Any
    ) -> Preview:
        """Compute what a repair would do; change nothing. ``repair`` is the name of one of the methods above,
        ``asked`` its arguments except actor, reason and key. Raises what the repair would raise."""
        if repair not in PREVIEWS:
            raise BadInput(f"the repairs are {', '.join(PREVIEWS)}, not {repair!r}")
        words = self._list_words(repair, machine, id, asked, {"dry": DRY}, expect=expect, now=now)
        reply = self._caller.call(REPAIRS[repair].function, self._root(machine, id), *words)
        return read_preview(machine, id, repair, self._require_ok(machine, id, reply, expect)[1])

    def waits(self, machine: str, id: str) -> list[Wait]:
        """List the jobs that the active states asked for: where each is, dead ones included, and which repairs
        apply."""
        reply = self._caller.call("sb_waits", self._root(machine, id), id)
        return read_waits(self._require_ok(machine, id, reply)[1])

    # Internals

    def _repair(
        self,
        repair: str,
        machine: str,
        id: str,
        asked: Mapping[str, Any],
        *,
        actor: str,
        reason: str,
        expect: int | None = None,
        key: str | None = None,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        said = {"actor": arguments.check_actor(actor), "reason": arguments.require_reason(reason)}
        said["key"] = arguments.check_key(key)
        words = self._list_words(repair, machine, id, asked, said, expect=expect, now=now, permit=permit)
        return self._change(REPAIRS[repair].function, machine, id, words, expect=expect, now=now)

    def _list_words(
        self,
        repair: str,
        machine: str,
        id: str,
        asked: Mapping[str, Any],
        said: Mapping[str, str],
        *,
        expect: int | None = None,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> Words:
        """List the words of a call. ``asked``: the arguments that this repair alone has; ``said``: words by name."""
        kind = REPAIRS[repair]
        own = kind.encode(**{name: self._encryption.encrypt(machine, value) for name, value in asked.items()})
        words = {"expect": arguments.encode_whole("expect", expect), "now": arguments.encode_whole("now", now), **said}
        words["permit"] = "" if permit is None else permits.encode_permit(permit)
        return [id, *(word for name in kind.order for word in (own if name == "asked" else [words.get(name, "")]))]


def _force_words(state: str | Sequence[str], data: Data | None = None) -> Words:
    return [arguments.join_states(state), arguments.encode_fields("data", data, limits.MAX_DATA)]


def _edit_words(changes: Data) -> Words:
    words = arguments.encode_fields("data", changes, limits.MAX_DATA)
    if not words:
        raise BadInput("changes names no data field")
    return [words]


def _unblock_words(verb: str, invoke: str, result: Any = None) -> Words:
    text = "" if result is None else arguments.encode_document("result", result, limits.MAX_DATA)
    return [verb, arguments.check_text("the invoke", invoke, limits.MAX_INVOKE_ID), text]


def _resume_words(overdue: str = "fire") -> Words:
    if overdue not in OVERDUE:
        raise BadInput(f"overdue is one of {', '.join(OVERDUE)}, not {overdue!r}")
    return [overdue]


@dataclass(frozen=True, slots=True)
class Repair:
    """How a repair is called. ``encode``: makes words of the arguments that it alone has; ``order``: of all words after
    the id, of which "asked" stands for those."""

    function: str
    encode: Callable[..., Words]
    order: tuple[str, ...] = ("asked", "expect", "actor", "reason", "now", "key", "dry", "permit")


REPAIRS = {
    "force": Repair("sb_force", _force_words),
    "edit": Repair("sb_edit", _edit_words),
    "reset": Repair("sb_reset", lambda keep_data=False: ["keep" if keep_data else ""]),
    "retry": Repair("sb_unblock", partial(_unblock_words, "retry")),
    "skip": Repair("sb_unblock", partial(_unblock_words, "skip")),
    "cancel": Repair("sb_unblock", partial(_unblock_words, "cancel")),
    "suspend": Repair("sb_suspend", list, ("expect", "actor", "reason", "now", "dry", "permit")),
    "resume": Repair("sb_resume", _resume_words, ("expect", "actor", "reason", "now", "asked", "dry", "permit")),
    "delete": Repair("sb_delete", list, ("expect", "actor", "reason", "dry", "permit")),
    "pin_instance": Repair("sb_pin", lambda pinned: ["1" if pinned else "0"]),
}
PREVIEWS = tuple(name for name in REPAIRS if name != "pin_instance")


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
class Preview(InStates):
    """What a repair would do to an instance at ``revision``; nothing was done.

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
