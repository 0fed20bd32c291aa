"""Errors of attached models. Those of calls are in ``machines.catalog.mirrors``."""

from __future__ import annotations

from machines.engine import BadInput


class NotAttachable(BadInput):
    """A model or a field that cannot be mirrored; the message says what would be."""

    code = "SB493"
