"""Where the parts of a text stand: JSON and YAML say the same, and half a text still has places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import formats
from machines.catalog.editing.places import DEEPEST, Utf16, locate, parse_path, read_places
from machines.catalog.editing.starters import list_starters
from tests.cases import for_each

ROOT = Path(__file__).parents[3]
SAMPLES = [*(ROOT / "examples").glob("*.json"), *(ROOT / "machines/catalog/editing/starters").glob("*.json")]
YAML = """\
id: lamp
initial: off
states:
  off:
    on:
      press:
        - target: "on hold"
          guard: n < 3
        - elsewhere
  "on hold": {tags: [a, b]}
"""


def values(document, path=()):
    """Every path of a document."""
    yield path
    children = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in children:
        yield from values(value, (*path, key))


@for_each("sample", SAMPLES)
@for_each("format", ["json", "yaml"])
def test_every_part_of_a_sample_has_its_place(sample: Path, format: str):
    definition = json.loads(sample.read_text())
    text, _ = formats.dump(definition, format)
    places = read_places(text, format)
    assert set(places.found) == set(values(definition))
    for place in places:
        if place.kind == "scalar" and isinstance(place.path[-1], str):
            assert text[slice(*place.key)].strip("\"'") == json.dumps(place.path[-1])[1:-1]


@pytest.mark.parametrize(
    ("path", "mark", "whole"),
    [
        (("states", "off", "on", "press", 0, "guard"), "n < 3", "guard: n < 3"),
        (("states", "off", "on", "press", 1), "elsewhere", "elsewhere"),
        (("states", "on hold"), '"on hold"', '"on hold": {tags: [a, b]}'),
        (("states", "on hold", "tags", 1), "b", "b"),
    ],
)
def test_a_place_has_a_mark_and_a_whole(path, mark, whole):
    place = read_places(YAML, "yaml").found.get(path)
    assert (YAML[slice(*place.mark)], YAML[slice(*place.whole)]) == (mark, whole)


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_half_a_text_has_the_places_up_to_where_it_ends(format: str):
    text, _ = formats.dump(json.loads(list_starters()["order"].text), format)
    whole = set(read_places(text, format).found)
    for end in range(0, len(text), 7):
        found = read_places(text[:end], format)
        assert all(0 <= place.value[0] <= place.value[1] <= end for place in found)
        assert {path for path in found.found if path in whole} >= {path for path in whole if len(path) == 0 and end > 2}


def test_a_key_without_a_value_has_a_place():
    places = read_places('{"states": {"a": {"on": {"go"', "json")
    assert ("states", "a", "on", "go") in places.found


@given(st.text(alphabet='{}[]:,"\\ab \n-#&*!|>\t', max_size=80))
def test_anything_can_be_read(text: str):
    for format in ("json", "yaml"):
        for place in read_places(text, format):
            assert 0 <= place.value[0] <= place.value[1] <= len(text)


def test_depth_and_number_of_places_are_bounded():
    assert max(len(place.path) for place in read_places("[" * 100_000, "json")) < DEEPEST
    assert len(read_places("[" + "1," * 200_000, "json").found) <= 60_000


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("states.Waiting.on.entitle[0].target", ("states", "Waiting", "on", "entitle", 0, "target")),
        ('states["on hold"].on["door.*"]', ("states", "on hold", "on", "door.*")),
        ("", ()),
    ],
)
def test_paths_of_findings_are_read_back(text, path):
    assert parse_path(text) == path


def test_a_line_and_a_column_lead_to_the_word_there():
    text = "id: x\nstates: oops\n"
    assert text[slice(*locate(text, "line 2, column 9", read_places(text, "yaml")))] == "oops"
    assert locate("", "line 9, column 9", read_places("", "json")) == (0, 0)


def test_offsets_count_as_the_browser_does():
    text = "a🚦b🚥c"
    assert [Utf16(text)(at) for at in range(6)] == [0, 1, 3, 4, 6, 7]
