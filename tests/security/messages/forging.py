"""Names of events that only the engine gives, and such as only look like them."""

from __future__ import annotations

# One table for both halves: whether only the engine gives an event this name.
NAMES = {
    "done.invoke.Charging": True,
    "done.invoke.Charging.more": True,
    "done.state.Packing": True,
    "done.": True,
    "done.x": True,
    "error.invoke.Charging": True,
    "error.execution": True,
    "error.communication": True,
    "error.card": True,
    "after.t1": True,
    "after.t99.x": True,
    "after.lunch": True,
    "done": False,
    "error": False,
    "after": False,
    "doner.x": False,
    "Done.x": False,
    "x.done.invoke.Charging": False,
    "donе.invoke.Charging": False,  # the е is Cyrillic
    "errors.x": False,
    "afters.t1": False,
}
RESERVED = [name for name, reserved in NAMES.items() if reserved]
FORGED = ["done.invoke.Charging", "error.invoke.Charging", "done.state.Packing", "error.execution", "after.t3"]
"""Each would move a bank's payment if somebody else could make it."""

TO_BANK = {"machine": "bank", "id": "'b'"}
