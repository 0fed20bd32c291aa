"""``make`` on a machine that may have the wrong Python, and no network."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.installation.processes import ROOT

pytestmark = pytest.mark.faults

TARGETS = ("help", "demo", "test", "check", "bench", "docs", "conformance", "format", "lint", "types")


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A copy with the Makefile and its scripts, and locks that need no network."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / ".ci" / "venv", tmp_path / ".ci")
    for lock in ("requirements.lock", "requirements-dev.lock"):
        (tmp_path / lock).write_text("# nothing\n")
    return tmp_path


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """A virtual environment, made once: that takes seconds."""
    folder = tmp_path_factory.mktemp("prepared")
    subprocess.run([sys.executable, "-m", "venv", folder / ".venv"], check=True)
    return folder / ".venv"


@pytest.fixture
def installed(checkout, prepared) -> Path:
    """A checkout whose .venv is there, with nothing of ours in it."""
    shutil.copytree(prepared, checkout / ".venv", symlinks=True, copy_function=os.link)
    return checkout


def install(checkout: Path, what: str = "requirements.txt", **variables: str) -> subprocess.CompletedProcess:
    env = {"PATH": os.environ["PATH"], "HOME": str(checkout), "PIP_NO_INDEX": "1"} | variables
    return subprocess.run(
        [checkout / ".ci" / "venv", what], env=env, capture_output=True, text=True, check=False, timeout=50
    )


def fake_python(folder: Path, name: str, version: str) -> Path:
    """A program that answers as a Python of another version would."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f'#!/bin/sh\n[ "$1" = -V ] && echo "Python {version}" && exit 0\nexit 1\n')
    program.chmod(0o755)
    return program


def test_help_explains_every_target():
    shown = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True).stdout
    for target in TARGETS:
        assert re.search(rf"make {target} +\w", shown), target


def test_every_target_is_phony():
    text = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split())
    assert phony == set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))


def test_a_python_that_is_too_old_is_refused_by_name(checkout):
    old = fake_python(checkout / "bin", "python3.9", "3.9.2")
    done = install(checkout, PYTHON=str(old))
    assert done.returncode == 1
    assert f"Python 3.11 or later is needed; PYTHON={old} is Python 3.9.2" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_python_that_is_not_there_is_refused_by_name(checkout):
    done = install(checkout, PYTHON="/no/such/python")
    assert (done.returncode, done.stderr) == (1, "signalbox: PYTHON=/no/such/python is no program.\n")


def test_a_machine_with_an_old_python_only_hears_what_to_do(checkout):
    for name in ("python", "python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        fake_python(checkout / "bin", name, "3.8.1")
    done = install(checkout, PATH=f"{checkout / 'bin'}:/usr/bin:/bin")
    assert done.returncode == 1
    assert "Python 3.11 or later is needed; here is Python 3.8.1" in done.stderr
    assert "make PYTHON=/path/to/python3.11" in done.stderr


def test_requirements_are_installed_once_and_again_when_they_change(installed):
    assert "installing requirements.lock" in install(installed).stderr
    assert install(installed).stderr == "", "nothing changed, nothing is done"
    (installed / "requirements.lock").write_text("# changed\n")
    assert "installing requirements.lock" in install(installed).stderr


def test_what_the_tests_need_covers_what_the_demo_needs(installed):
    assert "installing requirements-dev.lock" in install(installed, "requirements-dev.txt").stderr
    assert install(installed, "requirements.txt").stderr == ""


def test_an_installation_that_fails_is_tried_again(installed):
    (installed / "requirements.lock").write_text(f"no-such-package-anywhere==1 --hash=sha256:{'0' * 64}\n")
    for _ in range(2):
        done = install(installed)
        assert done.returncode == 1
        assert "the requirements could not be installed" in done.stderr


def test_what_has_no_hash_or_another_one_is_not_installed(installed):
    """As pip makes a wheel of it, so that no network is needed."""
    wheel = installed / "nothing-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("nothing-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: nothing\nVersion: 1\n")
        file.writestr("nothing-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\nRoot-Is-Purelib: true\n")
        file.writestr("nothing-1.dist-info/RECORD", "")
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for hashes, code in (("", 1), (f" --hash=sha256:{'0' * 64}", 1), (f" --hash=sha256:{right}", 0)):
        (installed / "requirements.lock").write_text(f"nothing==1{hashes}\n")
        done = install(installed, PIP_FIND_LINKS=str(installed))
        assert done.returncode == code, done.stderr


def test_a_broken_virtual_environment_is_made_anew(installed):
    (installed / ".venv" / "bin" / "python").unlink()
    assert "making it anew" in install(installed).stderr
    assert (installed / ".venv" / "bin" / "python").exists()
