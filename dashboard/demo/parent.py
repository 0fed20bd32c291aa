"""Watches the process that started the demo (``make``). The demo ends with it.

Ctrl-C in a terminal reaches both. A signal sent to ``make`` alone does not: after SIGTERM it ends us, after SIGKILL
it is gone, but after SIGINT it waits for us to end, in silence. What shows it then is that it no longer catches
SIGINT: it gives the signal back its default before it waits.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

INTERRUPT = 1 << (signal.SIGINT - 1)


class Parent:
    def __init__(self) -> None:
        self._pid = os.getppid()
        self._caught = self._catches()

    def is_ending(self) -> bool:
        return os.getppid() != self._pid or (self._caught and not self._catches())

    def _catches(self) -> bool:
        """Whether it has a handler for SIGINT; False where the system does not tell (macOS)."""
        try:
            status = Path(f"/proc/{self._pid}/status").read_text()
        except OSError:
            return False
        masks = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
        return bool(masks and int(masks[0], 16) & INTERRUPT)
