"""Errors of jobs and of the error inbox."""

from machines.engine import BadInput, LookupFailed, SignalboxError


class NotMoved(SignalboxError):
    """A job is not where it was seen, so it was left there."""

    code = "SB705"

    def __init__(self, job: str, why: str) -> None:
        super().__init__(why, job=job)


class UnknownFailureGroup(LookupFailed):
    """No such group."""

    code = "SB447"

    def __init__(self, group: int) -> None:
        super().__init__(f"failure group {group} not found")


class BadFailureAction(BadInput):
    """``field``: the one that does not fit, "" for the action as a whole."""

    code = "SB448"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message, field=field)
