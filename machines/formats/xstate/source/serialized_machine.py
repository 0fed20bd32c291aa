"""Turns ``JSON.stringify(machine)``, a machine that XState has expanded, back into a config as far as possible.

Such a text repeats itself, contains the defaults, turns ``after`` into events that actions raise and cancel, and lacks
``always``, the targets of history states and the arguments of built-in actions.
"""

from __future__ import annotations

from typing import Any

_AFTER = "xstate.after."
_REPEATED = ("key", "order", "transitions")
_OF_TRANSITION = ("source", "eventType", "event", "delay")


def is_expanded(config: dict[str, Any]) -> bool:
    return "key" in config and isinstance(config.get("transitions"), list)


def shorten(state: dict[str, Any], default_id: str) -> dict[str, Any]:
    """Shorten a state. ``default_id``: the id that XState gives a state without one."""
    short = {key: value for key, value in state.items() if key not in _REPEATED and value not in ([], {}, False)}
    if short.get("id") == default_id and "." in default_id:
        del short["id"]
    if isinstance(short.get("initial"), dict) and not short["initial"].get("target"):
        del short["initial"]
    if isinstance(short.get("on"), dict):
        short |= _without_timers(short, short["on"])
    states = short.get("states")
    if isinstance(states, dict):
        short["states"] = {
            key: shorten(below, f"{default_id}.{key}") if isinstance(below, dict) else below
            for key, below in states.items()
        }
    return {key: value for key, value in short.items() if value not in ([], {})}


def _without_timers(state: dict[str, Any], on: dict[str, Any]) -> dict[str, Any]:
    """Return ``on`` and ``after``, and the actions except those that raise and cancel timers."""
    timers = {event: _as_list(found) for event, found in on.items() if event.startswith(_AFTER)}
    after: dict[str, Any] = {}
    for transitions in timers.values():
        for transition in transitions:
            delay = transition.get("delay") if isinstance(transition, dict) else None
            after.setdefault(str(delay), []).append(_plain(transition))
    return {
        "on": {event: [_plain(one) for one in _as_list(found)] for event, found in on.items() if event not in timers},
        "after": after,
        "entry": _without(state.get("entry"), "xstate.raise", len(timers)),
        "exit": _without(state.get("exit"), "xstate.cancel", len(timers)),
    }


def _as_list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _plain(transition: Any) -> Any:
    if not isinstance(transition, dict):
        return transition
    found = {key: value for key, value in transition.items() if key not in _OF_TRANSITION}
    return {key: value for key, value in found.items() if value not in ([], False, None)}


def _without(actions: Any, name: str, count: int) -> Any:
    """Remove the last ``count`` actions that consist of only this name."""
    kept = list(actions) if isinstance(actions, list) else []
    for place in reversed(range(len(kept))):
        if count and kept[place] == {"type": name}:
            del kept[place]
            count -= 1
    return kept
