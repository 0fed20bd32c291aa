"""Presents an approval request: its subject, and what it would do now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.instances.presenters import REPAIR_KINDS, list_changes, list_routes
from dashboard.shared import version_view
from dashboard.shared.addresses import page_of
from dashboard.shared.redacted_engine import RedactedEngine
from machines.approvals import actions as approvals
from machines.approvals import queries as approval_queries
from machines.engine import Explanation, Preview, errors
from machines.instances.queries import read_fields, redactor_of
from machines.models import Approval
from machines.people.actor import Actor

WORDS = {
    "publish": "Publish a draft",
    "rollout.start": "Start a roll-out",
    "rollout.set": "Change the share of a roll-out",
    "rollout.finish": "Finish a roll-out",
    "version.pin": "Pin a version",
    "version.unpin": "Unpin the pinned version",
    "version.withdraw": "Withdraw a version",
    "version.allow": "Allow a withdrawn version",
    "version.policy": "Change what needs a second person",
    "migrate": "Move instances to another version",
}
"""Actions on versions, as people call them. Those on an instance have the titles of repairs."""


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a request as the list shows it. ``words``: what it asks for; ``mine``: the viewer filed it; ``url``: the
    page of its subject."""

    approval: Approval
    words: str
    mine: bool
    may_decide: bool
    url: str


def make_row(actor: Actor, approval: Approval) -> Row:
    return Row(
        approval, _describe_action(approval), approval.asker_id == actor.id,
        approval_queries.may_decide(actor, approval), _find_page(approval),
    )  # fmt: skip


def _describe_action(approval: Approval) -> str:
    if approval.name == "fire":
        return f"Send the event {approval.action.partition(':')[2]}"
    kind = REPAIR_KINDS.get(approval.name)
    return kind.title if kind else WORDS.get(approval.name, approval.action)


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
    transition now. With them the instance as it is: ``fields`` of its data, and ``drawing``.
    """
    if not approval.is_open:
        return {}
    found: dict[str, Any] = {}
    try:
        now = RedactedEngine(actor).get(approval.machine, approval.instance) if approval.instance else None
        view = version_view.load_version(now.machine, now.version) if now else None
        found = {"instance": now, "view": view}
        seen = approvals.preview(actor, approval)
        if seen is not None:
            found["moved"] = seen.revision if seen.revision != approval.expect else 0
        if isinstance(seen, Explanation) and view:
            routes = list(list_routes(view, seen, payload_known=True))
            found |= {"explanation": seen, "routes": routes, "other": _is_other(approval, seen)}
        elif isinstance(seen, Preview):
            held = read_fields(actor, seen.machine, seen.id, seen.changes)
            found |= {"preview": seen, "changes": list_changes(seen, held)}
    except errors.EngineUnavailable:
        raise
    except errors.SignalboxError as error:
        found["why"] = redactor_of(actor, approval.machine).error(error)
    if now := found.get("instance"):
        possible = {route.id: route.kind for route in found.get("routes", ())}
        drawing = version_view.draw_instance(found["view"], now, possible)
        found |= {"fields": found["view"].fields(now.data), "stamps": found["view"].stamps, "drawing": drawing}
    return found


def _is_other(approval: Approval, seen: Explanation) -> bool:
    asked = approval.asked.get("transitions")  # not in requests of an older release
    taken = {one.id for one in seen.candidates if one.verdict == "taken"}
    return asked is not None and seen.taken and taken != set(asked)
