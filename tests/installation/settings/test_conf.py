"""The dict ``SIGNALBOX``: names, values, defaults, and the page that describes them."""

import re

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard.serving.checks import system_checks
from machines.conf import conf, project
from machines.conf.kinds import Rate, Unfit
from machines.conf.table import SETTINGS, resolve
from tests.cases import for_each
from tests.configuration import configure
from tests.installation.processes import ROOT

PAGE = (ROOT / "docs" / "settings.md").read_text()
ROWS = dict(re.findall(r"^\| `([A-Z_]+)`[^|]* \| (.*?) \|$", PAGE, re.MULTILINE))
OTHERWISE = {"REDIS_URL", "PARTITIONS", "HOME", "EXAMPLES"}
"""Their defaults are said in words."""


def find_faults():
    return [*project.configuration(None), *system_checks.live_limits(None)]


def test_a_project_may_say_nothing(settings):
    del settings.SIGNALBOX
    assert (conf.REDIS_URL, conf.PREFIX) == ("redis://127.0.0.1:6379/0", "sb:")
    assert resolve({}) == ({name: getattr(conf, name) for name in SETTINGS}, [])


def test_every_default_is_one_that_may_be_written_down():
    values, problems = resolve({name: setting.default for name, setting in SETTINGS.items()})
    assert problems == []
    assert values["PARTITIONS"] == 0


@for_each(
    "given, sentence",
    [
        ({"PREFX": "a:"}, 'SIGNALBOX["PREFX"] in Django\'s settings: there is no such setting; did you mean PREFIX?'),
        ({"SIGNALBOX_PREFIX": "a:"}, "did you mean PREFIX?"),
        ({"redis_url": "redis://x"}, "did you mean REDIS_URL?"),
        ({"QUUX": 1}, "there are REDIS_URL, PREFIX,"),
        ({1: 1}, "there is no such setting"),
        ({"PREFIX": "a b"}, "SIGNALBOX[\"PREFIX\"]='a b' does not fit; it must be 1 to 40 letters"),
        ({"PREFIX": None}, 'SIGNALBOX["PREFIX"]=None does not fit'),
        ({"THREADS": "16"}, "SIGNALBOX[\"THREADS\"]='16' is not a whole number"),
        ({"THREADS": True}, 'SIGNALBOX["THREADS"]=True is not a whole number'),
        ({"THREADS": 1000}, 'SIGNALBOX["THREADS"]=1000 is out of range; it may be 4 to 256'),
        ({"WEBHOOK_HOSTS": "a.example"}, 'SIGNALBOX["WEBHOOK_HOSTS"] must be a list of texts'),
        ({"WEBHOOK_PORTS": [99999]}, 'SIGNALBOX["WEBHOOK_PORTS"] holds 99999, which is out of range'),
        ({"INSIGHT_ALARMS": ["p95 of order over 2 x 7d"]}, "write p95 of order/Paying over 2 x 7d"),
        ({"INSIGHT_ALARMS": ["p95 of order/Paying over 2 x 9s"]}, "of a minute to a year"),
        ({"INSIGHT_ALARMS": ["share of order/Paying over 2 x 7d"]}, "or share of order/Paying > Failed over 2 x 7d"),
        ({"API_RATE": "fast"}, 'must be a rate such as "1200/m", or off'),
        ({"RETAIN": "x=1"}, "must be words such as finished=30d"),
        ({"ARCHIVE": "s3"}, "must be sql, none or parquet:/path"),
        ({"METRICS": "token"}, 'SIGNALBOX["METRICS"] is token, so SIGNALBOX["METRICS_TOKEN"] has to hold one'),
        ({"METRICS_TOKEN": "letmein"}, 'SIGNALBOX["METRICS_TOKEN"] is too short'),
        ({"EXAMPLES": "yes"}, "is neither True nor False"),
        ({"ENVIRONMENT": "production"}, 'must be a dict of two keys: {"name": "production", "colour": "red"}'),
        ({"ENVIRONMENT": {"name": "test", "color": "red"}}, "must be a dict of two keys"),
        ({"ENVIRONMENT": {"name": " ", "colour": "red"}}, "the name ' ' does not fit; it must be 1 to 40 printable"),
        ({"ENVIRONMENT": {"name": "x" * 41, "colour": "red"}}, "it must be 1 to 40 printable characters"),
        (
            {"ENVIRONMENT": {"name": "test", "colour": "pink"}},
            "SIGNALBOX[\"ENVIRONMENT\"]: colour='pink' is not one of red, orange, green, blue, violet, grey",
        ),
        ({"LIVE": [1]}, "it must be a dict"),
        ({"LIVE": {"reconsile": 1}}, "no limit named reconsile"),
        ([("PREFIX", "a:")], "it must be a dict"),
    ],
)
def test_a_wrong_name_or_value_is_an_error_of_the_check_and_of_every_read(settings, given, sentence):
    settings.SIGNALBOX = given
    [message] = find_faults()
    assert message.id == "signalbox.E016"
    assert sentence in message.msg
    if "LIVE" not in given or "reconsile" not in given["LIVE"]:
        with pytest.raises(ImproperlyConfigured) as raised:
            _ = conf.REDIS_URL  # another key than the wrong one
        assert str(raised.value) == message.msg
        assert system_checks.redis_server(None) == [], "it would ask another server than was meant"


