"""The wheel and the sdist of this checkout, and an empty environment to install them into."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.installation.processes import ROOT

IN_CI = bool(os.environ.get("CI"))
UNREACHABLE = "Failed to establish a new connection|Temporary failure in name resolution|Network is unreachable"
OF_THIS_RUN = re.compile(r"PYTHON|DJANGO_|REDIS_URL|DATABASE_URL|SIGNALBOX_|PYTEST_")


class Environment:
    """A virtual environment, and an empty folder that its programs run in."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.bin = folder / "venv" / "bin"
        subprocess.run([python, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        self._pins = folder / "pins.txt"
        pins = re.findall(r"^([\w.-]+(?:\[[\w,]+\])?==[^\s;]+)", (ROOT / "requirements.lock").read_text(), re.M)
        self._pins.write_text("\n".join(re.sub(r"\[.*\]", "", pin) for pin in pins))

    @property
    def variables(self) -> dict[str, str]:
        """The environment of this run without what would lead a program back to the checkout."""
        return {name: value for name, value in os.environ.items() if not OF_THIS_RUN.match(name)}

    def install(self, wheel: Path, extra: str = "", *others: str) -> None:
        """Install the wheel with an extra, and the versions that are tested; and others, without these versions."""
        wanted = f"signalbox[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
        for other in others:
            name = re.split(r"[~=<>]", other)[0]
            self._pins.write_text(re.sub(rf"^{name}==.*$", "", self._pins.read_text(), flags=re.M))
        command = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            self.bin / "python",
            "install",
            "-q",
            "--no-compile",
            "-c",
            self._pins,
        ]
        done = subprocess.run([*command, wanted, *others], capture_output=True, text=True)
        if done.returncode != 0 and not IN_CI and re.search(UNREACHABLE, done.stderr):
            pytest.skip("pip reaches no index here, and has not kept the packages of an earlier run")
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, *command: str | Path, code: int = 0, **variables: str) -> str:
        """Run a program of the environment; return what it said. ``code``: how it is to end."""
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.home,
            env=self.variables | variables,
            capture_output=True,
            text=True,
            timeout=600,
        )
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        return said

    def lacks(self, *modules: str) -> list[str]:
        """Return those that are not installed."""
        code = "import sys; from importlib.util import find_spec; print(*(m for m in sys.argv[1:] if not find_spec(m)))"
        return self.run("python", "-c", code, *modules).split()


def build(target: str, source: Path, into: Path) -> Path:
    """Build ``wheel`` or ``sdist`` of a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", into]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = into.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return found


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path)
