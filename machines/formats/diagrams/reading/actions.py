"""Reads actions from arrows: assignments, ``raise event`` and ``emit message``. Any other text is a name."""

from __future__ import annotations

import re
from typing import Any

from machines.engine import limits
from machines.formats.conditions import Complain, Conditions
from machines.formats.messages import message_of

_ASSIGNED = re.compile(r"(?P<name>[A-Za-z]\w*)\s*:?=(?!=)\s*(?P<value>.+)")
_VERB = re.compile(r"(?P<verb>raise|emit)\s+(?P<name>[^\s()]+)")


def read_action(text: str, conditions: Conditions, complain: Complain) -> dict[str, Any]:
    assigned = _ASSIGNED.fullmatch(text)
    if assigned and conditions.assign(assigned["name"], assigned["value"], complain):
        return {"set": {assigned["name"]: assigned["value"]}}
    found = _VERB.fullmatch(text)
    if found and limits.check_external_event_name(found["name"]) is None:
        return {"raise": found["name"]} if found["verb"] == "raise" else {"emit": {"type": found["name"]}}
    return message_of(text, complain)
