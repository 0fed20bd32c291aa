"""``python -m tests.mutations``: put each fault into a copy of the checkout, run tests, and print which noticed it.

    python -m tests.mutations                 # all of them, some seconds to a minute each; prints a table in Markdown
    python -m tests.mutations "LTRIM" hub.py  # those whose file or text has one of these words
    python -m tests.mutations --check         # only look whether each fault still fits the code

A fault is noticed when a test fails. The tests of its own folder come first, and the run ends with the first failure.
"""

# ruff: noqa: T201  a command prints
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]
SURVIVED = "**nothing**"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--processes", default="2")
    given = parser.parse_args()
    chosen = [fault for fault in FAULTS if not given.words or any(word in str(fault) for word in given.words)]
    missing = [fault for fault in chosen if not fault.fits(ROOT)]
    for fault in missing:
        print(f"does not fit any more: {fault.file}: {fault.old}")
    if given.check or missing:
        return len(missing)
    survivors = 0
    print("| fault | where | noticed by |\n|---|---|---|")
    with copy_checkout() as copy:
        for fault in chosen:
            noticed = try_fault(fault, copy, given.processes)
            survivors += noticed == SURVIVED
            print(f"| {fault.what} | `{Path(fault.file).name}` | {noticed} |", flush=True)
    return survivors


@contextmanager
def copy_checkout() -> Iterator[Path]:
    """Yield a work tree of the current commit with the same virtual environment."""
    with tempfile.TemporaryDirectory(prefix="signalbox-mutations-") as folder:
        copy = Path(folder) / "checkout"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(copy)], check=True)
        try:
            (copy / ".venv").symlink_to(ROOT / ".venv")
            yield copy
        finally:
            subprocess.run([*git, "remove", "--force", str(copy)], check=True)


def try_fault(fault: Fault, copy: Path, processes: str) -> str:
    """Return which kind of run noticed the fault, with the test that failed first."""
    file = copy / fault.file
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace(fault.old, fault.new), encoding="utf-8")
    try:
        for kind, options in (("make test", ["--quick"]), (f"`-m {fault.slow}`", ["-m", fault.slow])):
            if options[-1] and (found := run_tests(copy, [*options, *fault.tests], processes)):
                return f"{kind}: `{found}`"
        return SURVIVED
    finally:
        file.write_text(before, encoding="utf-8")


def run_tests(copy: Path, options: list[str], processes: str) -> str:
    """Return the first test that failed, "" where all passed or none was selected."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", processes, "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode in (0, 5):
        return ""
    return failed[0].removeprefix("tests/") if failed else f"exit {done.returncode}"


if __name__ == "__main__":
    sys.exit(main())
