"""The part of the engine's front door that repairs instances: what no transition provides.

Each repair is one atomic step with an actor and a reason, both in the instance's history. Each can be looked at before:
``preview`` runs the same code without the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from machines.engine import arguments, limits, permits
from machines.engine.connection import replies
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status
from machines.engine.errors import BadInput
from machines.engine.permits import Permit
from machines.engine.records import Instance

from . import previews
from .previews import Preview, Wait

Data = Mapping[str, Any]
Words = list[str]
OVERDUE = ("fire", "shift")
DRY = "dry"


class RepairMethods:
    """Repairs. Times given as ``now`` are ms since the epoch and stand in for the server's clock.

    ``expect``: the revision the caller saw; any other raises Conflict. The same ``key`` again, within a day, gives the
    first outcome and changes nothing. ``permit``: what the person behind the call may, None for a program; with one,
    each raises NeedsApproval where the definition asks for a second person who has not approved it.
    """

    _caller: Caller

    def force(
        self,
        machine: str,
        id: str,
        state: str | Sequence[str],
        *,
        actor: str,
        reason: str,
        data: Data | None = None,
        expect: int | None = None,
        key: str | None = None,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        """A repair: put the instance into ``state`` and change ``data`` (None unsets), whatever its transitions say.

        Of a chart, ``state`` may be compound or several states of different regions; what they leave open is entered by
        default. No entry or exit action runs, and no history remembers; jobs, timers and children of the states left
        go, those of the states entered come.
        The reason is required and stands in the history.
        """
        words = _forced(state=state, data=data)
        return self._repair("sb_force", machine, id, words, _who(actor, reason), expect, key, now, permit)

    def edit(
        self,
        machine: str,
        id: str,
        changes: Data,
        *,
        actor: str,
        reason: str,
        expect: int | None = None,
        key: str | None = None,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        """A repair: change data fields, None unsets, each checked by its declared type. Nothing else happens: guards
        see the new data with the next event. Raises BadPayload."""
        return self._repair("sb_edit", machine, id, _edit(changes), _who(actor, reason), expect, key, now, permit)

    def reset(
        self,
        machine: str,
        id: str,
        *,
        actor: str,
        reason: str,
        keep_data: bool = False,
        expect: int | None = None,
        key: str | None = None,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        """A repair: back to the initial configuration of its own version, and to the data a new instance has before its
        first action unless ``keep_data``.

        As ``force`` it runs no action; all jobs, timers, delayed events and children of before go, histories forget,
        and the initial states begin what they invoke. A suspended instance stays suspended.
        """
        return self._repair("sb_reset", machine, id, _reset(keep_data), _who(actor, reason), expect, key, now, permit)

    def retry(
        self,
        machine: str,
        id: str,
        invoke: str,
        *,
        actor: str,
        reason: str,
        expect: int | None = None,
        key: str | None = None,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        """A repair: the dead job of an invoke the instance still stands in is ready again with all its attempts, a
        delayed one at once. Raises BadInput where there is none of these."""
        words = _unblock("retry", invoke)
        return self._repair("sb_unblock", machine, id, words, _who(actor, reason), expect, key, now, permit)

    def skip(
        self,
        machine: str,
        id: str,
        invoke: str,
        result: Any = None,
        *,
        actor: str,
        reason: str,
        expect: int | None = None,
        key: str | None = None,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        """A repair: the job of an invoke goes, and the instance moves as if it had ended with ``result``; actions run.

        Raises Refused where no transition takes its end, BadInput where none listens for it, Suspended.
        """
        words = _unblock("skip", invoke, result)
        return self._repair("sb_unblock", machine, id, words, _who(actor, reason), expect, key, now, permit)

    def cancel(
        self,
        machine: str,
        id: str,
        invoke: str,
        *,
        actor: str,
        reason: str,
        expect: int | None = None,
        key: str | None = None,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        """A repair: the open job of an invoke goes, and the instance moves by ``error.invoke.<id>``, kind "Withdrawn".
        Where nothing listens for that, it stays where it is and waits no longer. Raises BadInput, Suspended."""
        words = _unblock("cancel", invoke)
        return self._repair("sb_unblock", machine, id, words, _who(actor, reason), expect, key, now, permit)

    def suspend(
        self,
        machine: str,
        id: str,
        *,
        actor: str,
        reason: str,
        expect: int | None = None,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        """Hold an instance: events raise ``Suspended``, timers wait, messages and finished jobs queue up in order."""
        words = [id, arguments.encode_whole("expect", expect), *_who(actor, reason), arguments.encode_whole("now", now)]
        return self._change("sb_suspend", machine, id, [*words, *_permit(permit)], expect=expect, now=now)

    def resume(
        self,
        machine: str,
        id: str,
        *,
        actor: str,
        reason: str,
        overdue: str = "fire",
        expect: int | None = None,
        now: int | None = None,
        permit: Permit | None = None,
    ) -> Instance:
        """Let a suspended instance go on; what waited for it is applied in the order it came.

        ``overdue``: timers "fire" at the time they were set for, at once when that has passed (the default), or
        "shift" by as long as the instance was suspended.
        """
        policy = _policy(overdue)
        words = [
            id,
            arguments.encode_whole("expect", expect),
            *_who(actor, reason),
            arguments.encode_whole("now", now),
            policy,
        ]
        return self._change("sb_resume", machine, id, [*words, *_permit(permit)], expect=expect, now=now)

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
        """Remove an instance with its history and open jobs; answers it as it was."""
        words = [
            id,
            arguments.encode_whole("expect", expect),
            arguments.check_actor(actor),
            arguments.check_reason(reason),
        ]
        return self._change("sb_delete", machine, id, [*words, *_permit(permit)], expect=expect)

    # Looking

    def preview(
        self, machine: str, id: str, repair: str, *, expect: int | None = None, now: int | None = None, **asked: Any
    ) -> Preview:
        """What a repair would do; changes nothing. ``repair`` is the name of one of the methods above, ``asked`` what
        it takes beside actor, reason and key. Raises what it would raise."""
        made = ASKED.get(repair)
        if made is None:
            raise BadInput(f"the repairs are {', '.join(ASKED)}, not {repair!r}")
        function, words = made(
            id, arguments.encode_whole("expect", expect), arguments.encode_whole("now", now), **asked
        )
        reply = self._caller.call(function, self._root(machine, id), *words)
        if reply[0] != Status.OK:
            raise replies.build_error(machine, id, reply, expect=expect)
        return previews.read_preview(machine, id, repair, reply[1])

    def waits(self, machine: str, id: str) -> list[Wait]:
        """The work its active states have asked for: where each job is, dead ones too, and what can be done."""
        reply = self._caller.call("sb_waits", self._root(machine, id), id)
        if reply[0] != Status.OK:
            raise replies.build_error(machine, id, reply)
        return previews.read_waits(reply[1])

    # Within

    def _repair(
        self,
        function: str,
        machine: str,
        id: str,
        asked: Words,
        who: Words,
        expect: int | None,
        key: str | None,
        now: int | None,
        permit: Permit | None,
    ) -> Instance:
        ends = (arguments.encode_whole("now", now), arguments.check_key(key), *_permit(permit))
        words = [id, *asked, arguments.encode_whole("expect", expect), *who, *ends]
        return self._change(function, machine, id, words, expect=expect, now=now)

    def _root(self, machine: str, id: str) -> str:
        raise NotImplementedError

    def _change(
        self,
        function: str,
        machine: str,
        id: str,
        args: Sequence[Any],
        *,
        expect: int | None = None,
        now: int | None = None,
    ) -> Instance:
        raise NotImplementedError


def _who(actor: str, reason: str) -> Words:
    return [arguments.check_actor(actor), arguments.require_reason(reason)]


def _permit(permit: Permit | None) -> Words:
    """Behind all other words: done, not previewed, and by whom."""
    return [] if permit is None else ["", permits.encode_permit(permit)]


def _edit(changes: Data) -> Words:
    words = arguments.encode_fields("data", changes, limits.MAX_DATA)
    if not words:
        raise BadInput("no data field is named: say which to change")
    return [words]


def _reset(keep_data: bool) -> Words:
    return ["keep" if keep_data else ""]


def _unblock(verb: str, invoke: str, result: Any = None) -> Words:
    text = "" if result is None else arguments.encode_document("result", result, limits.MAX_DATA)
    return [verb, arguments.check_text("the invoke", invoke, limits.MAX_INVOKE_ID), text]


def _policy(overdue: str) -> str:
    if overdue not in OVERDUE:
        raise BadInput(f"overdue is one of {', '.join(OVERDUE)}, not {overdue!r}")
    return overdue


# What is sent for a preview: the function, and its words. Nobody is named, and no reason asked for.

Asked = Callable[..., tuple[str, Words]]


def _dry(function: str, words: Callable[..., Words]) -> Asked:
    def made(id: str, expect: str, now: str, **asked: Any) -> tuple[str, Words]:
        return function, [id, *words(**asked), expect, "", "", now, "", DRY]

    return made


def _forced(*, state: str | Sequence[str], data: Data | None = None) -> Words:
    return [arguments.join_states(state), arguments.encode_fields("data", data, limits.MAX_DATA)]


def _suspended(id: str, expect: str, now: str) -> tuple[str, Words]:
    return "sb_suspend", [id, expect, "", "", now, DRY]


def _resumed(id: str, expect: str, now: str, *, overdue: str = "fire") -> tuple[str, Words]:
    return "sb_resume", [id, expect, "", "", now, _policy(overdue), DRY]


def _deleted(id: str, expect: str, now: str) -> tuple[str, Words]:
    return "sb_delete", [id, expect, "", "", DRY]


ASKED: dict[str, Asked] = {
    "force": _dry("sb_force", _forced),
    "edit": _dry("sb_edit", lambda *, changes: _edit(changes)),
    "reset": _dry("sb_reset", lambda *, keep_data=False: _reset(keep_data)),
    "retry": _dry("sb_unblock", lambda *, invoke: _unblock("retry", invoke)),
    "skip": _dry("sb_unblock", lambda *, invoke, result=None: _unblock("skip", invoke, result)),
    "cancel": _dry("sb_unblock", lambda *, invoke: _unblock("cancel", invoke)),
    "suspend": _suspended,
    "resume": _resumed,
    "delete": _deleted,
}
