"""Errors of attached models."""

from __future__ import annotations

from machines.engine import BadInput


class NotAttachable(BadInput):
    """A model or a field that cannot be mirrored; the message says what would be."""

    code = "SB493"


class MethodRefused(BadInput):
    """A method of a model that may not be called on this row now; the message says why. Nothing has changed."""

    code = "SB494"


class MethodFailed(BadInput):
    """A method of a model that raised. What it has written is taken back, unless it declares a state for that."""

    code = "SB495"
