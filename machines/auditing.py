"""Writing the audit: one entry for each lever somebody pulled, whatever came of it.

An entry is written after the action, by the same request, because only then its outcome is known. Redis and SQL share
no transaction, so one of them can fail alone. A write that fails never hides what was done: the entry goes to the log
in full, as an error, and the operator is told. A process that is killed in between leaves no entry; an instance's own
history, written with its step, names actor and reason even then.

Pages, admin and API write through here and nothing else does. Two ways::

    with audited(request, "suspend", machine=machine, instance=id, reason=reason) as deed:
        after = engine.suspend(...)
        deed.note(state=after.state, version=after.version)

    record(user, "publish", machine=name, target="v3", outcome="refused", source="api 10.0.0.7")
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib import messages
from django.contrib.messages.api import MessageFailure
from django.db import Error, transaction
from django.http import HttpRequest

from machines.engine import EngineFault, EngineUnavailable, Instance, SignalboxError
from machines.models import AuditEntry

log = logging.getLogger(__name__)

ACTIONS = (
    "fire", "create", "force", "edit", "reset", "retry", "skip", "cancel", "delete", "suspend", "resume", "publish",
    "queue.pause", "queue.resume", "queue.limit", "queue.purge", "queue.redrive",
    "job.redrive", "job.withdraw", "job.move",
    "worker.quiet", "worker.work", "worker.stop",
    "bulk.start", "bulk.run", "bulk.pause", "bulk.resume", "bulk.stop",
)  # fmt: skip
DONE, REFUSED, FAILED = AuditEntry.Outcome.values
SAID = 2000  # characters of an error's message
NOT_WRITTEN = "This could not be written to the audit: tell whoever runs this site. It stands in the site's log."


class Deed:
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

    def note(self, **facts: Any) -> None:
        """Facts that go into ``detail``: states before and after, a version, how many. Anything JSON can say."""
        self.detail |= facts

    def moved(self, before: str, after: Instance) -> None:
        """Where a step led from and to; whether it had counted already."""
        self.note(before=before, after=after.state, version=after.version)
        if after.outcome and after.outcome.replayed:
            self.note(replayed=True)

    def name(self, **about: str) -> None:
        """What is known only now, as the id of an instance that was just made."""
        self.about |= about

    def failed(self, error: BaseException) -> None:
        """Its outcome: refused where the engine said no, failed where nobody knows or something broke."""
        said_no = isinstance(error, self.refusals) and not isinstance(error, EngineUnavailable | EngineFault)
        self.outcome = REFUSED if said_no else FAILED
        self.note(error=str(error)[:SAID] or type(error).__name__, code=getattr(error, "code", type(error).__name__))

    def write(self) -> bool:
        return record(self.actor, self.action, outcome=self.outcome, detail=self.detail, **self.about)


@contextmanager
def audited(
    request: HttpRequest,
    action: str,
    *,
    machine: str = "",
    instance: str = "",
    queue: str = "",
    target: str = "",
    reason: str = "",
    refusals: tuple[type[Exception], ...] = (),
) -> Iterator[Deed]:
    """Records what the block does, by whoever sent ``request``; an error it raises makes the outcome and goes on.

    ``refusals``: errors beside the engine's that say no.
    """
    about = {"machine": machine, "instance": instance, "queue": queue, "target": target, "reason": reason}
    deed = Deed(request.user, action, refusals=refusals, **about, source=source_of(request))
    try:
        yield deed
    except Exception as error:
        deed.failed(error)
        raise
    finally:
        if not deed.write():
            _tell(request)


def record(
    actor: Any,
    action: str,
    *,
    machine: str = "",
    instance: str = "",
    queue: str = "",
    target: str = "",
    reason: str = "",
    outcome: str = DONE,
    detail: Any = "",
    source: str = "",
) -> bool:
    """Write one entry; whether that worked. ``actor``: a Django user, or a name. ``detail``: anything JSON can say.

    Raises ValueError for an action or outcome there is none of, and nothing for what the database does.
    """
    if action not in ACTIONS or outcome not in AuditEntry.Outcome.values:
        raise ValueError(f"no action {action!r} with outcome {outcome!r}")
    given = {"machine": machine, "instance": instance, "queue": queue, "target": target, "reason": reason}
    entry = AuditEntry(
        action=action, outcome=outcome, detail=_plain(detail),
        **{name: _fitting(name, text) for name, text in (given | _person(actor) | {"source": source}).items()},
    )  # fmt: skip
    try:
        with transaction.atomic():
            entry.save()
    except Error as error:
        log.error("the audit could not be written (%s): %s", error, json.dumps(_shown(entry)))
        return False
    return True


def source_of(request: HttpRequest) -> str:
    """``page 10.0.0.7``: which door, and the client's address as the server was told it (see the operations page)."""
    match = request.resolver_match
    if match is not None and "admin" in match.namespaces:
        door = "admin"
    else:
        door = "api" if request.path.startswith("/api/") else "page"
    return f"{door} {request.META.get('REMOTE_ADDR') or ''}".strip()


def _person(actor: Any) -> dict[str, str]:
    if isinstance(actor, str):
        return {"actor": actor, "actor_id": ""}
    return {"actor": actor.get_username(), "actor_id": "" if actor.pk is None else str(actor.pk)}


def _fitting(name: str, text: str) -> str:
    """As PostgreSQL takes it: no NUL, no half of a surrogate pair, no more than the column holds."""
    whole = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    return whole[: getattr(AuditEntry._meta.get_field(name), "max_length", None)]


def _plain(detail: Any) -> Any:
    """``detail`` as JSON data; a text alone becomes ``{"said": text}``."""
    if isinstance(detail, str):
        return {"said": detail} if detail else {}
    return json.loads(json.dumps(detail, default=str))


def _shown(entry: AuditEntry) -> dict[str, Any]:
    facts = {field.name: getattr(entry, field.name) for field in AuditEntry._meta.fields if field.name != "id"}
    return facts | {"at": entry.at.isoformat()}


def _tell(request: HttpRequest) -> None:
    """On the next page; whoever has no pages finds it in the log."""
    try:
        messages.error(request, NOT_WRITTEN)
    except MessageFailure:
        log.info("%s has no place for messages", request.path)
