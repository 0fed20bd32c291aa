"""The folder ``.signalbox/``: what an installation without real servers keeps on disk.

SQLite file, generated secret key, the demo's logins, and the data of the server the demo starts.
"""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path
from urllib.parse import unquote

from django.core.exceptions import ImproperlyConfigured

from machines.engine.connection.redis_url import read_url

from . import private_files


def make(folder: Path) -> Path:
    """Make the folder if it is missing. Only its owner may look inside, even if it was open before."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"the folder {folder} cannot be made ({error.strerror}); set SIGNALBOX_HOME to one that can"
        ) from None
    private_files.tighten(folder)
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
        private_files.tighten(path)
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
