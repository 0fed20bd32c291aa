"""Command lines that start this program once more, from a checkout and from an installed package."""

import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "cli.py"


def list_command(*words: str) -> list[str]:
    """Return the command line of ``signalbox`` with these words. It needs neither ``manage.py`` nor a folder.

    -P: the folder of the program, which has a module ``statistics``, must not come before the standard library.
    """
    return [sys.executable, "-P", str(PROGRAM), *words]


def list_restart_command(*words: str) -> list[str]:
    """Return the command line of this process with other words: by the ``manage.py`` or script that it was started by,
    since modules of a project are found from there."""
    started = Path(sys.argv[0])
    if not started.is_file() or started.resolve() == PROGRAM.resolve():
        return list_command(*words)
    return [sys.executable, sys.argv[0], *words]
