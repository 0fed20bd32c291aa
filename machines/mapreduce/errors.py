"""Errors of a run, beside those of the engine.

::

    SignalboxError
    ├── BadInput
    │   └── UnregisteredFunction   no worker may run it
    ├── AlreadyStarted             items come too late
    ├── NotFinished                no result yet
    └── RunFailed                  no result, and none to come unless the run is tried again
        ├── MapFailed              ``chunk`` names the chunk
        └── ReduceFailed
"""

from __future__ import annotations

from typing import Any

from machines.engine.errors import BadInput, SignalboxError


class UnregisteredFunction(BadInput):
    code = "SB470"


class AlreadyStarted(SignalboxError):
    code = "SB471"

    def __init__(self, run: str, state: str) -> None:
        self.run = run
        super().__init__(
            f"run {run} is {state}: it takes no more items (those of a call that was still adding when the run was "
            f"started may or may not be part of it)"
        )

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"run": self.run}


class NotFinished(SignalboxError):
    """``done`` of ``total`` chunks are mapped."""

    code = "SB472"

    def __init__(self, run: str, state: str, done: int, total: int) -> None:
        self.run = run
        self.done = done
        self.total = total
        hint = "; call map() first" if state == "collecting" else ""
        super().__init__(f"run {run} is {state}: {done} of {total} chunks are mapped{hint}")

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"run": self.run, "done": self.done, "total": self.total}


class RunFailed(SignalboxError):
    """``error`` and ``kind``: text and class of the last attempt's exception; ``chunk``: where, if it was a map."""

    code = "SB473"

    def __init__(self, run: str, error: str, kind: str = "", chunk: int | None = None) -> None:
        self.run = run
        self.error = error
        self.kind = kind
        self.chunk = chunk
        what = f"run {run} failed" if chunk is None else f"chunk {chunk} of run {run} failed"
        super().__init__(f"{what}: {kind}: {error}" if kind else f"{what}: {error}")

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"run": self.run, "error": self.error, "kind": self.kind, "chunk": self.chunk}


class MapFailed(RunFailed):
    code = "SB474"


class ReduceFailed(RunFailed):
    code = "SB475"
