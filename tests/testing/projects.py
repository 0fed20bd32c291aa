"""Small projects that use the plugin, each run by pytest in a process of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"```\w+\n# (\S+\.(?:py|yaml))\n(.*?)```", re.DOTALL)

SETTINGS = """
SECRET_KEY = "of-a-test"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "guardian", "machines", "shop"]
MIGRATION_MODULES = dict.fromkeys(("contenttypes", "auth", "guardian", "machines"))  # tables are made at once
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
SIGNALBOX = {"REDIS_URL": "unix:///nonexistent/nobody.sock"}
"""


def read_blocks(page: str) -> dict[str, str]:
    """Return path -> text, of the code blocks of a page that begin with the name of their file."""
    return dict(_BLOCK.findall((ROOT / page).read_text(encoding="utf-8")))


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *args: str, **variables: str) -> pytest.RunResult:
    """Run the project's tests as a user with the installed plugin does, without what this run has set."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{pytester.path}")
    for name in ("SIGNALBOX_TEST_URL", "DJANGO_SETTINGS_MODULE", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    plugins = ("-p", "machines.testing.plugin", "-p", "no:cacheprovider", "-p", "no:asyncio")
    return pytester.runpytest_subprocess(*plugins, *args, timeout=240)
