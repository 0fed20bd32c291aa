"""Commands with verbs take the options of every Django command, wherever they stand."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command, load_command_class

from dashboard.site.command_lines import write_engine
from machines.management.commands import machine, schedule
from tests.configuration import configure

from .conftest import HERE, run

MANAGE = HERE / "project/manage.py"
VERBS = {"machine": machine.VERBS, "schedule": schedule.VERBS}


def parse(command: str, *words: str) -> dict[str, object]:
    parser = load_command_class("machines", command).create_parser("manage.py", command)
    return vars(parser.parse_args(words))


@pytest.mark.faults  # real processes
def test_the_settings_of_a_command_line_are_taken_before_and_after_the_verb(shop: dict[str, str]):
    elsewhere = shop | {"DJANGO_SETTINGS_MODULE": "nowhere.settings"}
    before, after = ["--settings=shop.settings", "list"], ["list", "--settings", "shop.settings"]
    for program, words in (([MANAGE], before), (["-m", "machines.cli"], after), (["-m", "django"], before)):
        assert "activation" in run(elsewhere, *program, "machine", *words)
    apart = elsewhere | {"PYTHONPATH": str(HERE.parents[1])}
    project = ["--pythonpath", HERE / "project", "--settings", "shop.settings"]
    assert "nightly" in run(apart, "-m", "machines.cli", "schedule", "list", *project)


HELPED = (
    "help machine",
    "machine --help",
    "machine publish --help",
    "machine pubish",
    "migrate --pubish",
    "machine validate nowhere.json",
    "machine validate nowhere.json --traceback",
)
MANY = """
import sys
import traceback
from django.core.management import execute_from_command_line

sys.stderr = sys.stdout
for line in sys.argv[1:]:
    code = 0
    try:
        execute_from_command_line(["manage.py", *line.split()])
    except SystemExit as ended:
        code = ended.code or 0
    except Exception:  # as Python ends a process
        code = 1
        traceback.print_exc()
    print(code, "<end>")
"""


@pytest.mark.faults  # real processes
def test_help_is_shown_and_a_wrong_verb_ends_as_a_wrong_option_of_django_does(shop: dict[str, str]):
    said = run(shop, "-c", MANY, *HELPED, code=0).split("<end>")
    told = dict(zip(HELPED, said, strict=False))
    assert "VERB" in told["help machine"]
    assert "print every machine with its version" in told["machine --help"]
    shown = told["machine publish --help"]
    assert "usage: manage.py machine publish" in shown
    assert "publish a definition as the current version" in shown
    assert all(option in shown for option in ("--settings", "--pythonpath", "--traceback", "--no-color", "--notes"))
    assert "invalid choice: 'pubish'" in told["machine pubish"]
    assert "unrecognized arguments" in told["migrate --pubish"]
    wrong, traced = HELPED[-2:]
    assert told[wrong].strip().startswith("CommandError: nowhere.json")
    assert "Traceback" in told[traced]
    assert [text.rsplit(maxsplit=1)[-1] for text in said[:-1]] == ["0", "0", "0", "2", "2", "1", "1"]


@pytest.mark.parametrize("command", VERBS)
def test_each_verb_has_the_options_of_every_command(command: str, capsys: pytest.CaptureFixture[str]):
    for verb in VERBS[command]:
        with pytest.raises(SystemExit) as ended:
            parse(command, verb, "--help")
        shown = capsys.readouterr().out
        assert ended.value.code == 0
        for option in ("-v", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color"):
            assert f"{option} " in shown or f"{option}]" in shown, (verb, option)
        assert ("--skip-checks" in shown) == (command == "schedule")


def test_an_option_holds_on_either_side_of_the_verb():
    before, after = parse("machine", "-v", "2", "--no-color", "list"), parse("machine", "list", "-v", "2", "--no-color")
    assert before == after
    assert (before["verbosity"], before["no_color"], before["traceback"]) == (2, True, False)
    assert parse("machine", "export", "door", "--version", "3")["number"] == 3, "an option of the verb comes first"


@pytest.mark.parametrize("command", VERBS)
def test_code_gets_an_error_for_a_wrong_verb(command: str):
    with pytest.raises(CommandError, match="invalid choice: 'pubish'"):
        call_command(command, "pubish", stdout=io.StringIO())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:6379/3", "redis://localhost:6379/3"),
        ("rediss://me:se@cret@redis.example/0?db=2&password=other", "rediss://user:password@redis.example/0?db=2"),
        ("unix:///run/redis.sock?password=secret&db=1", "unix:///run/redis.sock?db=1"),
        ("redis+cluster://:secret@a:1,b:2?protocol=3", "redis+cluster://user:password@a:1,b:2"),
    ],
)
def test_the_engine_of_a_page_is_on_the_same_database_and_shows_no_secret(settings, url: str, shown: str):
    configure(settings, REDIS_URL=url)
    assert write_engine().startswith(f'Engine.from_url("{shown}"')


ASKED = """
import html

import django

django.setup()
from django.contrib.auth import get_user_model
from django.test import Client

client = Client(SERVER_NAME="localhost")
client.force_login(get_user_model().objects.get(username="boss"))
for page in ("/ops/", "/ops/workers/"):
    print(html.unescape(client.get(page).content.decode()))
"""


@pytest.mark.faults  # real processes
def test_an_empty_room_names_the_settings_the_prefix_and_the_commands_of_its_project(
    shop: dict[str, str], tmp_path: Path
):
    empty = shop | {"SHOP_PREFIX": f"e{shop['SHOP_PREFIX']}"}
    address = shop["SHOP_REDIS"].rpartition("@")[2].partition("?")[0]
    shown = run(empty, "-c", ASKED)
    assert "python manage.py machine publish order.json --settings shop.settings" in shown
    assert "python manage.py worker --settings shop.settings" in shown
    [call] = [line for line in shown.splitlines() if "Engine.from_url(" in line]
    assert call.startswith('engine = Engine.from_url("')
    assert call.endswith(f'{address.removeprefix("redis://")}", prefix="{empty["SHOP_PREFIX"]}")')
    (tmp_path / "apart.py").write_text("from shop.settings import *\n")
    apart = empty | {"DJANGO_SETTINGS_MODULE": "apart", "PYTHONPATH": f"{tmp_path}:{shop['PYTHONPATH']}"}
    assert "python -m django machine publish order.json --settings apart" in run(apart, "-c", ASKED)
