"""Patterns on Redis that machines are built with and that stand on their own, each one atomic call."""

from .throttle import Throttle, Verdict

__all__ = ["Throttle", "Verdict"]
