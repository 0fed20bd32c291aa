"""What ``make release`` writes beside the package, and the table of upgrades."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from machines import __version__
from machines.engine import data_layout
from machines.engine.connection import library
from tests.installation.packages.conftest import build
from tests.installation.packages.test_lock import locked
from tests.installation.processes import ROOT


def test_a_release_says_what_is_inside(wheel: Path, tmp_path: Path):
    sdist = build("sdist", ROOT, tmp_path)
    shutil.copy(wheel, tmp_path)
    subprocess.run([sys.executable, ROOT / ".ci" / "release", tmp_path], check=True, capture_output=True)
    text = (tmp_path / "sbom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found = {one["name"]: f"=={one['version']}" for one in json.loads(text)["components"]}
    assert found == {one.name: str(one.specifier) for one in locked("requirements.lock").values()}
    statement = json.loads((tmp_path / "attestation.intoto.json").read_text())
    assert {one["name"]: one["digest"]["sha256"] for one in statement["subject"]} == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (wheel, sdist)
    }
    assert statement["predicate"]["components"] == json.loads(text)["components"]
    said = (tmp_path / "UPGRADES.md").read_text()
    assert [line.split(" | ")[0] for line in said.splitlines() if line.startswith("| ")] == [
        "| version",
        f"| {__version__}",
    ]


def test_the_wheel_comes_with_its_sbom(tmp_path: Path):
    command = re.search(r"^wheel:.*\n\t@\.ci/build dist && (.+)$", (ROOT / "Makefile").read_text(), re.M)[1]
    name, folder, *options = command.split()
    assert folder == "dist"
    subprocess.run([sys.executable, ROOT / name, tmp_path, *options], check=True, capture_output=True)
    (file,) = tmp_path.iterdir()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read_text()) is None
    assert "cryptography" in {one["name"] for one in json.loads(file.read_text())["components"]}


@pytest.mark.pure
def test_a_release_without_a_package_is_refused(tmp_path: Path):
    done = subprocess.run([sys.executable, ROOT / ".ci" / "release", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"has no wheel and sdist of {__version__}; make release builds them" in done.stderr


@pytest.mark.pure
def test_the_table_of_upgrades_says_what_the_code_says():
    rows = re.findall(r"^\| (\d.*) \|$", (ROOT / "docs" / "releases.md").read_text(), re.M)
    version, date, number, release, pythons, djangos, _ = rows[0].split(" | ")
    assert version == __version__
    assert f"## {version} ({date})" in (ROOT / "CHANGELOG.md").read_text()
    assert (int(number), int(release)) == (data_layout.LAYOUT, library.RELEASE)
    kinds = "\n".join(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"])
    supported = re.findall(r"Python :: (3\.\d+)", kinds)
    assert pythons == f"{supported[0]} to {supported[-1]}"
    assert djangos.split(", ") == re.findall(r"Django :: (\d\.\d)", kinds)
