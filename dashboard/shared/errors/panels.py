"""Reads the panels of a page one by one, so that a node of a cluster that is away costs its panels and no others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from machines.connections import is_spread
from machines.engine import retry_for

from .redis_outage import find_node, is_outage

log = logging.getLogger(__name__)

Found = TypeVar("Found")
SOME_NODE = "a node"  # where the error does not name it
AWAY = "what is left out -> the node of the cluster that does not answer"  # describes ``away`` in the API


class Panels:
    """The panels of one page. ``away``: name of a panel -> the node that does not answer; templates show it by
    ``signalbox/shared/_away.html``."""

    def __init__(self) -> None:
        self.away: dict[str, str] = {}

    def read(self, name: str, read: Callable[[], Found], otherwise: Found) -> Found:
        """Return what ``read`` returns; ``otherwise`` where a node of a cluster does not answer. A single server that
        does not answer has no other panels: its error is raised. A page does not wait for a panel."""
        try:
            with retry_for(0):
                return read()
        except Exception as error:
            if not (is_spread() and is_outage(error)):
                raise
            self.away[name] = find_node(error) or SOME_NODE
            log.warning("the panel %s is left out: %s", name, error)
            return otherwise
