"""The permit of a call: what the person behind it may do. The engine enforces it inside the step that commits.

A call without a permit is a program's call: the rules for people (``allow`` of a transition, ``approval`` of a machine)
do not apply to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .errors import BadInput

MAX_BYTES = 65_536  # of a permit as JSON: some hundreds of groups


@dataclass(frozen=True, slots=True)
class Permit:
    """The rights of a person. ``groups``: names of the person's groups, None for a person who may take any transition.

    ``action``: what a second person approved, as definitions name it (``delete``, ``fire:refund``), "" for nothing;
    ``by``: the approver, who is not the call's actor. ``version`` and ``transitions`` limit the approval of an event
    to a version and to the ids of its transitions; None for any.
    """

    groups: frozenset[str] | None
    action: str = ""
    by: str = ""
    version: int | None = None
    transitions: tuple[str, ...] | None = None

    def approve(self, action: str, by: str, **what: Any) -> Permit:
        """Return this permit with an approval added."""
        return Permit(self.groups, action, by, **what)


def encode_permit(permit: object) -> str:
    """Return a permit as JSON text for the functions library. Raises BadInput."""
    if not isinstance(permit, Permit):
        raise BadInput(f"permit is a Permit, or None for a program's call, not {type(permit).__name__}")
    fields: dict[str, Any] = {"groups": None if permit.groups is None else _names("groups", permit.groups)}
    if permit.action:
        fields["approved"] = _encode_approval(permit)
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BadInput(f"a permit has at most {MAX_BYTES} bytes: {len(fields['groups'] or ())} groups are too many")
    return text


def _encode_approval(permit: Permit) -> dict[str, Any]:
    fields: dict[str, Any] = {"action": permit.action, "by": permit.by}
    if permit.version is not None:
        fields["definition"] = permit.version
    if permit.transitions is not None:
        fields["transitions"] = list(permit.transitions)
    return fields


def _names(what: str, names: Iterable[object]) -> list[str]:
    found = [name for name in names if isinstance(name, str)]
    if isinstance(names, str) or len(found) != len(list(names)):
        raise BadInput(f"{what} of a permit are names, as text")
    return sorted(found)
