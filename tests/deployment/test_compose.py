"""compose.yaml: confined containers, secrets by files, an order of start, stores that nobody else reaches."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from dashboard.site import stores

from . import files
from .tools import find

pytestmark = pytest.mark.pure
FIELDS = {
    "build", "cap_drop", "command", "depends_on", "environment", "healthcheck", "image", "init", "logging", "networks",
    "ports", "read_only", "restart", "secrets", "security_opt", "shm_size", "stop_grace_period", "tmpfs", "user",
    "volumes",
}  # fmt: skip
SERVICES = files.compose()["services"]


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """What make-secrets writes."""
    for name in ("make-secrets", "redis"):
        source = files.DEPLOY / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    subprocess.run(["sh", tmp_path / "make-secrets"], check=True)
    return tmp_path / "secrets"


def test_each_service_is_confined():
    for name, service in SERVICES.items():
        assert set(service) <= FIELDS, name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service, name
        assert "healthcheck" in service or name == "web", f"{name}: the image's own asks a port"


def test_what_is_named_is_declared():
    document = files.compose()
    for name, service in SERVICES.items():
        for secret in service.get("secrets", ()):
            assert (secret if isinstance(secret, str) else secret["source"]) in document["secrets"], name
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in document["volumes"] or (files.DEPLOY / source).exists(), volume
        assert set(service["networks"]) <= set(document["networks"]), name
        assert set(service.get("depends_on", ())) <= set(SERVICES), name
        for key, value in service.get("environment", {}).items():
            if key.endswith("_FILE"):
                assert Path(value).parent == Path("/run/secrets"), name
                assert Path(value).name in service["secrets"], f"{name} has no secret for {key}"


def test_stores_are_up_and_library_and_tables_made_before_the_product_starts():
    assert SERVICES["migrate"]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    for name in ("web", "worker"):
        needs = SERVICES[name]["depends_on"]
        for once in ("library", "migrate"):
            assert needs[once] == {"condition": "service_completed_successfully"}, name
        assert needs["redis"] == {"condition": "service_healthy"}, name


def test_only_the_site_has_a_port_and_only_for_this_machine():
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"web": ["127.0.0.1:8000:8000"]}
    assert files.compose()["networks"]["stores"] == {"internal": True}
    assert {name for name, each in SERVICES.items() if each["networks"] == ["stores"]} == {
        "redis",
        "postgres",
        "library",
        "migrate",
    }


def test_each_secret_is_written_once_for_its_owner(secrets):
    declared = {Path(each["file"]).name for each in files.compose()["secrets"].values()}
    assert declared <= {path.name for path in secrets.iterdir()}
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    assert len((secrets / "secret_key").read_text()) >= 50
    before = {path.name: path.read_text() for path in secrets.iterdir()}
    subprocess.run(["sh", secrets.parent / "make-secrets"], check=True)
    assert {path.name: path.read_text() for path in secrets.iterdir()} == before


def test_the_addresses_of_the_stores_are_those_of_services(secrets):
    for account in ("deploy", "web", "worker"):
        found = re.fullmatch(
            rf"redis://signalbox-{account}:([0-9a-f]{{64}})@redis:6379/0",
            (secrets / f"redis_url_{account}").read_text(),
        )
        assert found, account
        assert found[1] not in (secrets / "users.acl").read_text(), "only its digest"
    database = stores.database((secrets / "database_url").read_text(), secrets)
    given = SERVICES["postgres"]["environment"]
    assert (database["HOST"], database["USER"], database["NAME"]) == (
        "postgres",
        given["POSTGRES_USER"],
        given["POSTGRES_DB"],
    )
    assert database["PASSWORD"] == (secrets / "postgres_password").read_text()


def test_it_fits_the_schema_of_compose():
    check = find("check-jsonschema")
    command = [check, "--builtin-schema", "vendor.compose-spec", str(files.DEPLOY / "compose.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_docker_reads_it(secrets):
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed here")
    command = [docker, "compose", "--file", str(files.DEPLOY / "compose.yaml"), "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
