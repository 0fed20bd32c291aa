"""The id of each part of a diagram. No user-written text is in one, except queue names, which are plain."""

from __future__ import annotations

from typing import Any

START = "start"


def state_id(index: int) -> str:
    """``index`` counts from 1, in document order, as in the program."""
    return f"state-{index}"


def edge_id(transition: str) -> str:
    return f"edge-{transition}"


def queue_id(queue: str) -> str:
    return f"queue-{queue}"


def feeds_id(index: int, queue: str) -> str:
    return f"feeds-{index}-{queue}"


def index(outline: Any) -> dict[str, dict[str, str]]:
    """Which element stands for what, as plain JSON for the browser."""
    return {
        "states": {state.name: state_id(state.index) for state in outline.states},
        "transitions": {t.id: edge_id(t.id) for state in outline.states for t in state.transitions},
        "queues": {queue: queue_id(queue) for queue in outline.queues},
    }
