"""Finds the terms of a request: what definitions and the setting ``APPROVERS`` ask for, the strictest of each."""

from __future__ import annotations

from collections.abc import Iterable

from machines.bulks import Bulk
from machines.catalog.queries import every_outline, outline_of
from machines.catalog.version_rules import MIGRATE, OPERATIONS, find_rule, find_setting_terms
from machines.connections import get_engine
from machines.engine.definitions import Outline
from machines.engine.definitions.approval_terms import ApprovalTerms, find_terms, merge_terms
from machines.engine.definitions.outline import covers_action
from machines.people.errors import ApprovalNeeded


def find_request_terms(needed: ApprovalNeeded) -> ApprovalTerms:
    """Return on which terms an action is approved. The version of an instance decides; for a bulk action every version
    of the machine; for a change of versions the rules that hold."""
    outside = find_setting_terms(needed.machine, OPERATIONS.get(needed.name) or [needed.action])
    rule = needed.rule
    if needed.bulk and needed.name == MIGRATE:
        sources = Bulk(get_engine(), needed.bulk).order().migration.sources
        rule = find_rule(MIGRATE, needed.machine, moves=[(source.version, source.to) for source in sources])
    if rule is not None:
        return outside.merge(rule.terms)
    if needed.id:
        version = get_engine().get(needed.machine, needed.id).version
        return outside.merge(_find_terms([outline_of(needed.machine, version)], needed.action))
    return outside.merge(_find_terms(every_outline(needed.machine), needed.action))


def _find_terms(outlines: Iterable[Outline], action: str) -> ApprovalTerms:
    return merge_terms(
        find_terms(outline.approvers, [name])
        for outline in outlines
        for name in outline.approval
        if covers_action(name, action)
    )
