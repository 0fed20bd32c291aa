"""A number that is a time is shown with the time it says, and no other number is."""

from __future__ import annotations

import pytest

from dashboard.shared.times import TimeFields
from machines.engine.definitions import FieldOutline
from tests.cases import for_each
from tests.pages.reading import read

INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"
NOW = 1_700_000_000  # unix seconds


def stamped(
    value: object, description: str = "unix seconds of the last step", types: tuple = ("integer",)
) -> int | None:
    return TimeFields([FieldOutline("x", types, description)]).moment("x", value)


@pytest.mark.parametrize(
    ("description", "value"),
    [("unix seconds", NOW), ("when, in Unix seconds; 0 for never", NOW), ("ms since 1970", NOW * 1000)],
)
def test_a_time_is_told_by_its_description(description, value):
    assert stamped(value, description) == NOW * 1000


@for_each("value", [0, 3, -NOW, 978_307_199, 4_102_444_800, NOW * 1000, 10**300, True, None, "1700000000"])
def test_a_number_of_another_century_is_no_time(value):
    assert stamped(value) is None


def test_a_duration_in_ms_is_no_time():
    assert stamped(30_000, "how long to wait, in ms") is None


@for_each("description", ["", "wrong codes", "seconds it took", "items", "unix"])
def test_a_field_that_does_not_say_so_is_no_time(description):
    assert stamped(NOW, description) is None


@pytest.mark.parametrize(("types", "told"), [(("integer", "null"), True), (("number",), False), (("any",), False)])
def test_only_a_declared_integer_is_a_time(types, told):
    assert (stamped(NOW, types=types) is not None) is told


def test_another_field_is_no_time():
    assert TimeFields([]).moment("x", NOW) is None


def test_data_and_history_show_the_time_beside_the_number(as_, engine, waiting):
    engine.fire("activation", waiting.id, "entitle", {"token": "MTOB1J"}, now=NOW * 1000)
    page = read(as_("viewer").get(INSTANCE))
    data = {row.one("th").text: row.one("td").text for row in page.one("table", class_="names").all("tr")}
    assert data["last_logon_ts"] == "1700000000 14 Nov 2023, 22:13:20 UTC"
    assert data["failed"] == "0"
    newest = page.one("table", class_="steps").one("tbody").all("tr")[0]
    assert "expires = 1702419200 12 Dec 2023, 22:13:20 UTC" in newest.text
