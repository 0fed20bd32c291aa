"""Restricts the SQLite database, the secret key and their folder to their owner.

What is made anew has the right mode from its first byte. What is there already, from a former release or a copy, is
tightened, and ``NOTICES`` says so: settings are read before the log is set up, so ``log_notices`` writes them down
later. No owner is changed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from pathlib import Path

log = logging.getLogger(__name__)

NOTICES: list[str] = []
SQLITE_FILES = ("", "-wal", "-shm", "-journal")
"""Endings of the files of one database. SQLite gives those it makes itself the mode of the first."""


def database(path: Path) -> None:
    """Make the file of an SQLite database if there is none, with mode 600; tighten all its files. A file that cannot be
    made is left to SQLite, which reports it when it is opened."""
    with contextlib.suppress(OSError):  # it is there, or cannot be
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for ending in SQLITE_FILES:
        tighten(path.with_name(path.name + ending))


def tighten(path: Path) -> None:
    """Take from others what they may do with a file or a folder, and from its group unless the group may write: then it
    is shared on purpose. Opens nothing: a process that closes an SQLite file loses its locks on it."""
    try:
        found = path.stat()
        mode = stat.S_IMODE(found.st_mode)
        wanted = mode & ~(0o007 if mode & stat.S_IWGRP else 0o077)
        if mode == wanted or mode & stat.S_ISVTX:
            return
        if os.geteuid() not in (0, found.st_uid):
            _add_notice(f"{path} has mode {mode:o} and belongs to another account, who has to make it {wanted:o}")
            return
        os.chmod(path, wanted)
    except FileNotFoundError:
        return
    except OSError as error:
        _add_notice(f"{path} cannot be kept from others: {error.strerror}")
    else:
        _add_notice(f"{path} had mode {mode:o}, open to others on this machine; it has {wanted:o} now")


def _add_notice(notice: str) -> None:
    if notice not in NOTICES:
        NOTICES.append(notice)


def log_notices() -> None:
    while NOTICES:
        log.warning("%s", NOTICES.pop(0))
