"""Errors of webhook management and of deliveries."""

from machines.engine import BadInput, LookupFailed


class BadReceiver(BadInput):
    """``field``: the one that does not fit."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message, field=field)


class BadWebhook(BadReceiver):
    """A field of a webhook does not fit."""

    code = "SB445"


class UnknownWebhook(LookupFailed):
    """No such webhook, or no such delivery of it."""

    code = "SB446"


class Unreachable(Exception):
    """An attempt was not made, or got no answer: ``str()`` says why, for the delivery log."""
