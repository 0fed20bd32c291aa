"""What the person behind a call may do: the engine holds the step to it in the call that commits.

Without a permit a call is a program's, and no rule for people holds: neither ``allow`` of a transition nor ``approval``
of a machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .errors import BadInput

MAX_BYTES = 65_536  # of the text it is sent as: some hundreds of groups


@dataclass(frozen=True, slots=True)
class Permit:
    """``groups``: names of the person's groups, None for who may take any transition.

    ``action``: what a second person approved, as definitions name it (``delete``, ``fire:refund``), "" for nothing;
    ``by``: who that was, another one than the call's actor. ``definition`` and ``transitions``: of an event, the number
    of the version that was approved and the ids of what it was to take; None for whichever it is.
    """

    groups: frozenset[str] | None
    action: str = ""
    by: str = ""
    definition: int | None = None
    transitions: tuple[str, ...] | None = None

    def approved(self, action: str, by: str, **what: Any) -> Permit:
        """The same with what a second person approved."""
        return Permit(self.groups, action, by, **what)


def encode_permit(permit: object) -> str:
    """As the functions library takes it. Raises BadInput."""
    if not isinstance(permit, Permit):
        raise BadInput(f"permit is a Permit, or None for a program's call, not {type(permit).__name__}")
    said: dict[str, Any] = {"groups": None if permit.groups is None else _names("groups", permit.groups)}
    if permit.action:
        said["approved"] = _approved(permit)
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BadInput(f"a permit has at most {MAX_BYTES} bytes: {len(said['groups'] or ())} groups are too many")
    return text


def _approved(permit: Permit) -> dict[str, Any]:
    said: dict[str, Any] = {"action": permit.action, "by": permit.by}
    if permit.definition is not None:
        said["definition"] = permit.definition
    if permit.transitions is not None:
        said["transitions"] = list(permit.transitions)
    return said


def _names(what: str, names: Iterable[object]) -> list[str]:
    found = [name for name in names if isinstance(name, str)]
    if isinstance(names, str) or len(found) != len(list(names)):
        raise BadInput(f"{what} of a permit are names, as text")
    return sorted(found)
