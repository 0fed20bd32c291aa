"""The data folder of a server: its lock and its socket."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from .errors import FolderInUse, ServerFailed

# The longest path a Unix socket can have, with room for the closing NUL: sun_path is 108 bytes, 104 on macOS and BSD.
LONGEST_SOCKET_PATH = 107 if sys.platform.startswith("linux") else 103
ENDING = 15.0  # seconds that processes whose owner is gone get to finish before we call the folder taken


class Lock:
    """Ours while any process that inherited ``descriptor`` lives; the server inherits it.

    So the lock tells the truth even when the process that took it was killed and its server is still writing.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ServerFailed(f"the folder {folder} cannot be used: {error.strerror}") from None
        try:
            self._take(folder)
        except BaseException:
            os.close(self.descriptor)
            raise
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self.descriptor)

    def _take(self, folder: Path) -> None:
        deadline = time.monotonic() + ENDING
        while not self._try():
            pid = self._owner()
            if pid is None or _lives(pid):
                raise FolderInUse(folder, pid)
            if time.monotonic() > deadline:
                raise FolderInUse(folder, pid, ending=True)
            time.sleep(0.05)

    def _try(self) -> bool:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise ServerFailed(f"{self.path} cannot be locked: {error.strerror}") from None
        return True

    def _owner(self) -> int | None:
        word = os.pread(self.descriptor, 32, 0).strip()
        return int(word) if word.isdigit() else None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Socket:
    """A place for the server's socket: in the folder, or in a private one where the folder's path is too long."""

    def __init__(self, folder: Path, name: str = "valkey.sock") -> None:
        self._own: str | None = None
        self.path = folder / name
        if len(os.fsencode(self.path)) > LONGEST_SOCKET_PATH:
            self._own = tempfile.mkdtemp(prefix="signalbox-")  # mode 700, and nobody can guess it
            self.path = Path(self._own) / name
        if len(os.fsencode(self.path)) > LONGEST_SOCKET_PATH:
            self.remove()
            raise ServerFailed(f"no place is short enough for a socket; set TMPDIR to one ({self.path} is too long)")
        self.path.unlink(missing_ok=True)

    def remove(self) -> None:
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)
