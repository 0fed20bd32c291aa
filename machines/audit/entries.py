"""Writes audit entries: one for each action of a person or program, with its outcome.

An entry is written after the action, by the same request, because only then its outcome is known. Redis and SQL share
no transaction, so one of them can fail alone. A write that fails never hides what was done: the entry goes to the log
in full, as an error, and the operator gets a warning. A process that is killed in between leaves no entry; an
instance's own history, written with its step, names actor and reason even then.

Services write through here (``Actor.records``), and pages that have no service. Two ways::

    with record_action(user, "suspend", source="page 10.0.0.7", machine=machine, instance=id, reason=reason) as entry:
        after = engine.suspend(...)
        entry.note(state=after.state, revision=after.revision)

    record(user, "publish", machine=name, target="v3", outcome="refused", source="api 10.0.0.7")
"""

import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.contrib import messages
from django.contrib.messages.api import MessageFailure
from django.db import Error
from django.http import HttpRequest

from machines.audit import redaction
from machines.engine import EngineFault, EngineUnavailable, Instance, SignalboxError

from . import chain
from .models import AuditEntry
from .request_context import request_id

log = logging.getLogger(__name__)

ACTIONS = (
    "explain",
    "fire", "create", "force", "edit", "reset", "retry", "skip", "cancel", "delete", "suspend", "resume", "publish",
    "draft.save", "draft.rebase", "draft.discard", "plan.store", "plan.try",
    "rollout.set", "rollout.stop", "rollout.finish", "version.pin", "version.withdraw",
    "version.policy",
    "machine.export", "machine.import", "machine.repartition", "machine.erase", "machine.migrate", "machine.reconcile",
    "queue.pause", "queue.resume", "queue.limit", "queue.purge", "queue.redrive",
    "job.redrive", "job.withdraw", "job.move", "job.delay", "job.reroute",
    "worker.quiet", "worker.work", "worker.stop",
    "bulk.start", "bulk.run", "bulk.pause", "bulk.resume", "bulk.stop", "bulk.remove", "bulk.rate",
    "run.retry", "run.remove",
    "schedule.put", "schedule.pause", "schedule.resume", "schedule.run", "schedule.backfill", "schedule.remove",
    "schedule.take_over",
    "approval.ask", "approval.approve", "approval.decline", "approval.withdraw", "approval.expire",
    "token.make", "token.revoke", "session.make", "session.revoke",
    "login", "login.failed", "login.throttled", "logout",
    "webhook.make", "webhook.change", "webhook.rotate", "webhook.delete", "webhook.test", "webhook.redeliver",
    "route.make", "route.change", "route.rotate", "route.delete", "route.test", "route.redeliver",
    "alarm.acknowledge", "alarm.assign", "alarm.snooze", "alarm.wake",
    "failure.assign", "failure.mute", "failure.resolve", "failure.reopen", "failure.redrive", "failure.skip",
    "failure.stop",
    "reveal", "export", chain.SEAL,
    "user.make", "user.change", "user.password", "user.groups", "user.rights", "user.delete",
    "group.make", "group.change", "group.rights", "group.delete",
    "grant.make", "grant.change", "grant.delete", "token.change", "token.delete",
)  # fmt: skip
DONE, REFUSED, FAILED = AuditEntry.Outcome.values
SAID = 2000  # characters of an error's message
PLAIN = ("error", "code", "before", "after", "revision", "version", "replayed")
PLAIN_FACTS = frozenset(PLAIN)
_HALVES = re.compile("[\ud800-\udfff]")
recording: ContextVar[str] = ContextVar("recording", default="")
"""The action that a block of ``recorded`` around this moment will write an entry of; "" outside of one."""
NOT_WRITTEN = "The audit entry could not be written. Tell an administrator; the server log has the details."


class AuditRecord:
    """One action while it goes on: what its entry will say."""

    def __init__(self, actor: Any, action: str, *, refusals: tuple[type[Exception], ...] = (), **about: str) -> None:
        if action not in ACTIONS:
            raise ValueError(f"no action {action!r}; there are {', '.join(ACTIONS)}")
        self.actor = actor
        self.action = action
        self.about = about
        self.refusals = (SignalboxError, *refusals)
        self.outcome = DONE
        self.detail: dict[str, Any] = {}
        self.is_void = False

    def note(self, **facts: Any) -> None:
        """Add facts to the entry. Facts that go into ``detail``: states before and after, a version, how many. Anything
        JSON can say; what is sensitive in it is masked before it is written."""
        self.detail |= facts

    def note_step(self, before: str, after: Instance) -> None:
        """Note where a step led from and to, and whether it had counted already."""
        self.note(before=before, after=after.state, revision=after.revision)
        if after.outcome and after.outcome.replayed:
            self.note(replayed=True)

    def name(self, **about: str) -> None:
        """Note what is known only now, as the id of an instance that was just made."""
        self.about |= about

    def void(self) -> None:
        """Drop the entry: nothing was tried, and another entry says what was done in its place."""
        self.is_void = True

    def note_failure(self, error: BaseException) -> None:
        """Note the outcome: refused where the engine said no, failed where the result is unknown or something broke."""
        said_no = isinstance(error, self.refusals) and not isinstance(error, EngineUnavailable | EngineFault)
        self.outcome = REFUSED if said_no else FAILED
        said = _redact_error(self.about.get("machine", ""), error)
        self.note(error=said[:SAID] or type(error).__name__, code=getattr(error, "code", type(error).__name__))

    def write(self) -> bool:
        return record(self.actor, self.action, outcome=self.outcome, detail=self.detail, **self.about)


