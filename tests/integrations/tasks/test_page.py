"""A fresh project that does what docs/tasks.md says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from machines.integrations.tasks.framework import PACKAGE
from tests.docs.test_examples import block
from tests.installation.processes import ROOT

PAGE = "docs/tasks.md"


@pytest.fixture
def python(redis_url: str, tmp_path: Path):
    """Runs Python in the folder of the project; the output."""

    def run(*arguments: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60,
            env=environment | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_the_page_holds_in_a_fresh_project(python, redis_url: str, prefix: str, tmp_path: Path):
    python("-m", "django", "startproject", "shop", ".")
    python("manage.py", "startapp", "orders")
    settings = block(PAGE, "python", "INSTALLED_APPS +=").replace("redis://localhost:6379/0", redis_url)
    declared = block(PAGE, "python", "@task(queue_name")
    if PACKAGE == "django_tasks":
        settings = settings.replace('"guardian"]', f'"guardian", "{PACKAGE}"]')
        declared = declared.replace("from django.tasks", f"from {PACKAGE}")
    with (tmp_path / "shop" / "settings.py").open("a") as file:
        file.write(settings.replace("shop:", prefix) + 'INSTALLED_APPS += ["orders"]\n')
    (tmp_path / "orders" / "tasks.py").write_text(declared)
    asked = re.findall(r"\((\w+\.[EWI]\d+)\)", python("manage.py", "check"))
    assert asked == ["signalbox.W029"], "options of SQLite, which startproject leaves out"
    assert "0-1 READY" in python("manage.py", "shell", "-c", block(PAGE, "python", "result = send_receipts.enqueue"))
    assert "1 completed" in python("manage.py", "worker", "--drain")
    said = python("manage.py", "shell", "-c", block(PAGE, "python", "found = "))
    assert "SUCCESSFUL {'sent': 2} 1 ['" in said
