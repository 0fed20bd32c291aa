"""The Dockerfile: known instructions, sources that are there, nothing that can build in the last stage, not root."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import yaml

from . import files

pytestmark = pytest.mark.pure
KNOWN = {
    "ARG",
    "FROM",
    "ENV",
    "WORKDIR",
    "RUN",
    "COPY",
    "USER",
    "EXPOSE",
    "HEALTHCHECK",
    "STOPSIGNAL",
    "ENTRYPOINT",
    "CMD",
}


def test_it_has_two_stages_of_one_interpreter_and_known_instructions():
    assert {word for word, _ in files.instructions()} <= KNOWN
    first, last = files.stages()
    assert first[0] == ("FROM", "${PYTHON_IMAGE} AS build")
    assert last[0] == ("FROM", "${PYTHON_IMAGE}")
    assert files.instructions()[0] == ("ARG", "PYTHON_IMAGE=python:3.11-slim-bookworm")


def test_what_it_copies_is_there_or_made_by_make_wheel_and_goes_to_the_builder():
    sent = [line[1:] for line in files.read("Dockerfile.dockerignore").splitlines() if line.startswith("!")]
    copied = []
    for word, rest in files.instructions():
        if word == "COPY" and not rest.startswith("--from="):
            copied += rest.split()[:-1]
    assert sorted(sent) == sorted(copied) == ["dist/signalbox-*.whl", "requirements.lock"]
    assert (files.ROOT / "requirements.lock").is_file()


def test_each_package_of_the_lock_is_held_to_its_hash_and_none_is_built():
    (install,) = [rest for word, rest in files.stages()[0] if word == "RUN" and "-r requirements.lock" in rest]
    assert {"--require-hashes", "--only-binary"} <= set(install.split())


def test_the_last_stage_installs_nothing_and_is_not_root():
    last = files.stages()[-1]
    runs = " ".join(rest for word, rest in last if word == "RUN")
    assert not re.search(r"apt-get|pip install|curl|wget|gcc|make ", runs)
    assert "pip uninstall --yes setuptools wheel pip" in runs
    words = [word for word, _ in last]
    assert words.index("USER") > words.index("COPY")
    user, group = dict(last)["USER"].split(":")
    assert int(user) == int(group) > 999
    assert f"--uid {user}" in runs


def test_its_entry_is_the_script_and_its_health_check_is_python_that_parses():
    last = dict(files.stages()[-1])
    assert yaml.safe_load(last["ENTRYPOINT"]) == ["signalbox"]
    python, option, code = yaml.safe_load(last["HEALTHCHECK"].partition("CMD ")[2])
    assert (python, option) == ("python", "-c")
    compile(code, "HEALTHCHECK", "exec")


def test_a_builder_finds_nothing_to_complain_of():
    """Where Docker's builder is installed; a daemon is not needed for that."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "buildx", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker buildx is not installed here")
    command = [docker, "buildx", "build", "--check", "--file", "deploy/Dockerfile", "."]
    done = subprocess.run(command, cwd=files.ROOT, capture_output=True, text=True, check=False)
    if "Cannot connect to the Docker daemon" in done.stderr:
        pytest.skip("no Docker daemon runs here")
    assert done.returncode == 0, done.stdout + done.stderr
