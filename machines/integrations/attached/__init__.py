"""Mirrors models that another state library drives: SQL decides, the instances of a machine follow.

See ``docs/attach.md``. ``machines.fields`` is the other direction, where the machine decides and a column follows.
"""

from .acting import acting_as
from .attaching import attach, detach
from .errors import NotAttachable
from .libraries.transitions import follow
from .registry import Attachment

__all__ = ["Attachment", "NotAttachable", "acting_as", "attach", "detach", "follow"]
