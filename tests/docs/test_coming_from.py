"""The pages of ``docs/coming-from``: the code of both sides runs as the page shows it, and prints what it says."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "coming-from"
PAGES = sorted(path.stem for path in FOLDER.glob("[a-z]*.md"))
NEEDS = {
    "django-fsm-2": "django_fsm",
    "viewflow": "viewflow",
    "transitions": "transitions",
    "python-statemachine": "statemachine",
    "celery": "celery",
    "rq": "rq",
}
BLOCK = re.compile(r"(<!-- not run -->\n)?```(python|ts)\n(.*?)```|^    (?=\S)(.*?)\n", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"print\(.*\)\s+# (.*)$", re.MULTILINE)

COMMANDS = {
    "celery -A tasks worker": """
        from celery.contrib.testing.worker import start_worker
        from tasks import app
        worker = start_worker(app, pool="threads", perform_ping_check=False)
        worker.__enter__()
    """,
    "rq worker texts --burst": """
        from rq import SimpleWorker
        SimpleWorker([queue], connection=queue.connection).work(burst=True, logging_level="ERROR")
    """,
    "signalbox worker --handlers tasks": """
        import tasks
        from machines.testing.job_runner import JobRunner
        from machines.worker.registry import handlers
        found = {name: handlers.get(name).function for name in handlers}
        assert JobRunner(engine, found).run([*engine.machines()], None, 9, True)
    """,
    "python manage.py machine import order.ts --publish": """
        from machines import formats
        from machines.engine import Engine
        engine = Engine.from_url("redis://localhost")
        engine.publish(formats.load(open("order.ts").read(), "xstate"))
    """,
}
"""Command of a page -> what it does, in the process of the code around it."""

PROJECT = """
import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "guardian", "machines", "shop"],
    AUTHENTICATION_BACKENDS=["django.contrib.auth.backends.ModelBackend", "guardian.backends.ObjectPermissionBackend"],
    ANONYMOUS_USER_NAME=None, USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    SIGNALBOX={"REDIS_URL": "redis://localhost", "PREFIX": "docs:"},
)
django.setup()
call_command("migrate", verbosity=0, run_syncdb=True)
"""
"""Around a program whose models are in the app ``shop``."""


def part(page: str, title: str) -> str:
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    return re.search(rf"^## {title}\n(.*?)(?=^## )", text, re.DOTALL | re.MULTILINE)[1]


def write_program(page: str, title: str, folder: Path) -> tuple[str, list[str]]:
    """The code of a part as one program, its files in ``folder``, and the lines that it is said to print."""
    lines: list[str] = []
    for skipped, language, code, command in BLOCK.findall(part(page, title)):
        if command:
            lines.append(textwrap.dedent(COMMANDS[command]))
        elif language == "ts":
            (folder / "order.ts").write_text(code)
        elif code.startswith("# tasks.py\n"):
            (folder / "tasks.py").write_text(code)
        elif code.startswith("# shop/models.py\n"):
            (folder / "shop").mkdir(exist_ok=True)
            (folder / "shop" / "models.py").write_text(code)
            lines.append(PROJECT)
        elif not skipped:
            lines.append(code)
    return "\n".join(lines), SHOWN.findall("\n".join(lines))


def run(program: str, folder: Path, redis_url: str, prefix: str) -> list[str]:
    """What the program prints, on the server of the tests."""
    (folder / "main.py").write_text(
        program + "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)  # no worker is waited for\n"
    )
    for path in folder.glob("*.py"):
        path.write_text(_with_server(path.read_text(), redis_url, prefix))
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=folder, env=os.environ | {"PYTHONPATH": str(FOLDER.parents[1])},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _with_server(code: str, url: str, prefix: str) -> str:
    code = (
        code.replace('from_url("redis://localhost")\n', f'from_url("{url}", prefix="{prefix}")\n') if prefix else code
    )
    code = code.replace('"PREFIX": "docs:"', f'"PREFIX": "{prefix or "docs:"}"')
    kombu = url.replace("unix://", "redis+socket://")
    code = re.sub(r'(broker|backend)="redis://localhost"', rf'\1="{kombu}"', code)
    return code.replace('"redis://localhost"', f'"{url}"')


def test_every_command_and_every_page_is_listed():
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([a-z0-9-]+)\.md\)", index)) == set(PAGES)


@pytest.mark.redis
@pytest.mark.parametrize("page", NEEDS)
def test_before(page, tmp_path, own_server):
    if importlib.util.find_spec(NEEDS[page]) is None:
        pytest.skip(f"{page} is not installed here")
    program, shown = write_program(page, "Before", tmp_path)
    assert shown
    assert run(program, tmp_path, own_server.url, "") == shown


@pytest.mark.parametrize("page", PAGES)
def test_after(page, tmp_path, redis_url, prefix):
    write_program(page, "Before", tmp_path)  # for the file that is imported
    program, shown = write_program(page, "After", tmp_path)
    assert shown
    assert run(program, tmp_path, redis_url, prefix) == shown
