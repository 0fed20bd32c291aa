"""The methods of the engine that repair instances: changes that no transition provides.

Each repair is one atomic step with an actor and a reason, both in the instance's history. ``preview`` runs the same
code without the commit.
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
    """Repairs of instances: a part of ``Engine``. Times given as ``now`` are ms since the epoch and replace the
    server's clock.

    ``expect``: the revision the caller saw; any other raises Conflict. The same ``key`` again within a day returns the
    first outcome and changes nothing. ``permit``: the rights of the person behind the call, None for a program; with a
    permit, each repair raises NeedsApproval where the definition requires an approval that the permit lacks.
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
        """Put the instance into ``state`` and change ``data`` (None unsets), whatever its transitions say.

        In a chart with nested states, ``state`` may be compound, or several states of different regions; regions
        without a given state are entered by default. No entry or exit action runs, and no history state remembers;
        jobs, timers and children of the states left are ended, those of the states entered begin. The reason is
        required and stands in the history.
        """
        words = _force_words(state=state, data=data)
        return self._repair("sb_force", machine, id, words, _actor_words(actor, reason), expect, key, now, permit)

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
        """Change data fields, None unsets; each is checked against its declared type. Nothing else happens: guards
        read the new data with the next event. Raises BadPayload."""
        return self._repair(
            "sb_edit", machine, id, _edit_words(changes), _actor_words(actor, reason), expect, key, now, permit
        )

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
        """Return the instance to the initial configuration of its own version, and, unless ``keep_data``, to the data
        of a new instance before its first action.

        Like ``force`` it runs no action; all jobs, timers, delayed events and children are ended, history states
        forget, and the initial states begin what they invoke. A suspended instance stays suspended.
        """
        return self._repair(
            "sb_reset", machine, id, _reset_words(keep_data), _actor_words(actor, reason), expect, key, now, permit
        )

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
        """Make the dead job of an active state's invoke ready again with its attempts reset, or a delayed one ready
        at once. Raises BadInput where there is no such job."""
        words = _unblock_words("retry", invoke)
        return self._repair("sb_unblock", machine, id, words, _actor_words(actor, reason), expect, key, now, permit)

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
        """Withdraw the job of an invoke, and move the instance as if the job had ended with ``result``; actions run.

        Raises Refused where no transition takes its end, BadInput where none listens for it, Suspended.
        """
        words = _unblock_words("skip", invoke, result)
        return self._repair("sb_unblock", machine, id, words, _actor_words(actor, reason), expect, key, now, permit)

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
        """Withdraw the open job of an invoke, and move the instance by ``error.invoke.<id>``, kind "Withdrawn".
        Without a transition for that event the instance stays in its state. Raises BadInput, Suspended."""
        words = _unblock_words("cancel", invoke)
        return self._repair("sb_unblock", machine, id, words, _actor_words(actor, reason), expect, key, now, permit)

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
        """Suspend an instance: events raise ``Suspended``, timers wait, messages and finished jobs queue up in
        order."""
        words = [
            id,
            arguments.encode_whole("expect", expect),
            *_actor_words(actor, reason),
            arguments.encode_whole("now", now),
        ]
        return self._change("sb_suspend", machine, id, [*words, *_permit_words(permit)], expect=expect, now=now)

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
        """Resume a suspended instance; what waited for it is applied in the order it came.

        ``overdue``: timers "fire" at the time they were set for, at once when it has passed (the default), or "shift"
        by as long as the instance was suspended.
        """
        policy = _check_overdue(overdue)
        words = [
            id,
            arguments.encode_whole("expect", expect),
            *_actor_words(actor, reason),
            arguments.encode_whole("now", now),
            policy,
        ]
        return self._change("sb_resume", machine, id, [*words, *_permit_words(permit)], expect=expect, now=now)

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
        words = [
            id,
            arguments.encode_whole("expect", expect),
            arguments.check_actor(actor),
            arguments.check_reason(reason),
        ]
        return self._change("sb_delete", machine, id, [*words, *_permit_words(permit)], expect=expect)

    # Preview

    def preview(
        self, machine: str, id: str, repair: str, *, expect: int | None = None, now: int | None = None, **asked: Any
    ) -> Preview:
        """Compute what a repair would do; change nothing. ``repair`` is the name of one of the methods above,
        ``asked`` its arguments except actor, reason and key. Raises what the repair would raise."""
        made = PREVIEWS.get(repair)
        if made is None:
            raise BadInput(f"the repairs are {', '.join(PREVIEWS)}, not {repair!r}")
        function, words = made(
            id, arguments.encode_whole("expect", expect), arguments.encode_whole("now", now), **asked
        )
        reply = self._caller.call(function, self._root(machine, id), *words)
        if reply[0] != Status.OK:
            raise replies.build_error(machine, id, reply, expect=expect)
        return previews.read_preview(machine, id, repair, reply[1])

    def waits(self, machine: str, id: str) -> list[Wait]:
        """List the jobs that the active states asked for: where each is, dead ones included, and which repairs
        apply."""
        reply = self._caller.call("sb_waits", self._root(machine, id), id)
        if reply[0] != Status.OK:
            raise replies.build_error(machine, id, reply)
        return previews.read_waits(reply[1])

    # Internals

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
        ends = (arguments.encode_whole("now", now), arguments.check_key(key), *_permit_words(permit))
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


