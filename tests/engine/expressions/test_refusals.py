"""What is not on the allow-list is refused by name, at its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines.engine.expressions import ExpressionError, parse, read
from tests.cases import for_each


@for_each(
    "text, words",
    [
        ("lambda: 1", "a lambda"),
        ("[x for x in n]", "a list comprehension"),
        ("{x for x in n}", "a set comprehension"),
        ("{x: 1 for x in n}", "a dict comprehension"),
        ("(x for x in n)", "a generator expression"),
        ("f'{n}'", "an f-string"),
        ("(x := 1)", "an assignment"),
        ("{1, 2}", "a set"),
        ("n[1:2]", "a slice"),
        ("n[1, 2]", "a slice"),
        ("[*n]", "a starred expression"),
        ("(yield)", "yield"),
        ("await n", "await"),
        ("n & 1", "the operator &"),
        ("n | 1", "the operator |"),
        ("n ^ 1", "the operator ^"),
        ("n << 1", "the operator <<"),
        ("n >> 1", "the operator >>"),
        ("n @ n", "the operator @"),
        ("~n", "the operator ~"),
        ("b'x'", "a bytes literal"),
        ("1j", "a complex number"),
        ("...", "an ellipsis"),
        ("n.lower()", 'calling the method "lower"'),
        ("n[0](1)", "only a function's name can be called"),
        ("len(*n)", "named and starred arguments"),
        ("len(x=n)", "named and starred arguments"),
        ("{**n}", "the keys of an object must be texts"),
        ("{1: 2}", "the keys of an object must be texts"),
        ("n is 1", '"is" compares with None only'),
        ("open('/etc/passwd')", 'no function "open"'),
        ("__import__('os').system('x')", 'calling the method "system"'),
        ("().__class__.__base__.__subclasses__()", "calling the method"),
        ("len()", "len() takes 1 argument, not 0"),
        ("random(1)", "random() takes no arguments, not 1"),
        ("round(1, 2, 3)", "round() takes 1 to 2 arguments, not 3"),
        ("min()", "min() takes 1 or more arguments, not 0"),
        ("In(n)", "In takes one state name in quotes"),
        ("In", "In needs a state"),
        ("true", 'no name "true"'),
        ("9007199254740992", "2**53"),
        ("1e999", "too large"),
        ("'\\d'", "unknown escape \\d"),
        ("'\\x00'", "NUL"),
        ("'\\ud800'", "surrogate"),
        ("n.größe", "must be ASCII"),
        ("n = 1", '"==" compares'),
        ("n; n", "invalid syntax"),
        ("import os", "invalid syntax"),
        ("n +", "ends too early"),
        ("(n", "was never closed"),
        ("", "empty"),
        (" \n ", "empty"),
    ],
)
def test_a_construct_is_refused_by_name(text, words):
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert words in str(caught.value)


HOSTILE = ["-" * 3999 + "1", "(" * 3000, "not " * 900 + "n", "2**" * 1300 + "2", "n." * 900 + "n", "n[" * 500]
HOSTILE += [
    "1 if n else " * 300,
    "n+" * 1500 + "n",
    "n" * 5000,
    "9" * 3999,
    "\0",
    "\ud800",
    "n\0",
    "f'" * 1000,
    "'" * 3999,
]
HOSTILE += ["[" * 150 + "]" * 150, "{'a':" * 150 + "1" + "}" * 150, "lambda:" * 500 + "1", "n and " * 600 + "n"]
HOSTILE += ["0x" + "f" * 3000]


@for_each("text", HOSTILE)
def test_hostile_text_is_refused_and_nothing_worse(text):
    assert read(text).problems


def test_depth_and_size_have_limits():
    assert parse("+".join(["n"] * 31))
    with pytest.raises(ExpressionError, match="32 levels"):
        parse("+".join(["n"] * 34))
    with pytest.raises(ExpressionError, match="500 parts"):
        parse(f"[{','.join(['1'] * 500)}]")


def test_an_offset_counts_characters_of_the_text_as_it_was_given():
    with pytest.raises(ExpressionError) as caught:
        parse("  'é😀' == lenn(n)")
    assert caught.value.offset == 10


def test_unknown_names_are_refused_where_the_names_are_given():
    assert parse("n + event.x + now", names={"n"})
    with pytest.raises(ExpressionError, match='no data field "m"'):
        parse("n + m", names={"n"})


def test_all_problems_of_one_expression_are_found():
    problems = read("lenn(n) + n.lower() + {1} + foo()").problems
    assert [problem.kind for problem in problems] == ["function", "call", "syntax", "function"]


def test_a_method_call_says_how_to_write_it():
    assert read("token.lower()").problems[0].hint == "write lower(text)"


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_exception(text):
    read(text)
    read(text, guard=True)


PIECES = ["n", "1", "'a'", "event.x", "(", ")", "[", "]", "+", "-", "not ", " and ", " in ", "==", "len(", "{", "}"]
PIECES += [":", ",", ".", "if ", " else ", "\\", "\n", "#"]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_mixture_of_the_language_is_read_without_an_exception(text):
    expression = read(text, guard=True)
    assert isinstance(expression.tree, list)
