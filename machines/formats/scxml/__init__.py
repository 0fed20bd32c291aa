"""SCXML, the W3C's notation for state charts, with its ECMAScript data model; ours as such a document.

``reading`` takes a document apart, ``writing`` puts one together; ``machines.formats.javascript`` reads expressions and
scripts, without ever running one.
"""

from .reading.document import read
from .writing.document import write

__all__ = ["read", "write"]
