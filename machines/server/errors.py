"""Errors of the supervised server. Their texts are for the person who typed the command."""

from __future__ import annotations

from pathlib import Path


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
