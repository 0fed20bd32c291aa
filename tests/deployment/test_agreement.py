"""What the files of ``deploy/`` say agrees with the product: variables, options, paths, ports, times, versions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.conf import settings
from django.core.management import load_command_class
from django.urls import resolve

import machines
from dashboard.serving import admission, server
from dashboard.site import environment
from machines import cli
from machines.worker import supervisor
from tests.cases import for_each

from . import files
from .files import Process

pytestmark = pytest.mark.pure
APPS = {"serve": "dashboard", "worker": "machines", "migrate": "django.core", "library": "machines"}
OF_PYTHON = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PATH", "PIP_NO_CACHE_DIR", "PIP_DISABLE_PIP_VERSION_CHECK"}
PORT = 8000
each = for_each("process", files.processes)


def options(process: Process) -> dict[str, Any]:
    parser = load_command_class(APPS[process.command], process.command).create_parser("signalbox", process.command)
    return vars(parser.parse_args(process.arguments[1:]))


@each
def test_each_process_is_started_by_a_command_with_options_that_it_has(process):
    parsed = options(process)
    if process.command == "serve":
        assert parsed["port"] == PORT
        assert 1 <= parsed["processes"] <= 64


@each
def test_each_variable_is_one_that_something_reads(process):
    assert set(process.variables) - OF_PYTHON <= set(environment.of_process().names)


@each
def test_no_secret_stands_in_the_environment(process):
    secrets = {name.removesuffix("_FILE") for name in environment.of_process().names if name.endswith("_FILE")}
    assert not secrets & set(process.variables)
    if process.command == "library":
        assert {name for name in process.variables if name.endswith("_FILE")} == {"REDIS_URL_FILE"}
    elif process.where != "Dockerfile":
        assert {"SECRET_KEY_FILE", "REDIS_URL_FILE", "DATABASE_URL_FILE"} <= set(process.variables)


@each
def test_only_the_process_that_loads_the_library_has_the_account_that_may(process):
    secrets = str(process.facts.get("LoadCredential", "")) + str(process.variables) + str(process.facts)
    accounts = set(re.findall(r"redis_url_(\w+)", secrets))
    if process.where != "Dockerfile":
        assert accounts == {
            {"library": "deploy", "migrate": "web", "serve": "web", "worker": "worker"}[process.command]
        }


@each
def test_each_process_gets_the_time_that_it_takes_to_end(process):
    if process.where == "Dockerfile":
        return
    if process.command == "worker":
        assert process.stop > options(process)["grace"] + supervisor.LATE
    if process.command == "serve":
        before = float(process.facts.get("containers", [{}])[0].get("lifecycle", {}).get("preStop", {}).get("exec", {})
                       .get("command", ["", "0"])[1])  # fmt: skip
        assert process.stop > before + server.CLOSING + supervisor.LATE


def test_the_script_has_the_commands():
    for command in (*(APPS.keys() - {"library"}), "library load", "createsuperuser"):
        assert f"  signalbox {command} " in cli.USAGE


def test_all_commands_are_started_by_each_way():
    for way in ("compose", "kubernetes", "systemd"):
        assert {process.command for process in files.processes() if process.where.startswith(way)} == set(APPS), way


def test_the_workers_and_sites_of_all_ways_have_the_same_options():
    of_workers = {tuple(process.arguments) for process in files.processes() if process.command == "worker"}
    assert len(of_workers) == 1


def test_files_name_the_version_of_the_product():
    version = machines.__version__
    assert {
        service["image"] for service in files.compose()["services"].values() if "signalbox" in service["image"]
    } == {f"signalbox:{version}"}
    assert f"newTag: {version}" in files.read("kubernetes/kustomization.yaml")
    assert f"-t signalbox:{version}" in files.read("Dockerfile")


def test_probes_ask_addresses_that_the_site_has():
    asked = {
        path.split("?")[0] for path in re.findall(r"(?:path: \"?|:8000)(/(?:healthz|readyz)[^\"'}, ]*)", everything())
    }
    assert asked == {"/healthz", "/readyz"}
    for path in asked:
        resolve(path)


def test_the_live_views_address_is_the_one_of_the_proxy():
    from dashboard.serving.live_view import websocket_urlpatterns

    proxied = re.findall(r"location (/\S+) ", files.read("nginx/signalbox.conf"))
    assert [str(route.pattern) for route in websocket_urlpatterns] == ["ws/live/"]
    assert set(proxied) == {"/ws/live/", settings.STATIC_URL}


def test_the_proxy_takes_larger_bodies_than_the_site_which_says_what_is_wrong():
    (most,) = re.findall(r"client_max_body_size (\d+)m;", files.read("nginx/signalbox.conf"))
    assert int(most) * 2**20 > admission.MOST
    assert f"proxy-body-size: {most}m" in files.read("kubernetes/ingress.yaml")
    for text in (files.read("nginx/signalbox.conf"), files.read("kubernetes/ingress.yaml")):
        (silent,) = re.findall(r"proxy[-_]read[-_]timeout:? \"?(\d+)", text)
        assert int(silent) > 2 * server.PING


def test_the_page_names_the_files_and_the_times():
    page = (files.ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    for path in re.findall(r"deploy/[a-z][\w./-]*\w", page):
        assert (files.ROOT / path).exists(), path
    stops = {process.command: process.stop for process in files.processes() if process.where.startswith("systemd")}
    assert f"wait for {stops['serve']:.0f} and {stops['worker']:.0f} seconds" in page


def test_everything_is_on_one_port():
    found = set(re.findall(r"127\.0\.0\.1:(\d+)", everything())) | set(re.findall(r"ontainerPort: (\d+)", everything()))
    assert found == {str(PORT)}
    assert dict(files.stages()[-1])["EXPOSE"] == str(PORT)


def everything() -> str:
    paths = [path for path in files.DEPLOY.rglob("*") if path.is_file() and "secrets" not in path.parts]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)
