"""An error's code means one thing."""

import importlib
import pkgutil
import re

import pytest

import dashboard
import machines
from machines.engine import SignalboxError

pytestmark = pytest.mark.pure

OPTIONAL = ("apprise", "rest_framework")
"""Packages that a module needs and this machine may lack."""


LEFT_OUT = re.compile(r"\.migrations|\.account\.sign_in\.")
"""Modules without errors of their own; those of sign-in need the apps of django-allauth installed."""


def test_no_two_errors_of_the_project_share_a_code():
    for package in (machines, dashboard):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("asgi") and not LEFT_OUT.search(module.name):
                _import(module.name)
    found: dict[str, set[str]] = {}
    waiting = [SignalboxError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if "code" in vars(kind) and kind.__module__.startswith(("machines", "dashboard")):
            found.setdefault(kind.code, set()).add(kind.__qualname__)
    assert len(found) > 30
    assert {code: names for code, names in found.items() if len(names) > 1} == {}


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
