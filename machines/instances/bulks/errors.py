"""Errors of bulk actions, beside those of the engine."""

from machines.engine.errors import SignalboxError


class NotNow(SignalboxError):
    """A bulk cannot be run, paused, resumed or stopped in the state it is in."""

    code = "SB480"

    def __init__(self, bulk: str, what: str, state: str) -> None:
        super().__init__(f"bulk action {bulk} is {state}: cannot {what}", bulk=bulk, state=state)
