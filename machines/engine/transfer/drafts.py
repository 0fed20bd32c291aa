"""Writes a file under another name beside it, and moves it there when it is whole."""

import fcntl
import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from machines.engine.errors import BadInput


@contextmanager
def open_draft(path: Path) -> Iterator[Path]:
    """Yield a path beside ``path`` for the body to write. It takes the place of ``path`` at the end of the body, and is
    removed where the body fails.

    A run holds the lock of its draft, which the system releases when the process is killed. The next run removes such
    drafts; it raises BadInput while another run writes ``path``.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    with lock_folder(path.parent):  # a draft that has no lock yet is not taken for one of a killed run
        _remove_abandoned(path)
        lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
        os.close(lock)


@contextmanager
def lock_folder(folder: Path) -> Iterator[int]:
    """Wait until no other process or thread has the lock of the folder; yield its descriptor."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _remove_abandoned(path: Path) -> None:
    """Remove the drafts of runs that were killed."""
    for found in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 12}.part"):
        with suppress(FileNotFoundError), found.open("rb+") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInput(f"another run writes {path} at the moment: wait for it, or give another name") from None
            found.unlink()
