"""Errors of requests for approval."""

from machines.engine import SignalboxError


class OwnRequest(SignalboxError):
    """The requester cannot approve their own request."""

    code = "SB436"

    def __init__(self, approval: int) -> None:
        super().__init__(f"request {approval} is your own: another person has to decide it", approval=approval)


class NotApprover(SignalboxError):
    """``group``: the one that the actor is not in; ``is_empty``: nor is another person."""

    code = "SB452"

    def __init__(self, approval: int, group: str, *, is_empty: bool = False) -> None:
        who = "nobody is one: add members, or withdraw it" if is_empty else "you are not one"
        super().__init__(
            f"request {approval} is decided by members of the group {group}: {who}", approval=approval, group=group
        )


class NotOpen(SignalboxError):
    """``state``: what became of it; ``why``: in words."""

    code = "SB437"

    def __init__(self, approval: int, state: str, why: str = "it is already decided") -> None:
        super().__init__(f"request {approval} is {state}: {why}", approval=approval, state=state)
