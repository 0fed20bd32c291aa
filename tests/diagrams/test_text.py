"""Width, wrapping and shortening of text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from machines.diagrams.layout.labels import columns, drawable, shorten, wrap
from tests.cases import for_each


@for_each("text, width", [("abc", 3), ("日本", 4), ("😀", 2), ("e\u0301", 1), ("", 0), ("\u202e", 0)])
def test_columns_count_what_is_seen(text: str, width: int) -> None:
    assert columns(text) == width


def test_lines_break_at_spaces() -> None:
    assert wrap("one two three four", 9, 3) == ["one two", "three", "four"]


def test_words_longer_than_a_line_are_cut() -> None:
    assert wrap("abcdefghij", 4, 3) == ["abcd", "efgh", "ij"]


def test_what_does_not_fit_is_marked() -> None:
    assert wrap("abcdefghij", 4, 2) == ["abcd", "efg…"]
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"


def test_lines_after_the_first_are_indented() -> None:
    assert wrap("aaaa bbbb cccc", 6, 3, indent="  ") == ["aaaa", "  bbbb", "  cccc"]


def test_no_text_has_no_lines() -> None:
    assert wrap("", 9, 3) == wrap("   ", 9, 3) == []


@given(st.text(max_size=200), st.integers(3, 30), st.integers(1, 4))
def test_wrapping_ends_and_stays_within_its_bounds(text: str, width: int, lines: int) -> None:
    found = wrap(text, width, lines)
    assert len(found) <= lines
    assert all(columns(line) <= width for line in found)


@given(st.text(max_size=50))
def test_drawable_text_is_one_line_that_xml_can_hold(text: str) -> None:
    shown = drawable(text)
    assert not any(ord(character) < 32 for character in shown)
    shown.encode()