@contextmanager
def record_action(
    actor: Any,
    action: str,
    *,
    unwritten: Callable[[], None] | None = None,
    refusals: tuple[type[Exception], ...] = (),
    **about: str,
) -> Iterator[AuditRecord]:
    """Record what the block does, by ``actor``; an error it raises makes the outcome and goes on.

    ``about``: ``machine``, ``instance``, ``queue``, ``target``, ``reason``, ``source``. ``refusals``: errors beside the
    engine's that say no. ``unwritten`` is called where the entry could not be written.
    """
    entry = AuditRecord(actor, action, refusals=refusals, **about)
    outer = recording.set(action)
    try:
        yield entry
    except Exception as error:
        entry.note_failure(error)
        raise
    finally:
        recording.reset(outer)
        if not entry.is_void and not entry.write() and unwritten is not None:
            unwritten()


def record(actor: Any, action: str, *, outcome: str = DONE, detail: Any = "", **about: str) -> bool:
    """Write one entry; whether that worked. ``actor``: a Django user, or a name. ``detail``: anything JSON can say.
    ``about``: as ``record_action`` has it.

    Raises ValueError for an action or outcome there is none of, and nothing for what the database does.
    """
    if action not in ACTIONS or outcome not in AuditEntry.Outcome.values:
        raise ValueError(f"no action {action!r} with outcome {outcome!r}")
    given = about | _name_person(actor) | {"request": request_id.get()}
    entry = AuditEntry(
        action=action, outcome=outcome, detail=_mask_detail(about.get("machine", ""), _simplify(detail)),
        **{name: _shorten(name, text) for name, text in given.items()},
    )  # fmt: skip
    try:
        chain.write(entry)
    except Error as error:
        log.error("the audit could not be written (%s): %s", error, json.dumps(_list_facts(entry)))
        return False
    return True


def source_of(request: HttpRequest) -> str:
    """Return where a request came from. ``page 10.0.0.7``: which door, and the client's address as the server knows
    it (see ``docs/operate.md``)."""
    match = request.resolver_match
    if match is not None and ("admin" in match.namespaces or match.url_name == "admin-login"):
        door = "admin"
    else:
        door = "api" if match is not None and "/api/v1/" in f"/{match.route}" else "page"
    return f"{door} {request.META.get('REMOTE_ADDR') or ''}".strip()


def _name_person(actor: Any) -> dict[str, str]:
    if isinstance(actor, str):
        return {"actor": actor, "actor_id": ""}
    return {"actor": actor.get_username(), "actor_id": "" if actor.pk is None else str(actor.pk)}


def _shorten(name: str, text: str) -> str:
    """Shorten a storable text to what the column holds."""
    return storable(text)[: getattr(AuditEntry._meta.get_field(name), "max_length", None)]


def storable(text: str) -> str:
    """Return a text that PostgreSQL accepts: no NUL, no half of a surrogate pair."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _redact_error(machine: str, error: BaseException) -> str:
    """Return what an error says, without what it would repeat of sensitive fields."""
    redactor = redaction.available_redactor(machine)
    return type(error).__name__ if redactor is None else redactor.error(error)


def _mask_detail(machine: str, detail: Any) -> Any:
    """Mask the details of an entry. ``detail`` without values of sensitive fields; its plainest facts where nobody can
    tell which those are.

    Where there are no others, nobody is asked: names of states and versions hold no value, and errors say none."""
    if isinstance(detail, dict) and PLAIN_FACTS.issuperset(detail):
        return detail
    redactor = redaction.available_redactor(machine)
    if redactor is not None:
        return redactor.value(detail)
    facts = detail if isinstance(detail, dict) else {}
    return {name: fact if name in PLAIN else redaction.MASK for name, fact in facts.items()}


def _simplify(detail: Any) -> Any:
    """Make details plain. ``detail`` as JSON data; a text alone becomes ``{"said": text}``. Half of a surrogate pair,
    which no page and no file can hold, is written out."""
    if isinstance(detail, str):
        detail = {"said": detail} if detail else {}
    written = json.dumps(detail, default=str, ensure_ascii=False)
    return json.loads(_HALVES.sub(lambda half: f"\\\\u{ord(half.group()):x}", written))


def _list_facts(entry: AuditEntry) -> dict[str, Any]:
    facts = {name: getattr(entry, name) for name in chain.FACTS}
    return facts | {"at": entry.at.isoformat()}


def warn_operator(request: HttpRequest) -> None:
    """Show a warning on the next page. It stands in the log as well."""
    try:
        messages.error(request, NOT_WRITTEN)
    except MessageFailure:
        log.info("%s has no place for messages", request.path)
