"""What every kind of input has, and where each of them is."""

from __future__ import annotations

import importlib
import random
from abc import ABC, abstractmethod

from .cases import Case
from .results import Result
from .stage import Stage

NAMES = ("expressions", "definitions", "payloads", "frames", "fcalls")


class Kind(ABC):
    """``draw`` makes an input of random numbers and of nothing else; ``play`` puts it to the real parts."""

    name: str

    @abstractmethod
    def draw(self, rng: random.Random) -> Case: ...

    @abstractmethod
    def play(self, stage: Stage, case: Case) -> Result: ...

    def close(self) -> None:
        """Ends what was begun for all inputs together."""
        return


def kind(name: str) -> Kind:
    """The module of that name holds its class."""
    found: Kind = getattr(importlib.import_module(f"tests.security.fuzz.{name}"), name.title())()
    return found
