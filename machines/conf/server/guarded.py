"""Runs a command that never outlives this process."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

GUARDIAN = Path(__file__).with_name("guardian.py")


class GuardedProcess:
    """Starts ``command`` under a guardian.

    ``grace``: seconds it gets to end after SIGTERM. ``keep``: descriptors it inherits. It runs in a session of its
    own, so a Ctrl-C in our terminal does not reach it: we decide when it ends. ``returncode`` is the command's,
    or 128 plus the number of the signal that ended it.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        grace: float = 10.0,
        keep: Sequence[int] = (),
        output: int | IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.command = [str(word) for word in command]
        self.grace = grace
        lifeline, self._hold = os.pipe()
        guard = [sys.executable, "-I", "-S", str(GUARDIAN), str(lifeline), str(os.getpid()), str(grace)]
        try:
            self._process = subprocess.Popen(
                [*guard, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT if output is not None else None,
                pass_fds=(lifeline, *keep),
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._hold)
            raise
        finally:
            os.close(lifeline)

    @property
    def pid(self) -> int:
        """The guardian's process id."""
        return self._process.pid

    @property
    def output(self) -> IO[bytes] | None:
        """What the command writes, when ``output=subprocess.PIPE``."""
        return self._process.stdout

    def poll(self) -> int | None:
        """Return the return code, or None while it runs."""
        return self._process.poll()

    def ask(self) -> None:
        """Tell it to end, and do not wait. Asking twice is fine."""
        hold, self._hold = self._hold, -1
        if hold >= 0:
            with contextlib.suppress(OSError):
                os.close(hold)

    def stop(self) -> int:
        """End it and wait until it is gone: at most ``grace`` seconds and a little. Returns its code."""
        self.ask()
        try:
            return self._process.wait(self.grace + 5)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the kernel then ends the command
            return self._process.wait()
