"""Presents an approval request: its subject, and what it would do now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.instances.presenters import Route, list_changes, list_routes
from dashboard.shared import version_view
from dashboard.shared.addresses import page_of
from dashboard.shared.redacted_engine import RedactedEngine
from machines.approvals import actions as approvals
from machines.approvals import queries as approval_queries
from machines.engine import Explanation, errors
from machines.instances.queries import read_fields, redactor_of
from machines.models import Approval
from machines.people.actor import Actor


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a request as the list shows it. ``mine``: the viewer filed it; ``url``: the page of its subject."""

    approval: Approval
    mine: bool
    may_decide: bool
    url: str


def make_row(actor: Actor, approval: Approval) -> Row:
    return Row(
        approval, approval.asker_id == actor.id, approval_queries.may_decide(actor, approval), _find_page(approval),
    )  # fmt: skip


def _find_page(approval: Approval) -> str:
    if approval.bulk:
        return page_of("bulk", approval.bulk)
    if approval.draft is not None:
        return page_of("draft", approval.machine, str(approval.draft))
    if approval.is_of_versions:
        return page_of("versions", approval.machine)
    return page_of("instance", approval.machine, approval.instance)


def preview_request(actor: Actor, approval: Approval) -> dict[str, Any]:
    """Return what the request would do now, for the template.

    ``preview`` with ``changes``, or ``explanation`` with ``routes``; ``why`` it would be refused; ``moved``: the
    current revision, if it is not the one the request was filed for; ``other``: whether it would take another
    transition now.
    """
    try:
        seen = approvals.preview(actor, approval)
        if seen is None:
            return {}
        found: dict[str, Any] = {"moved": seen.revision if seen.revision != approval.expect else 0}
        if isinstance(seen, Explanation):
            return found | {
                "explanation": seen,
                "routes": _list_routes(actor, seen),
                "other": _is_other(approval, seen),
            }
        held = read_fields(actor, seen.machine, seen.id, seen.changes)
        return found | {"preview": seen, "changes": list_changes(seen, held)}
    except errors.EngineUnavailable:
        raise
    except errors.SignalboxError as error:
        return {"why": redactor_of(actor, approval.machine).error(error)}


def _is_other(approval: Approval, seen: Explanation) -> bool:
    asked = approval.asked.get("transitions")  # not in requests of an older release
    taken = {one.id for one in seen.candidates if one.verdict == "taken"}
    return asked is not None and seen.taken and taken != set(asked)


def _list_routes(actor: Actor, seen: Explanation) -> list[Route]:
    (now,) = RedactedEngine(actor).get_many(seen.machine, [seen.id])
    if isinstance(now, errors.SignalboxError):
        raise now
    return list(list_routes(version_view.load_version(seen.machine, now.version), seen, payload_known=True))
