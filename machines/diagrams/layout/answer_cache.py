"""Keeps what Graphviz answered for a level, so that a changed definition has only its changed levels laid out anew.

The key is the whole source. It holds sizes and lines, numbered in the order of the level, and nothing that a user
wrote; equal source has an equal answer. An answer counts the work that it took when it was made, so that a machine is
drawn the same way with a full cache and with an empty one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Answer:
    """``fuel``: instructions that Graphviz took for it."""

    text: bytes
    fuel: int


class AnswerCache:
    """Holds at most ``room`` bytes of answers. The one that was not read for the longest time leaves first."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()
        self.size = 0  # bytes of all answers

    def get(self, source: str, fuel: int) -> Answer | None:
        """Return the answer for this source, unless it took more than ``fuel`` instructions."""
        with self._lock:
            found = self._answers.get(key := _digest(source))
            if found is None or found.fuel > fuel:
                return None
            self._answers.move_to_end(key)
            return found

    def put(self, source: str, answer: Answer) -> None:
        if len(answer.text) > self._room // 4:
            return
        with self._lock:
            previous = self._answers.pop(key := _digest(source), None)
            self._answers[key] = answer
            self.size += len(answer.text) - (len(previous.text) if previous else 0)
            while self.size > self._room:
                self.size -= len(self._answers.popitem(last=False)[1].text)

    def clear(self) -> None:
        with self._lock:
            self._answers.clear()
            self.size = 0


def _digest(source: str) -> bytes:
    return blake2b(source.encode(), digest_size=20).digest()
