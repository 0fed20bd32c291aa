"""Keeps the output of a child process in a file of bounded size."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import IO

LARGEST = 1_000_000  # bytes; then the file becomes ``.1`` and a new one begins
LAST_LINES = 12


class Output:
    """Copies lines from ``source`` to ``path`` in a thread of its own, until the source ends."""

    def __init__(self, source: IO[bytes], path: Path) -> None:
        self.path = path
        self._source = source
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._thread = threading.Thread(target=self._copy, name=f"output-{path.stem}", daemon=True)
        self._thread.start()

    def last_words(self) -> str:
        """The last lines; all of them once the source has ended."""
        return "\n".join(self._last)

    def close(self) -> None:
        """Waits for what is still on its way. Call it when the process is gone."""
        self._thread.join(timeout=5)
        self._source.close()

    def _copy(self) -> None:
        file = self.path.open("ab")
        try:
            for line in self._source:
                self._last.append(line.decode(errors="replace").rstrip())
                if file.tell() > LARGEST:
                    file.close()
                    self.path.replace(self.path.with_suffix(".log.1"))
                    file = self.path.open("ab")
                file.write(line)
                file.flush()
        finally:
            file.close()
