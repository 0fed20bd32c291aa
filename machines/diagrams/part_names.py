"""The id of each part of a diagram. No user-written text is in one, except queue names, which are plain."""

START = "start"


def state_id(index: int) -> str:
    """Return the id of a state. ``index`` counts from 1, in document order, as in the program."""
    return f"state-{index}"


def start_id(index: int | None = None) -> str:
    """Return the dot where a state with states in it begins; without an index, where the machine does."""
    return START if index is None else f"{START}-{index}"


def edge_id(transition: str, target: int = 0) -> str:
    """Return the id of a line. ``target`` counts from 0; a transition with one target has only the first."""
    return f"edge-{transition}-{target + 1}" if target else f"edge-{transition}"


def fold_id(index: int) -> str:
    return f"fold-{index}"


def mark_id(kind: str, index: int) -> str:
    return f"{kind}-{index}"


def queue_id(queue: str) -> str:
    return f"queue-{queue}"


def feeds_id(index: int, queue: str) -> str:
    return f"feeds-{index}-{queue}"
