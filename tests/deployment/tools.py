"""Programs that checks of ``deploy/`` need: CI installs them (``.ci/tools``); a laptop without one skips the test."""

from __future__ import annotations

import shutil

from tests.conftest import missing

HINTS = {
    "check-jsonschema": "pip install -r tests/deployment/requirements.txt",
    "kubernetes-validate": "pip install -r tests/deployment/requirements.txt",
    "nginx": "install it (Debian: nginx)",
    "node": "install Node.js 20 or later",
    "npm": "install Node.js 20 or later with npm",
    "promtool": "install it (Debian: prometheus)",
    "prometheus": "install it (Debian: prometheus)",
    "openssl": "install it (Debian: openssl)",
    "systemd-analyze": "it comes with systemd",
}


def find(name: str) -> str:
    """The path of a program. Skips the test where it is missing; fails it in CI."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        missing(f"the program {name}", HINTS[name])
        raise AssertionError
    return found
