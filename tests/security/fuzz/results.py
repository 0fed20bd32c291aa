"""The result of one input."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from machines.engine import SignalboxError
from machines.engine.errors import EngineFault

#: what no answer may say: words of the Lua runtime, of Python's tracebacks, or of the library's own surprise
_RAW = re.compile(
    r"attempt to |user_function|user_script|stack traceback|bad argument #|internal: |Traceback \(most"
    r"|nonexistent global|too many results to unpack|must be strings or integers|stack overflow"
)
_PLACE = re.compile(r" script: \S*,? ?on @user_function:[0-9]+\.?$")


@dataclass
class Result:
    """``answers``: how often each answer came. ``wrong``: what breaks a promise. ``held``: for each function of the
    library, the ms its slowest call held the server."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    held: dict[str, float] = field(default_factory=dict)

    def record(self, where: str, answer: str, text: str = "") -> None:
        """Note one answer; ``text`` is what it says to people, which must not be the insides of a program."""
        self.answers[f"{where}: {answer}"] += 1
        self.check(where, text)

    def ask(self, where: str, call: Callable[[], Any]) -> Any:
        """Return what the call gives, or None. An error of the engine is an answer, unless it is a fault of the
        library."""
        try:
            found = call()
        except EngineFault as error:
            self.refuse(f"{where}: {error}"[:500])
        except SignalboxError as error:
            self.record(where, error.code, str(error))
        else:
            self.record(where, "accepted")
            return found
        return None

    def check(self, where: str, text: str) -> None:
        if found := raw(text):
            self.wrong.append(f"{where} answers in the words of the runtime: {found}")

    def refuse(self, what: str) -> None:
        self.wrong.append(what)

    @property
    def slowest(self) -> tuple[str, float]:
        return max(self.held.items(), key=lambda pair: pair[1], default=("", 0.0))


def raw(text: str) -> str:
    """The part of a text that no answer may hold, with what stands around it; empty where there is none. Where the
    server itself refuses a command, it says so in its own words and adds the place in the library."""
    text = _PLACE.sub("", text)
    found = _RAW.search(text)
    return text[max(0, found.start() - 80) : found.end() + 120] if found else ""
