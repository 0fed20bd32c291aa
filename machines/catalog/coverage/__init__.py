"""Coverage of machines by tests: which transitions they took, and which guards they saw true and false.

- ``measurement``: counts of one definition, how they are read off an engine, added up, and written as JSON
- ``storage``: what a run of tests reported, kept for the definition with that digest
"""

from .measurement import Coverage, measure

__all__ = ["Coverage", "measure"]
