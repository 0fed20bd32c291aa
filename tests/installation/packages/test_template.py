"""The template of ``django-admin startproject`` makes a project that tests itself, works and shows the room."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

from dashboard.serving import server
from machines.conf.server.guarded import GuardedProcess
from tests.installation.packages.conftest import OF_THIS_RUN
from tests.installation.processes import eventually

COMMANDS = """
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from orders.models import Order

call_command("makemigrations", check_changes=True, dry_run=True)
call_command("migrate", verbosity=0)
call_command("machine", "sync")
call_command("check", fail_level="WARNING", databases=["default"])
print(settings.TIME_ZONE)
order = Order.objects.create(total=20)
order.status.fire("pay", {"amount": 20})
call_command("worker", "--once")
print(Order.objects.get().status.instance.state, *Order.objects.values_list("status", flat=True))
User.objects.create_superuser("boss", password="let me in")
"""


class Project:
    """A project of the template. ``packages``: the folder with the files of the wheel; ``python``: what runs it."""

    def __init__(self, packages: Path, folder: Path, redis_url: str, prefix: str, python: Path | str) -> None:
        self.folder, self.python = folder / "shop", python
        kept = {name: value for name, value in os.environ.items() if not OF_THIS_RUN.match(name)}
        self.environment = kept | {"PYTHONPATH": f"{self.folder}{os.pathsep}{packages}", "REDIS_URL": redis_url}
        template = self.run("-m", "machines.cli", "template", cwd=folder).strip()
        assert Path(template).is_relative_to(packages)
        self.run("-m", "django", "startproject", "--template", template, "shop", cwd=folder)
        settings = self.folder / "config/settings.py"
        assert '"PREFIX": "shop:"' in settings.read_text()
        settings.write_text(settings.read_text().replace('"shop:"', f'"{prefix}"'))

    def run(self, *command: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [self.python, *command], cwd=cwd or self.folder, env=self.environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def manage(self, *words: str) -> str:
        return self.run("manage.py", *words)


@pytest.fixture
def project(wheel: Path, tmp_path: Path, redis_url: str, prefix: str) -> Project:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "packages")
    return Project(tmp_path / "packages", tmp_path, redis_url, prefix, sys.executable)


@pytest.mark.timeout(1800)
def test_the_template_makes_a_project_that_works(project: Project):
    play(project)


def play(project: Project) -> None:
    """Do what the docs say of a new project: test it, work in it, and open its room."""
    files = [file for file in project.folder.rglob("*") if file.is_file()]
    assert [file.name for file in files if "{{" in file.read_text() or "pyc" in file.name] == []
    assert re.search(r"^Ran [1-9]\d* tests.*\n\nOK$", project.manage("test"), re.M)
    said = project.manage("shell", "-c", COMMANDS)  # one process for all of them
    for words in ("No changes", "no findings", "no issues", "\nUTC\n", "1 completed", "\nShipped Shipped\n"):
        assert words in said, said
    open_the_room(project)


def open_the_room(project: Project) -> None:
    """Serve as the README says; log in, open the overview with its styles, and the page of the machine."""
    with server.listen("127.0.0.1", 0) as listener, (project.folder / "log").open("wb") as output:
        descriptor = listener.fileno()
        uvicorn = [project.python, "-P", "-m", "uvicorn", "--app-dir", project.folder]  # not the folder of the tests
        command = [*uvicorn, "config.asgi:application", "--fd", str(descriptor)]
        guarded = GuardedProcess(command, keep=[descriptor], output=output, env=project.environment)
        try:
            with httpx.Client(base_url=server.address(listener), timeout=60, follow_redirects=True) as client:
                eventually(lambda: client.get("/ops/readyz").status_code == 200, "the room is ready")
                login = client.get("/ops/").url
                answer = {
                    "username": "boss",
                    "password": "let me in",
                    "csrfmiddlewaretoken": client.cookies["csrftoken"],
                }
                page = client.post(login, data=answer)
                assert (page.status_code, page.url.path) == (200, "/ops/")
                assert "/ops/machines/order/" in page.text
                for sheet in re.findall(r'href="(/static/[^"]+\.css)"', page.text):
                    assert client.get(sheet).status_code == 200, sheet
                assert "Shipped" in client.get("/ops/machines/order/").text
        finally:
            guarded.stop()
    assert "Traceback" not in (project.folder / "log").read_text()
