"""JSON is read strictly, and mistakes have a line and a column."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines.engine.errors import DefinitionError
from machines.formats import READERS, format_of, load
from tests.cases import for_each


def refusal(text, format="json"):
    with pytest.raises(DefinitionError) as caught:
        load(text, format)
    return [str(finding) for finding in caught.value.findings]


def test_text_and_bytes_are_read_alike():
    assert load('{"id": "é"}') == load('{"id": "é"}'.encode()) == load(b'\xef\xbb\xbf{"id": "\xc3\xa9"}') == {"id": "é"}


@for_each(
    "text, line",
    [
        ('{\n  "a": 1,\n}', "SB131 line 3, column 1: not JSON"),
        ('{"a" 1}', "SB131 line 1, column 6: not JSON: Expecting ':' delimiter"),
        ("{'a': 1}", "SB131 line 1, column 2: not JSON"),
        ('{"a": 1} x', "SB131 line 1, column 10: not JSON: Extra data"),
        ('// hello\n{"a": 1}', "SB131 line 1, column 1: not JSON"),
        ('{"a": "x\ny"}', "SB131 line 1, column 9: not JSON"),
        ('{"a": 01}', "SB131 line 1, column 8: not JSON"),
        ('{"a": "x', "SB131 line 1, column 7: not JSON: Unterminated string"),
        ("", "SB131 definition: the text is empty"),
        (" \n", "SB131 definition: the text is empty"),
        ('{"a": 1,\n "b": {"c": 1, "\\u0063": 2}}', 'SB132 line 2, column 16: the key "c" stands twice'),
        ('{"a": NaN}', "SB133 line 1, column 7: NaN is not a number"),
        ('{"a": -Infinity}', "SB133 line 1, column 7: -Infinity is not a number"),
        ('{"a": 1e999}', "SB133 line 1, column 7: the number is too large"),
        ('{"a": 9007199254740992}', "SB133 line 1, column 7: an integer of 2**53"),
        ('{"a": ' + "1" * 5000 + "}", "SB133 line 1, column 7: an integer of 2**53"),
        ("[" * 100_000, "SB111 line 1, column 129: nested more than 128 levels"),
        (b'{"a": "\xff"}', "SB134 line 1, column 8: not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "SB134 line 1, column 1: not UTF-8: invalid start byte; it looks like UTF-16"),
        ('{"a":\n"\0"}', "SB134 line 2, column 2: the text holds NUL"),
        ('{"\ud800": 1}', "SB134 line 1, column 3: the text holds half of a surrogate pair"),
        (" " * 1_048_577, "SB111 definition: the text is larger than 1048576 bytes"),
        (b" " * 10_000_000, "SB111 definition: the text is larger than 1048576 bytes"),
        ("[1]", "SB104 definition: the text holds no object"),
        ("3", "SB104 definition: the text holds no object"),
        (5, "SB134 definition: expected text or bytes, found int"),
        (None, "SB134 definition: expected text or bytes, found NoneType"),
    ],
)
def test_a_mistake_has_its_place(text, line):
    assert refusal(text)[0].startswith(line)


def test_all_of_these_are_found_at_once():
    assert len(refusal('{"a": NaN, "a": 1e999, "b": Infinity, "b": 2}')) == 5


def test_words_inside_texts_are_only_words():
    text = '{"a": "NaN {[ Infinity", "b": "\\"a\\": NaN", "c": {"a": 1}, "d": [{"a": 1}, {"a": 2}]}'
    assert load(text) == json.loads(text)


@for_each("text", ['"' * 900_000, '"\\' * 450_000, "-" * 900_000, '{"a":1' + ',"a":1' * 100_000, "N" * 900_000])
def test_hostile_text_is_refused_in_good_time(text):
    assert refusal(text)


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(),
            lambda t: st.lists(t, max_size=3),
            max_leaves=8,
        ),
    )
)
def test_what_the_standard_library_writes_is_read_back(value):
    if all("\0" not in text and "\ud800" not in text for text in [json.dumps(value, ensure_ascii=False)]):
        assert load(json.dumps(value)) == value


@given(st.binary(max_size=100) | st.text(max_size=100), st.sampled_from(["json", "yaml"]))
def test_any_text_is_read_or_refused_and_nothing_else(text, format):
    try:
        definition = load(text, format)
    except DefinitionError as error:
        definition = {str(finding).encode(): finding for finding in error.findings}
    assert isinstance(definition, dict)


@pytest.mark.parametrize("format", ["toml", "", None, "x" * 1000])
def test_unknown_formats_are_refused_with_those_there_are(format):
    assert f"there are: {', '.join(READERS)}" in refusal("{}", format)[0]


def test_the_format_of_a_file_is_told_by_its_name():
    assert [format_of(name) for name in ("a.json", "a.YML", "b.yaml", "c.scxml", "d")] == [
        "json",
        "yaml",
        "yaml",
        "scxml",
        "json",
    ]
