"""The folder ``.signalbox/``: what an installation without real servers keeps on disk.

SQLite file, generated secret key, the demo's logins, and the data of the server the demo starts. What is kept there is
kept from others. Also where templates, static files and samples are, in a checkout and in an installed package.
"""

import contextlib
import logging
import os
import secrets
import socket
import stat
from pathlib import Path
from urllib.parse import unquote

from django.core.exceptions import ImproperlyConfigured

from machines.engine.connection.redis_url import read_url

log = logging.getLogger(__name__)

NOTICES: list[str] = []


def make(folder: Path) -> Path:
    """Make the folder if it is missing. Only its owner may look inside, even if it was open before."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"the folder {folder} cannot be made ({error.strerror}); set SIGNALBOX_HOME to one that can"
        ) from None
    tighten(folder)
    return folder


def keep(path: Path, content: str) -> str:
    """Return the content of ``path``; write ``content`` first when there is no such file.

    If several processes start at once, one writes and all read the same. Mode 600 from the first byte.
    """
    make(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        if not path.exists():
            draft.touch(mode=0o600, exist_ok=False)
            draft.write_text(content + "\n", encoding="utf-8")
            _link(draft, path)
        tighten(path)
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{path} cannot be kept: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)


def _link(draft: Path, path: Path) -> None:
    """Publish the whole file in one step; the first one wins."""
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links: a rename is whole too, and then the last one wins
        draft.rename(path)


def secret_key(folder: Path) -> str:
    """Return the secret key: generated once, kept, and the same for every process of this folder."""
    kept = keep(folder / "secret_key", secrets.token_urlsafe(50))
    if len(kept) < 32:
        raise ImproperlyConfigured(f"{folder / 'secret_key'} is too short to be a key; delete it to get a new one")
    return kept


def redis_url(folder: Path) -> str:
    """Return the address of the server or cluster that runs in this folder, or Redis' own default when none does."""
    cluster = _read(folder / "cluster" / "url")
    if cluster and _is_listening(cluster):
        return cluster
    url = _read(folder / "valkey" / "url")
    running = url.startswith("unix://") and Path(unquote(url.removeprefix("unix://"))).is_socket()
    return url if running else "redis://127.0.0.1:6379/0"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _is_listening(url: str) -> bool:
    """Return whether any node of a cluster takes connections. A demo that was killed leaves its address behind."""
    for host, port in read_url(url).seeds:
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError:
            continue
        return True
    return False


PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
IS_INSTALLED = (PACKAGE / "templates").is_dir()
"""Whether this is an installed package, and not a checkout."""

TEMPLATES = (PACKAGE if IS_INSTALLED else ROOT) / "templates"
STATIC = (PACKAGE if IS_INSTALLED else ROOT) / "static"
SAMPLES = PACKAGE / "demo" / "examples" / "definitions" if IS_INSTALLED else ROOT / "examples"


def find_home() -> Path:
    """Return the folder of an installation without real servers: ``.signalbox``."""
    return (Path.cwd() if IS_INSTALLED else ROOT) / ".signalbox"


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
