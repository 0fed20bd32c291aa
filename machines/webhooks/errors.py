"""Errors of webhook management and of deliveries."""

from __future__ import annotations

from typing import Any

from machines.engine import BadInput, LookupFailed


class BadWebhook(BadInput):
    """``field``: the one that does not fit."""

    code = "SB445"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"field": self.field}


class UnknownWebhook(LookupFailed):
    """No such webhook, or no such delivery of it."""

    code = "SB446"


class Unreachable(Exception):
    """An attempt was not made, or got no answer: ``str()`` says why, for the delivery log."""