def test_a_database_that_is_not_there_is_an_error_of_the_check(settings):
    configure(settings, INSIGHT="database:facts")
    [message] = find_faults()
    assert (message.id, message.msg) == ("signalbox.E016", "SIGNALBOX[\"INSIGHT\"] names the database 'facts'")
    configure(settings, INSIGHT="database:default")
    assert find_faults() == []
    configure(settings, INSIGHT="database:")
    [message] = find_faults()
    assert "write database:ALIAS" in message.msg


def test_no_message_shows_a_password(settings):
    settings.SIGNALBOX = {"REDIS_URL": "http://:hunter2@host", "METRICS_TOKEN": "hunter2"}
    found = find_faults()
    assert len(found) == 2
    assert "hunter2" not in str(found)


def test_a_former_setting_of_django_is_pointed_at_its_key(settings):
    settings.SIGNALBOX_LIVE = {"reconcile": 1.0}
    [message] = find_faults()
    assert message.hint == 'Write SIGNALBOX = {"LIVE": ...}.'


def test_a_name_that_no_setting_has_is_none_of_the_code_either():
    with pytest.raises(AttributeError, match="did you mean PREFIX"):
        _ = conf.PREFXI


def test_one_key_is_replaced_and_the_others_stay(settings):
    before = conf.REDIS_URL
    configure(settings, THREADS=32)
    assert (32, before) == (conf.THREADS, conf.REDIS_URL)


@for_each("setting", SETTINGS.values())
def test_the_page_has_both_names_and_the_default(setting):
    if not setting.variable:
        assert f"`{setting.name}`" in PAGE
        return
    key, default, _ = ROWS[setting.variable].split(" | ", 2)
    assert key == f"`{setting.name}`"
    if setting.name not in OTHERWISE:
        assert default == (f"`{setting.default}`" if setting.default not in ("", [], None) else "none") or (
            setting.name == "DEMO_PACE"
        )


def test_a_variable_names_an_environment_and_its_colour():
    kind = SETTINGS["ENVIRONMENT"].kind
    assert kind.parse("E", "production = red") == {"name": "production", "colour": "red"}
    for text, sentence in [("production", "such as production=red"), ("production=", "colour='' is not one of red")]:
        with pytest.raises(Unfit, match=sentence):
            kind.parse("E", text)


def test_a_word_of_a_variable_is_one_of_those_allowed():
    kind = SETTINGS["APPROVAL"].kind
    assert kind.parse("A", "publish, ,migrate") == ["publish", "migrate"]
    with pytest.raises(Unfit, match="A holds 'publsh', which is not one of publish, migrate"):
        kind.parse("A", "publsh")


def test_an_example_of_a_rate_is_its_default():
    rates = [setting for setting in SETTINGS.values() if isinstance(setting.kind, Rate)]
    assert [setting.kind.example for setting in rates] == [setting.default for setting in rates]


def test_no_app_reads_the_settings_of_our_own_site():
    own = re.compile(r"settings\.(SIGNALBOX_\w+|REDIS_URL|ENVIRONMENT|BEHIND_TLS)\b|(from|import) dashboard\.settings")
    found = {
        str(path.relative_to(ROOT))
        for folder in ("dashboard", "machines")
        for path in (ROOT / folder).rglob("*.py")
        if own.search(path.read_text())
    }
    assert found == set()
