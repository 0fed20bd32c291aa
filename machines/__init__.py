"""State machines: definitions, the engine that runs them inside Redis, and the workers that do their work."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """``from machines import attach``, which takes Django; whoever does not ask for it needs none."""
    if name == "attach":
        return import_module("machines.integrations.attached").attach
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
