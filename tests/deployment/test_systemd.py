"""The systemd units: read by systemd itself, confined, and stopped in order."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from . import files
from .tools import find

pytestmark = pytest.mark.pure
MOST_EXPOSED = 20  # of 100, as `systemd-analyze security` counts; a unit without any of the lines has 96
LONG_RUNNING = files.UNITS[len(files.ONCE) :]


@pytest.fixture
def installed(tmp_path: Path) -> list[str]:
    """The units as systemd finds them, with programs that exist, and one instance of the template."""
    found = []
    for name in (*files.UNITS, "signalbox.target"):
        text = files.read(f"systemd/{name}").replace("/opt/signalbox/bin/signalbox", "/bin/true")
        (tmp_path / name).write_text(text, encoding="utf-8")
        if name.endswith("@.service"):
            name = name.replace("@", "@1")
            (tmp_path / name).write_text(text, encoding="utf-8")
        found.append(str(tmp_path / name))
    return found


def analyze(*words: str) -> None:
    done = subprocess.run([find("systemd-analyze"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line for line in done.stderr.splitlines() if "signalbox" in line]
    assert said == []


def test_systemd_reads_the_units(installed):
    analyze("verify", "--man=no", *installed)


def test_the_units_expose_little(installed):
    for path in installed:
        if path.endswith(".service"):
            analyze("security", "--offline=yes", f"--threshold={MOST_EXPOSED}", "--no-pager", path)


@pytest.mark.parametrize("name", files.UNITS)
def test_each_unit_is_confined_and_reads_its_secrets_from_files(name):
    found = files.unit(name)
    assert found["ProtectSystem"] == ["strict"]
    assert found["NoNewPrivileges"] == ["yes"]
    assert found["User"] == found["Group"] == ["signalbox"]
    assert found["EnvironmentFile"] == ["/etc/signalbox/signalbox.env"]
    loaded = {line.partition(":")[0] for line in found["LoadCredential"]}
    assert set(re.findall(r"%d/(\w+)", " ".join(found["Environment"]))) == loaded
    assert files.environment_file()["SIGNALBOX_HOME"] == f"/var/lib/{found['StateDirectory'][0]}"
    assert "u signalbox " in files.read("systemd/sysusers.conf")


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_a_signal_goes_to_the_main_process_alone(name):
    """A worker that gets a second TERM hands its jobs back at once."""
    found = files.unit(name)
    assert found["KillMode"] == ["mixed"]
    assert found["Restart"] == ["always"]
    assert found["Requires"] == ["signalbox-migrate.service"]
    assert set(files.ONCE) <= set(found["After"][0].split())
    assert "signalbox-library.service" in found["Wants"][0].split(), "it goes on without, and says what is missing"
    assert found["PartOf"] == found["WantedBy"] == ["signalbox.target"]


def test_all_units_are_confined_alike():
    def confinement(name: str) -> dict[str, list[str]]:
        return {
            key: value
            for key, value in files.unit(name).items()
            if key.startswith(("Protect", "Restrict", "Private", "System", "Capab"))
        }

    first, *others = (confinement(name) for name in files.UNITS)
    assert all(other == first for other in others)
    assert len(first) > 15
