"""Every error the engine raises.

::

    SignalboxError
    ├── DefinitionError          a definition has findings; nothing was published
    ├── BadInput                 an argument is not what the call takes
    │   ├── BadPayload           an event's payload or an instance's data is invalid
    │   └── PlanError            a plan of a migration has findings; nothing was changed
    ├── EncryptionFailed         the codec has no key for a value, or is away
    ├── LookupFailed
    │   ├── UnknownMachine
    │   └── UnknownInstance
    ├── InstanceExists           create() with an id that exists
    ├── Refused                  no transition could be taken
    │   ├── UnknownEvent         no transition of the machine listens for this event
    │   └── TooMuchWork          the step would hold the server for too long
    ├── Suspended                the instance is suspended
    ├── NotAllowed               the person behind the call is in none of the groups of a transition
    ├── NeedsApproval            the action needs the approval of a second person
    ├── Conflict                 the instance has moved since the caller read it
    ├── Miscounted               a queue has another number of jobs than the caller saw
    ├── JobHandled               the instance of a dead job dealt with it: a retry needs a confirmation
    ├── VersionRefused           a roll-out, a pin or a withdrawn version does not allow it
    ├── LeaseLost                a job is no longer this worker's
    ├── EngineUnavailable        Redis cannot be reached or is not able to write
    └── EngineFault              the server gave an unexpected answer
        └── NotPermitted         the account on the server lacks a command or a key
            └── LibraryNotLoaded  the functions library is missing or older, and the account may not load it

Each carries a stable ``code`` (shown on pages, sockets and in logs) and its facts as attributes.
After any of them no key in Redis has changed, with one exception:
``EngineUnavailable`` during a write means "unknown" unless it is ``retry_safe``; repeat the call with the same ``key``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NARROWER = {
    "SB401": "BadInput: a name, an instance id or an event is invalid",
    "SB402": "BadInput: a number (`expect`, `now`, a limit, an age) is invalid or out of range",
    "SB403": "BadInput: a text (`actor`, `reason`, `key`) is invalid or too long",
    "SB404": "BadInput: an operator's action on an instance or a queue needs a reason",
    "SB405": "BadInput: a cursor that `find` did not make",
    "SB406": "BadInput: there is no such place of a queue",
    "SB407": "BadInput: a call for `fire_many` is malformed",
    "SB408": "BadInput: an argument is of a type that Redis cannot store",
    "SB409": "BadInput: a job for `enqueue_many` or a batch is malformed",
    "SB411": "BadPayload: a payload or data is too large",
    "SB412": "BadInput: `find` with a state that no published version has",
    "SB413": "BadInput: `find` with a data field that no published version declares",
    "SB414": "BadInput: a rate is invalid",
    "SB415": "BadInput: an order for a worker needs a reason",
    "SB416": "BadInput: no index serves the conditions of `find`",
    "SB417": "BadInput: an index that `find` needs is not filled yet",
    "SB418": "BadInput: a condition of `find` is malformed",
    "SB501": "EngineUnavailable: the instance is moving to another partition; nothing was changed, send the call again",
    "SB612": "PlanError: a version of the plan is not published with this content, or was withdrawn; plan again",
    "SB606": "PlanError: a version that the plan is for was published anew with other content, or is gone: plan again",
    "SB635": "BadInput: `states` of a replay names a state that is none",
    "SB636": "BadInput: a comparison with, or a replay on, what is no version and no definition of the machine",
    "SB637": "BadInput: an input of a simulation makes no sense, or not where it stands",
    "SB638": "BadInput: a simulation has more steps than are returned, or takes longer than it may",
    "SB639": "BadInput: the parent of a simulated instance is not machine, id and invoke",
    "SB621": "EngineUnavailable: a partition did not answer a dry run; nothing was changed, repeat it",
    "SB622": "BadInput: the share of the server for a dry run is not above 0 and up to 1",
    "SB623": "EngineUnavailable: instances move faster than a dry run follows; nothing was changed, repeat it later",
    "SB624": "BadInput: what is read is no dry run",
    "SB423": "LookupFailed: no such job or batch: it is finished, withdrawn or never existed",
    "SB625": "VersionRefused: the version is withdrawn: no new instance gets it",
    "SB627": "VersionRefused: a pin and a roll-out exclude each other",
    "SB628": "VersionRefused: the current version is withdrawn only when another one takes its place",
    "SB629": "VersionRefused: the same content was withdrawn under another number",
    "SB630": "VersionRefused: the versions were changed since the caller read them",
    "SB632": "BadInput: a setting of a roll-out's guard is invalid",
    "SB633": "BadInput: a percentage of a roll-out is a number from 0 to 100",
    "SB512": "EngineFault: the data on the server have a layout that needs a newer release: no downgrade",
    "SB514": "EngineFault: the number of the data layout cannot be read",
    "SB516": "EngineFault: the functions library on the server is of a release too new for this one: no downgrade",
    "SB517": "EngineFault: an entry of a history cannot be read",
}
"""Codes that are narrower than their class."""
STALE_PLAN = "SB606"
LOST_VERSION = "SB612"
UNREADABLE = "SB517"


class SignalboxError(Exception):
    """Base of all engine errors. ``code`` is stable and documented; ``str()`` is for people."""

    code = "SB000"
    # Names of attributes that are facts of an error, beside those of the classes it is made of.
    shown: tuple[str, ...] = ()

    def __init__(self, message: str, *, code: str | None = None, **facts: Any) -> None:
        """Make an error. ``facts``: attributes that are facts of it."""
        super().__init__(message)
        self.message = message
        self._facts = facts
        vars(self).update(facts)
        if code is not None:
            self.code = code

    def facts(self) -> dict[str, Any]:
        """Return the error as plain JSON-able data, the same for API, socket and log."""
        names = (name for kind in reversed(type(self).__mro__) for name in vars(kind).get("shown", ()))
        return (
            {"code": self.code, "message": self.message} | {name: getattr(self, name) for name in names} | self._facts
        )


class EncryptionFailed(SignalboxError):
    """The codec did not encrypt or decrypt a value of ``field``: it has no key for it, or its key service is away.
    Nothing was changed."""

    code = "SB453"
    shown = ("field",)

    def __init__(self, field: str, why: str) -> None:
        self.field = field
        super().__init__(f"the field {field!r} is stored encrypted, and {why}; nothing was changed")


class DefinitionError(SignalboxError):
    """``findings``: every finding of the definition, errors and warnings, in document order."""

    code = "SB100"

    def __init__(self, findings: Sequence[Any]) -> None:
        self.findings = list(findings)
        errors = [f for f in self.findings if getattr(f, "is_error", True)]
        lines = "\n".join(f"  {finding}" for finding in errors)
        super().__init__(f"the definition has {len(errors)} error(s):\n{lines}")

    def facts(self) -> dict[str, Any]:
        found = [f.as_dict() if hasattr(f, "as_dict") else str(f) for f in self.findings]
        return super().facts() | {"findings": found}


class BadInput(SignalboxError):
    code = "SB400"


class BadPayload(BadInput):
    """A payload or data field is unknown, of the wrong type, too large or not JSON. ``field`` names it if one does."""

    code = "SB410"
    shown = ("field",)

    def __init__(self, message: str, *, field: str | None = None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.field = field


class PlanError(BadInput):
    """``findings``: all that is wrong with a plan, each with ``code``, ``path``, ``message`` and ``hint``; warnings
    too. ``plan``: the plan as far as it could be made, or None."""

    code = "SB600"

    def __init__(
        self, message: str, findings: Sequence[Any] = (), *, plan: Any = None, code: str | None = None
    ) -> None:
        self.findings = list(findings)
        self.plan = plan
        errors = [finding for finding in self.findings if finding.is_error]
        lines = "".join(f"\n  {finding}" for finding in errors)
        super().__init__(f"{message}:{lines}" if lines else message, code=code)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"findings": [finding.as_dict() for finding in self.findings]}


class LookupFailed(SignalboxError):
    code = "SB419"


class UnknownMachine(LookupFailed):
    """``known``: those that are published. They stand neither in the text nor in the facts, since people may be allowed
    to see some machines only; a traceback of a program shows them."""

    code = "SB420"
    shown = ("machine", "version")

    def __init__(self, machine: str, *, version: int | None = None, known: Sequence[str] = ()) -> None:
        self.machine = machine
        self.version = version
        what = f"machine {machine!r}" if version is None else f"version {version} of machine {machine!r}"
        self.known = tuple(known)
        super().__init__(f"no {what} is published")
        if known:
            self.add_note(f"published here: {shorten_names(self.known)}")


def shorten_names(names: Sequence[str]) -> str:
    """Return a list of names as an error tells it, with no more than twenty of them."""
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(names[:20]) + more


class UnknownInstance(LookupFailed):
    code = "SB421"
    shown = ("machine", "id")

    def __init__(self, machine: str, id: str) -> None:
        self.machine = machine
        self.id = id
        super().__init__(f"machine {machine!r} has no instance {id!r}")


class InstanceExists(SignalboxError):
    code = "SB422"
    shown = ("machine", "id")

    def __init__(self, machine: str, id: str) -> None:
        self.machine = machine
        self.id = id
        super().__init__(f"machine {machine!r} already has an instance {id!r}")


class Refused(SignalboxError):
    """No transition was taken and nothing changed.

    ``explanation`` is what ``Engine.explain`` returns for the same event: every candidate
    transition in document order, and why each was not taken.
    """

    code = "SB430"

    def __init__(self, explanation: Any, *, code: str | None = None) -> None:
        self.explanation = explanation
        super().__init__(str(explanation), code=code)

    @property
    def candidates(self) -> list[Any]:
        """Every transition that listened for the event, each with its reasons."""
        return list(self.explanation.candidates)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"explanation": self.explanation.as_dict()}


refusal_listeners: list[Any] = []
"""Functions that are called with each Refused of this process, before it is raised. They raise nothing."""


class UnknownEvent(Refused):
    code = "SB431"


class TooMuchWork(Refused):
    """The step used up the work that one step may take. The same step is refused on every server; smaller data, fewer
    turns of a loop or a simpler guard make it pass. Source: ``docs/definition-reference.md``, *Names and limits*."""

    code = "SB442"


class Suspended(SignalboxError):
    """``since`` is ms since the epoch."""

    code = "SB432"
    shown = ("machine", "id", "since")

    def __init__(self, machine: str, id: str, *, since: int) -> None:
        self.machine = machine
        self.id = id
        self.since = since
        super().__init__(f"{machine}/{id} is suspended: it takes no event until it is resumed")


class NotAllowed(SignalboxError):
    """A person sent an event that selects a transition for members of certain groups. Nothing was done.

    ``transition``: its id; ``target``: where it leads, "" where it stays; ``groups``: the names of those who may.
    """

    code = "SB433"
    shown = ("machine", "id", "event", "transition", "target", "groups")

    def __init__(
        self, machine: str, id: str, event: str, *, groups: Sequence[str], transition: str = "", target: str = ""
    ) -> None:
        self.machine = machine
        self.id = id
        self.event = event
        self.groups = list(groups)
        self.transition = transition
        self.target = target
        leads = f" ({transition}{f' to {target}' if target else ''})" if transition else ""
        super().__init__(
            f"{event} on {machine}/{id}{leads} is only for members of {' or '.join(self.groups)},"
            " as its definition declares"
        )


class NeedsApproval(SignalboxError):
    """The definition asks for a second person. Nothing was done.

    ``action``: as the definition names it, ``delete`` or ``fire:refund``. What would be done: to the instance at
    ``revision``, by the definition numbered ``version``; of an event, ``transitions`` are the ids of those it
    selects, and ``approved`` those that were approved, where that was something else. ``subject``: what the text
    names in place of the instance; ``by``: what asks for the second person, its definition by default.
    """

    code = "SB435"
    shown = ("machine", "id", "action", "revision", "version", "transitions", "approved")

    def __init__(
        self,
        machine: str,
        id: str,
        action: str,
        *,
        revision: int | None,
        version: int | None = None,
        transitions: Sequence[str] = (),
        approved: Sequence[str] = (),
        subject: str = "",
        by: str = "",
    ) -> None:
        self.machine = machine
        self.id = id
        self.action = action
        self.revision = revision
        self.version = version
        self.transitions = list(transitions)
        self.approved = list(approved)
        on = f"{action} on {subject or f'{machine}/{id}'}"
        text = f"{on} needs approval, {f'by {by}' if by else 'as its definition declares'}"
        if approved:
            taken = ", ".join(transitions) or "nothing"
            text = (
                f"{on} would take {taken} of version {version} now: that is not what was approved"
                f" ({', '.join(approved)}); request approval again"
            )
        super().__init__(text)


class Conflict(SignalboxError):
    """``expected`` and ``actual`` are revisions of the instance: numbers of ``Instance.revision``."""

    code = "SB440"
    shown = ("machine", "id", "expected", "actual")

    def __init__(self, machine: str, id: str, *, expected: int, actual: int) -> None:
        self.machine = machine
        self.id = id
        self.expected = expected
        self.actual = actual
        super().__init__(f"{machine}/{id} is at revision {actual}, not {expected}: the instance changed")


class Miscounted(SignalboxError):
    """``expected`` and ``actual`` are numbers of jobs in one place of a queue."""

    code = "SB441"
    shown = ("queue", "place", "expected", "actual")

    def __init__(self, queue: str, place: str, *, expected: int, actual: int) -> None:
        self.queue = queue
        self.place = place
        self.expected = expected
        self.actual = actual
        super().__init__(f"queue {queue} has {actual} {place} jobs, not {expected}: look at them again")


class JobHandled(SignalboxError):
    """The job died, and its instance has dealt with that: it no longer waits for the job. Nothing was changed."""

    code = "SB443"
    shown = ("machine", "id")

    def __init__(self, machine: str, id: str) -> None:
        self.machine = machine
        self.id = id
        super().__init__(f"job {id} of {machine} is handled: its instance moved on; force the retry to run it again")


class VersionRefused(SignalboxError):
    """A roll-out, a pin or a withdrawn version does not allow what was asked. Nothing was changed."""

    code = "SB626"
    shown = ("machine",)

    def __init__(self, machine: str, why: str, *, code: str | None = None) -> None:
        self.machine = machine
        self.why = why
        super().__init__(f"{machine}: {why}", code=code)


class LeaseLost(SignalboxError):
    """``why``: "taken back" (its lease ran out, or another holds it), "withdrawn" (its instance left the state, or an
    operator took it away) or "gone" (it is finished)."""

    code = "SB450"
    shown = ("job", "why")

    def __init__(self, job: str, *, why: str) -> None:
        self.job = job
        self.why = why
        super().__init__(f"job {job} is no longer yours: {why}")


class EngineUnavailable(SignalboxError):
    """``retry_safe``: nothing was changed for certain, so the same call can be sent again as it is. ``node``: the node
    of a cluster that does not answer, ``host:port``; empty where that is unknown."""

    code = "SB500"
    shown = ("retry_safe",)

    def __init__(self, message: str, *, code: str | None = None, retry_safe: bool = False, node: str = "") -> None:
        self.retry_safe = retry_safe
        self.node = node
        super().__init__(message, code=code)


class EngineFault(SignalboxError):
    code = "SB510"


class NotPermitted(EngineFault):
    """``missing``: what the account lacks, as ``ACL SETUSER`` calls it; empty where the server does not say."""

    code = "SB511"
    shown = ("missing",)

    def __init__(self, missing: Sequence[str] = ()) -> None:
        self.missing = list(missing)
        lacks = f"it lacks {', '.join(missing)}" if missing else "`manage.py check` names what it lacks"
        super().__init__(f"the account that is used on Redis may not do this: {lacks} (docs/acl.md has its line)")


class LibraryNotLoaded(NotPermitted):
    """The message names the command that a deployment account has to run; afterwards the same call goes on."""

    code = "SB515"

    def __init__(self, what: str) -> None:
        super().__init__(["function|load"])
        self.message = (
            f"{what}; this account may not load it: run `signalbox library load` with the deployment account "
            "(docs/acl.md); nothing was changed"
        )
        self.args = (self.message,)
