"""Mirrors models that another state library drives: SQL decides, the instances of a machine follow.

See ``docs/attach.md``. ``machines.fields`` is the other direction, where the machine decides and a column follows.
"""

from .attaching import attach, detach
from .columns import NotAttachable
from .libraries.transitions import follow
from .recording import acting_as
from .registry import Attachment

__all__ = ["Attachment", "NotAttachable", "acting_as", "attach", "detach", "follow"]
