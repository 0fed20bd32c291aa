"""Names that reader and writer share."""

from __future__ import annotations

DIALECT = "signalbox"  # the `queryLanguage` of texts whose expressions are ours
OURS = "signalbox"  # the key below `meta` with what only we understand

# These keys are kept below `meta`, because no other XState tool knows them.
MACHINE_KEYS = (
    *("$schema", "history", "retain", "errors", "machines", "queues", "partitions", "index", "approval", "accepts"),
    *("schedules", "properties"),
)
STATE_KEYS = ("sla",)
TRANSITION_KEYS = ("allow",)
INVOKE_KEYS = (
    *("queue", "retry", "lease", "timeout", "priority", "delay", "unique"),
    *("autoforward", "finalize", "idlocation"),
)

VERBS = ("set", "unset", "append", "raise", "send", "cancel", "enqueue", "emit", "log", "if", "foreach", "block")

# Events with different names: those of XState 5, of XState 4, and ours.
DONE_ACTOR, DONE_INVOKE = "xstate.done.actor.", "done.invoke."
ERROR_ACTOR, ERROR_PLATFORM, ERROR_INVOKE = "xstate.error.actor.", "error.platform.", "error.invoke."
DONE_STATE_5, DONE_STATE = "xstate.done.state.", "done.state."


def unbrace(text: str) -> str | None:
    """Return the expression between double braces; None for any other text."""
    trimmed = text.strip()
    if len(trimmed) >= 4 and trimmed.startswith("{{") and trimmed.endswith("}}"):
        return trimmed[2:-2].strip()
    return None
