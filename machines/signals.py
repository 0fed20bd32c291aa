"""Signals about the instances of rows: ``stepped`` after each step, ``delivered`` after each entry of the outbox."""

from __future__ import annotations

from machines.binding.signals import delivered, stepped

__all__ = ["delivered", "stepped"]
