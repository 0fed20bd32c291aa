"""Reads classes of python-statemachine: a class described as JSON, a table of states and transitions, a definition."""

from .reading import FORMAT, HINT, read, run

__all__ = ["FORMAT", "HINT", "read", "run"]
