"""The error of a model that cannot be attached."""

from __future__ import annotations

from machines.engine import BadInput


class NotAttachable(BadInput):
    """A model or a field that cannot be mirrored; the message says what would be."""

    code = "SB493"
