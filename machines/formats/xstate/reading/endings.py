"""What a state does when something ends, where it listens for everything else as well.

For XState ``onDone`` comes before ``*``, because it is the more exact; here it comes after all of ``on``. So it moves
into ``on``, under the name of its event.
"""

from __future__ import annotations

from typing import Any

from machines.engine.definitions.invokes import default_id
from machines.engine.definitions.tree import Branch

from ..dialect import DONE_INVOKE, DONE_STATE, ERROR_INVOKE


def before_wildcard(parts: dict[str, Any], branch: Branch) -> dict[str, Any]:
    """The parts of a state with nothing left for ``*`` to take that is meant for something else."""
    found: dict[str, Any] = {}
    if parts["onDone"] not in (None, []):
        found[DONE_STATE + branch.word] = parts["onDone"]
    invokes = parts["invoke"] if isinstance(parts["invoke"], list) else [parts["invoke"]] if parts["invoke"] else []
    kept = []
    for number, invoke in enumerate(invokes, start=1):
        id = invoke.get("id") or default_id(branch.name, number if len(invokes) > 1 else 0)
        for key, event in (("onDone", DONE_INVOKE + id), ("onError", ERROR_INVOKE + id)):
            if key in invoke:
                found[event] = invoke[key]
        kept.append({key: value for key, value in invoke.items() if key not in ("onDone", "onError")})
    on = {event: transitions for event, transitions in parts["on"].items() if event != "*"}
    on |= {event: transitions for event, transitions in found.items() if event not in on}
    on["*"] = parts["on"]["*"]
    invoke = kept[0] if len(kept) == 1 else kept
    return parts | {"on": on, "invoke": invoke, "onDone": None}
