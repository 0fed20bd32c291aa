"""Errors of the error inbox."""

from machines.engine import BadInput, LookupFailed


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
