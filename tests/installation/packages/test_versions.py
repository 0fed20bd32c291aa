"""The essential part of the suite on each further Python that this machine has, with a further Django.

The suite itself runs on one Python and the locked Django. Here the wheel is installed as a user would, which shows that
pip finds a set of versions at all, and then migrations, worker and tasks are tested there. On the oldest and the newest
Django checks, pages and model field are tested as well, and a project of the template is made, tested, worked in and
served as the docs say.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.installation.packages.conftest import Environment
from tests.installation.packages.test_template import Project, play
from tests.installation.processes import ROOT

RELEASES = {"3.11": "5.2", "3.12": "6.0", "3.13": "6.1", "3.14": "6.1"}
"""Python -> the Django that is tried on it."""
TOOLS = ("pytest-django==4.14.0", "pytest-asyncio==1.5.0", "pytest-timeout==2.4.0", "hypothesis==6.170.15")
TASKS = "tests/integrations/tasks"
HEADERS = "tests/security/requests/test_headers.py"
ESSENTIAL = (
    "tests/installation/test_migrations.py",
    *(f"{TASKS}/test_{name}.py" for name in ("backend", "checks", "payloads", "results", "worker")),
)
AT_THE_ENDS = (
    "tests/engine/aio/test_surface.py",
    "tests/catalog/studio/test_checking.py",
    "tests/integrations/binding/test_field.py",
    "tests/integrations/binding/test_protection.py",
    f"{HEADERS}::test_every_address_answers_with_all_of_them_whatever_it_answers[supervisor]",
    f"{HEADERS}::test_errors_static_files_and_the_admin_too",
)
BETWEEN = (f"{TASKS}/test_page.py",)
"""Tried where no project of the template plays: on the first Django with tasks of its own."""
DIFFERENT = {
    "DummyBackendTestCase::test_refresh_result",
    "DummyBackendTestCase::test_refresh_result_async",
    "ImmediateBackendTestCase::test_cannot_get_result",
    "ImmediateBackendTestCase::test_cannot_pass_run_after",
    "ImmediateBackendTestCase::test_cannot_refresh_result",
}
"""Tests of Django that only its own two backends pass: docs/tasks.md says why."""
BUILDER = """
import os, pathlib
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    (made := pathlib.Path(folder, "django.dist-info")).mkdir()
    made.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\\nName: django\\nVersion: {os.environ['DJANGO']}\\n")
    return made.name
"""
"""Stands for setuptools, which would be installed and read all files of Django before pip keeps them."""
Say = Callable[[str, object], None]


def find_python(version: str) -> str:
    """Find a Python on PATH or of pyenv. Skips the test where there is none, or it is the one that runs."""
    if version == f"3.{sys.version_info[1]}":
        pytest.skip(f"Python {version} runs the whole suite")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for folder in (*os.environ["PATH"].split(os.pathsep), *pyenv.glob(f"versions/{version}*/bin")):
        program = Path(folder) / f"python{version}"
        if program.exists() and subprocess.run([program, "-c", "import venv"], capture_output=True).returncode == 0:
            return str(program)
    pytest.skip(f"this machine has no Python {version}, so nothing was tested on it")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", RELEASES)
def test_what_is_essential_holds_on_python(
    version: str, wheel: Path, tmp_path: Path, redis_url: str, prefix: str, record_property: Say
):
    environment = Environment(tmp_path, find_python(version))
    environment.install(wheel, "demo,test", f"django~={RELEASES[version]}.0", *TOOLS)
    django = environment.run("python", "-m", "django", "--version").strip()
    between = RELEASES[version] == "6.0"
    paths = [f"{ROOT}/{path}" for path in (*ESSENTIAL, *(BETWEEN if between else AT_THE_ENDS))]
    command = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    said = environment.run(*command, f"--rootdir={ROOT}", "-c", ROOT / "pyproject.toml", *paths, PYTHONPATH=str(ROOT))
    ran = f"Django {django} on Python {version}: {summarize(said)}"
    if RELEASES[version] != "5.2":
        variables = {"REDIS_URL": redis_url, "SIGNALBOX_PREFIX": prefix, "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
        tests = fetch_djangos_tests(environment, django)
        said = environment.run(*command, "-p", "no:signalbox", tests, code=1, PYTHONPATH=str(ROOT), **variables)
        assert set(re.findall(r"^(?:SUB)?FAILED.*?\.py::(\S+)", said, re.M)) == DIFFERENT, said
        ran += f"; of its own tests of tasks {summarize(said)}"
    if not between:
        packages = Path(environment.run("python", "-c", "import machines; print(machines.__path__[0])").strip()).parent
        play(Project(packages, environment.home, redis_url, prefix, environment.bin / "python"))
        ran += "; the template's project plays"
    record_property("ran on", ran)


def summarize(said: str) -> str:
    """Return the last line of pytest: how many passed, in how many seconds."""
    return re.findall(r"^\d+ (?:passed|failed).* in [\d.]+s", said, re.M)[-1]


def fetch_djangos_tests(environment: Environment, django: str) -> Path:
    """Unpack ``tests/tasks`` of Django's source, with Signalbox in the place of its two backends."""
    folder, python = environment.home, environment.bin / "python"
    builder = folder / "builder/setuptools"
    builder.mkdir(parents=True)
    (builder / "build_meta.py").write_text(BUILDER)
    command = [sys.executable, "-m", "pip", "--python", python, "download", "-q", "--no-deps", "--no-binary=django"]
    command += ["--no-build-isolation", "-d", folder, f"django=={django}"]
    found = os.environ | {"PYTHONPATH": str(builder.parent), "DJANGO": django}
    subprocess.run(command, check=True, capture_output=True, env=found)
    with tarfile.open(folder / f"django-{django}.tar.gz") as source:
        inside = f"django-{django}/tests/tasks/"
        source.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
        source.extractall(folder, [one for one in source if one.name.startswith(inside)])
    for file in (folder / inside).glob("test_*.py"):
        backends = "tests.integrations.tasks.djangos_backends"
        file.write_text(re.sub(r"django\.tasks\.backends\.(dummy|immediate)", backends, file.read_text()))
    return folder / inside
