"""The typed readers of the environment."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard.site.environment import Environment
from tests.cases import for_each


def read(**values: str) -> Environment:
    return Environment(values)


def test_nothing_has_to_be_there():
    env = read()
    assert env.text("A") == ""
    assert env.flag("B") is False
    assert env.words("D", ["x"]) == ["x"]
    assert env.url("E", "", ["redis"]) == ""


def test_an_empty_value_counts_as_not_given():
    env = read(A="", B=" ")
    assert env.text("A", "default") == "default"
    assert env.flag("B", True) is True


@for_each("word, meant", [("1", True), ("TRUE", True), ("on", True), ("0", False), ("No", False)])
def test_a_flag_is_written_in_the_usual_ways(word, meant):
    assert read(DEBUG=word).flag("DEBUG") is meant


@pytest.mark.parametrize("word", ["maybe", "2", "tru"])
def test_a_flag_that_is_neither_stops_the_start_and_shows_what_it_holds(word):
    with pytest.raises(ImproperlyConfigured, match=f"DEBUG='{word}' is neither true nor false"):
        read(DEBUG=word).flag("DEBUG")


@pytest.mark.parametrize(
    ("word", "why"), [("x", "not a whole number"), ("1.5", "not a whole"), ("70000", "1 to 10000")]
)
def test_a_number_that_does_not_fit_stops_the_start(word, why):
    with pytest.raises(ImproperlyConfigured, match=why):
        read(SIGNALBOX_LOGIN_ATTEMPTS=word).signalbox()


def test_a_list_is_separated_by_commas_and_forgives_spaces():
    assert read(HOSTS=" a.example , b.example,").words("HOSTS") == ["a.example", "b.example"]


def test_a_choice_names_what_is_allowed():
    with pytest.raises(ImproperlyConfigured, match="LEVEL='LOUD' is not one of QUIET, NORMAL"):
        read(LEVEL="LOUD").choice("LEVEL", "NORMAL", ["QUIET", "NORMAL"])


def test_a_secret_may_come_from_a_file(tmp_path):
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    assert read(KEY_FILE=str(file)).secret("KEY") == "s3cret"


def test_a_secret_is_given_once(tmp_path):
    with pytest.raises(ImproperlyConfigured, match="KEY and KEY_FILE are both set"):
        read(KEY="a", KEY_FILE=str(tmp_path)).secret("KEY")


def test_a_secret_file_that_is_not_there_or_empty_stops_the_start(tmp_path):
    with pytest.raises(ImproperlyConfigured, match=r"KEY_FILE='/no/such' cannot be read"):
        read(KEY_FILE="/no/such").secret("KEY")
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(ImproperlyConfigured, match="empty file"):
        read(KEY_FILE=str(empty)).secret("KEY")


@for_each("value", ["localhost:6379", "http://x", "redis:/x", "redis://host:port", "redis://[::1"])
def test_a_url_that_does_not_fit_stops_the_start(value):
    with pytest.raises(ImproperlyConfigured, match="REDIS_URL"):
        read(REDIS_URL=value).url("REDIS_URL", "", ["redis", "unix"])


def test_no_message_shows_a_password():
    with pytest.raises(ImproperlyConfigured) as caught:
        read(REDIS_URL="http://:hunter2@host").url("REDIS_URL", "", ["redis"])
    assert "hunter2" not in str(caught.value)


def test_every_name_that_was_asked_for_is_known():
    env = read()
    env.secret("KEY")
    env.flag("DEBUG")
    assert env.names == ["KEY", "KEY_FILE", "DEBUG"]
