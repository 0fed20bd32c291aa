"""Reads the files of ``deploy/``: containers of compose and Kubernetes, the image, units, the proxy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
ONCE = ("signalbox-library.service", "signalbox-migrate.service")
UNITS = (*ONCE, "signalbox-web.service", "signalbox-worker@.service")


@dataclass
class Process:
    """One process of the product as a file starts it. ``where``: the file and its name there; ``arguments`` of the
    script ``signalbox``; ``stop``: seconds it gets to end."""

    where: str
    arguments: list[str]
    variables: dict[str, str]
    stop: float
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        return self.arguments[0]

    def option(self, name: str) -> str:
        """The value of an option; "" where it is not given."""
        given = dict(zip(self.arguments, self.arguments[1:], strict=False))
        return given.get(name, "")


def read(path: str) -> str:
    return (DEPLOY / path).read_text(encoding="utf-8")


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(read("compose.yaml"))
    return found


def manifests() -> list[dict[str, Any]]:
    """All objects of the Kubernetes manifests, the kustomization aside."""
    paths = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    found = [each for path in paths for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    return [each for each in found if each["kind"] != "Kustomization"]


def manifest(kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def instructions(text: str | None = None) -> list[tuple[str, str]]:
    """The instructions of the Dockerfile in order: word and the rest, lines joined."""
    lines = [line for line in (text or read("Dockerfile")).splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found = [line.strip().partition(" ") for line in joined.splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in found]


def stages() -> list[list[tuple[str, str]]]:
    """The stages of the Dockerfile, each from its FROM on."""
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, rest))
    return found


def unit(name: str) -> dict[str, list[str]]:
    """The settings of a unit, each with its values in order."""
    found: dict[str, list[str]] = {}
    for line in read(f"systemd/{name}").splitlines():
        key, mark, value = line.partition("=")
        if mark and not line.startswith(("#", "[")):
            found.setdefault(key, []).append(value)
    return found


def environment_file() -> dict[str, str]:
    lines = [line for line in read("systemd/signalbox.env").splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@cache
def processes() -> list[Process]:
    """Return every process of the product that a file starts."""
    image = Process("Dockerfile", _exec(dict(stages()[-1])["CMD"]), {}, 10)
    return [*_of_compose(), *_of_kubernetes(), *_of_systemd(), image]


def _exec(text: str) -> list[str]:
    found: list[str] = yaml.safe_load(text)
    return found


def _of_compose() -> Iterator[Process]:
    for name, service in compose()["services"].items():
        if service["image"].startswith("signalbox:"):
            variables = {
                key: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) for key, value in service["environment"].items()
            }
            stop = float(service.get("stop_grace_period", "10s").removesuffix("s"))
            yield Process(f"compose {name}", service["command"], variables, stop, service)


def _of_kubernetes() -> Iterator[Process]:
    shared = manifest("ConfigMap", "signalbox")["data"]
    for each in manifests():
        if each["kind"] in ("Deployment", "Job"):
            pod = each["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            variables = shared | {row["name"]: row["value"] for row in container["env"]}
            stop = pod.get("terminationGracePeriodSeconds", 30)
            yield Process(f"kubernetes {each['metadata']['name']}", container["args"], variables, stop, pod)


def _of_systemd() -> Iterator[Process]:
    for name in UNITS:
        found = unit(name)
        (line,) = found["ExecStart"]
        program, *arguments = shlex.split(line)
        assert program == "/opt/signalbox/bin/signalbox", name
        pairs = [pair.split("=", 1) for value in found["Environment"] for pair in shlex.split(value)]
        stop = float(found.get("TimeoutStopSec", ["90"])[0])
        yield Process(f"systemd {name}", arguments, environment_file() | dict(pairs), stop, found)
