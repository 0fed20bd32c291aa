"""XState machine configs, version 5 and 4, as Stately exports them; ours as such a config.

``reading`` takes a config apart, ``writing`` puts one together. Expressions travel in Stately's way, between
double braces; ``DIALECT`` as the document's ``queryLanguage`` says that they are ours and not JavaScript.
"""

from .reading.document import read
from .writing.document import write

__all__ = ["read", "write"]
