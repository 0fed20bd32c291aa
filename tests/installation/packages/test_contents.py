"""The wheel holds every file of the product and nothing else, and the sdist builds the same wheel."""

from __future__ import annotations

import email
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import machines
from tests.installation.packages.conftest import build
from tests.installation.processes import ROOT

MOVED = {"templates/": "dashboard/templates/", "static/": "dashboard/static/"}
SAMPLES = "dashboard/demo/examples/definitions/"


def list_files() -> list[str]:
    """List the files of the checkout that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this is no git checkout: nothing says which files belong to it")
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def expected() -> set[str]:
    """Names in the wheel, by the files of the checkout."""
    found = set()
    for name in list_files():
        if name.startswith(("machines/", "dashboard/")):
            found.add(name)
        elif name.startswith(tuple(MOVED)):
            top, _, rest = name.partition("/")
            found.add(MOVED[f"{top}/"] + rest)
        elif re.fullmatch(r"examples/(((drafts|rollouts|coverage|schedules)/)?\w+\.json|tests/\w+\.yaml)", name):
            found.add(SAMPLES + name.removeprefix("examples/"))
        elif name.startswith("examples/project_template/"):
            found.add(f"dashboard/demo/{name}")
    return found


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_file_of_the_product_and_nothing_else(wheel: Path):
    found = {name for name in names(wheel) if ".dist-info/" not in name}
    assert found == expected()
    assert {name.partition("/")[0] for name in found} == {"machines", "dashboard"}
    assert {"machines/py.typed", "dashboard/py.typed", "machines/engine/definitions/schema.json"} <= found
    for ending in (".lua", ".html", ".css", ".js", ".svg", ".json"):
        assert any(name.endswith(ending) for name in found), ending


def test_what_the_package_says_of_itself(wheel: Path):
    assert wheel.name == f"signalbox-{machines.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        folder = f"signalbox-{machines.__version__}.dist-info"
        meta = email.message_from_string(archive.read(f"{folder}/METADATA").decode())
        points = archive.read(f"{folder}/entry_points.txt").decode()
        assert f"{folder}/licenses/LICENSE" in archive.namelist()
    assert (meta["Name"], meta["Version"], meta["License-Expression"]) == ("signalbox", machines.__version__, "MIT")
    assert "signalbox = machines.cli:main" in points
    assert "[pytest11]" in points


def test_the_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path):
    sdist = build("sdist", ROOT, tmp_path)
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
        archive.extractall(tmp_path)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    (tmp_path / "again").mkdir()
    assert names(build("wheel", folder, tmp_path / "again")) == names(wheel)


@pytest.mark.pure
def test_the_version_is_written_in_one_place():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert not re.search(r"^version *=", text, re.M)
    found = []
    for folder in ("machines", "dashboard"):
        for path in (ROOT / folder).rglob("*.py"):
            if re.search(rf"[\"']{re.escape(machines.__version__)}[\"']", path.read_text(encoding="utf-8")):
                found.append(str(path.relative_to(ROOT)))
    assert found == ["machines/__init__.py"]