def _actor_words(actor: str, reason: str) -> Words:
    return [arguments.check_actor(actor), arguments.require_reason(reason)]


def _permit_words(permit: Permit | None) -> Words:
    """Return the words for a permit, which follow all others: "" (commit, no preview) and the permit."""
    return [] if permit is None else ["", permits.encode_permit(permit)]


def _edit_words(changes: Data) -> Words:
    words = arguments.encode_fields("data", changes, limits.MAX_DATA)
    if not words:
        raise BadInput("changes names no data field")
    return [words]


def _reset_words(keep_data: bool) -> Words:
    return ["keep" if keep_data else ""]


def _unblock_words(verb: str, invoke: str, result: Any = None) -> Words:
    text = "" if result is None else arguments.encode_document("result", result, limits.MAX_DATA)
    return [verb, arguments.check_text("the invoke", invoke, limits.MAX_INVOKE_ID), text]


def _check_overdue(overdue: str) -> str:
    if overdue not in OVERDUE:
        raise BadInput(f"overdue is one of {', '.join(OVERDUE)}, not {overdue!r}")
    return overdue


# A preview's function and arguments: without actor and reason.

PreviewCall = Callable[..., tuple[str, Words]]


def _dry(function: str, words: Callable[..., Words]) -> PreviewCall:
    def make(id: str, expect: str, now: str, **asked: Any) -> tuple[str, Words]:
        return function, [id, *words(**asked), expect, "", "", now, "", DRY]

    return make


def _force_words(*, state: str | Sequence[str], data: Data | None = None) -> Words:
    return [arguments.join_states(state), arguments.encode_fields("data", data, limits.MAX_DATA)]


def _suspend_call(id: str, expect: str, now: str) -> tuple[str, Words]:
    return "sb_suspend", [id, expect, "", "", now, DRY]


def _resume_call(id: str, expect: str, now: str, *, overdue: str = "fire") -> tuple[str, Words]:
    return "sb_resume", [id, expect, "", "", now, _check_overdue(overdue), DRY]


def _delete_call(id: str, expect: str, now: str) -> tuple[str, Words]:
    return "sb_delete", [id, expect, "", "", DRY]


PREVIEWS: dict[str, PreviewCall] = {
    "force": _dry("sb_force", _force_words),
    "edit": _dry("sb_edit", lambda *, changes: _edit_words(changes)),
    "reset": _dry("sb_reset", lambda *, keep_data=False: _reset_words(keep_data)),
    "retry": _dry("sb_unblock", lambda *, invoke: _unblock_words("retry", invoke)),
    "skip": _dry("sb_unblock", lambda *, invoke, result=None: _unblock_words("skip", invoke, result)),
    "cancel": _dry("sb_unblock", lambda *, invoke: _unblock_words("cancel", invoke)),
    "suspend": _suspend_call,
    "resume": _resume_call,
    "delete": _delete_call,
}
