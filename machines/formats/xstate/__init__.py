"""Reads and writes XState machine configs, versions 5 and 4, as Stately exports them.

``reading`` and ``writing`` are the two directions. Expressions are written as Stately does, between double braces. If
the document's ``queryLanguage`` is ``DIALECT``, they are our expressions and not JavaScript.
"""

from .reading.document import read
from .writing import write

__all__ = ["read", "write"]
