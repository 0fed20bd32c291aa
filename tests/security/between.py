"""What happens between two calls of one process to the functions library, at exactly that point.

The clock of each function is set, so that what was looked at and what is done see times of their own; and another
connection may act right before a function is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from machines.engine.connection.calls import Caller

NOW_AT = {"sb_fire": 7, "sb_explain": 3}  # which of its arguments is the time


class Between:
    """``clock``: function -> ms it is given as the time; ``before``: function -> what to do once, right before it is
    called for the first time. ``sent``: how often each function was called since."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock: dict[str, int] = {}
        self.before: dict[str, Callable[[], Any]] = {}
        self.sent: Counter[str] = Counter()
        call, many, stream = Caller.call, Caller.many, Caller.stream

        def called(caller: Caller, function: str, root: Any, *args: Any) -> Any:
            return call(caller, function, root, *self._args(function, args))

        def called_many(caller: Caller, calls: Any, also: Any = ()) -> Any:
            given = [(function, root, self._args(function, args)) for function, root, args in calls]
            return many(caller, given, also)

        def streamed(caller: Caller, calls: Any) -> Any:
            return stream(caller, ((function, root, self._args(function, args)) for function, root, args in calls))

        monkeypatch.setattr(Caller, "call", called)
        monkeypatch.setattr(Caller, "many", called_many)
        monkeypatch.setattr(Caller, "stream", streamed)

    def _args(self, function: str, args: Any) -> tuple[Any, ...]:
        self.sent[function] += 1
        if meanwhile := self.before.pop(function, None):
            meanwhile()
        if function not in self.clock:
            return tuple(args)
        at = NOW_AT[function]
        words = [*args, *[""] * (at + 1 - len(args))]
        words[at] = self.clock[function]
        return tuple(words)
