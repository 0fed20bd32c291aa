"""Reads and writes SCXML, the W3C's notation for state charts, with its ECMAScript data model.

``reading`` and ``writing`` are the two directions; ``machines.formats.javascript`` reads expressions and scripts, and
never runs one.
"""

from .reading.document import read
from .writing.document import write

__all__ = ["read", "write"]
