"""What each operator and function is worth, seen through a real machine that sets a field to it."""

import contextlib

import pytest

from machines.engine import DefinitionError, Refused
from machines.engine.expressions import FUNCTIONS
from tests.cases import for_each
from tests.engine.builders import NOW, evaluate, fields, machine, started
from tests.engine.connection import test_functions

SECOND = NOW // 1000
# Values reach an expression as fields of the event, so that no check before publishing can know their types.
PAYLOAD = {
    "i": 7,
    "f": 2.5,
    "neg": -7,
    "zero": 0,
    "t": "text",
    "u": "aé😀b",
    "e": "",
    "yes": True,
    "no": False,
    "nil": None,
    "l": [3, 1, 2],
    "names": ["b", "a", "é", "B"],
    "empty": [],
    "o": {"b": 1, "a": {"x": [10, 20]}, "null": None},
    "none": {},
    "big": 2**53 - 1,
    "huge": 1e308,
    "spaced": " \t a b \n ",
    "csv": "a,b,,c",
}
VALUES = {
    # literals
    "None": None, "True": True, "False": False, "12": 12, "-12": -12, "0.1": 0.1, "1e3": 1000, "'é\"'": 'é"',
    "[]": [], "{}": {}, "[1, 'a', None, [True]]": [1, "a", None, [True]],
    "{'a': 1, 'b': {'c': []}}": {"a": 1, "b": {"c": []}}, "(1, 2)": [1, 2],
    # arithmetic
    "event.i + 1": 8, "event.i - 10": -3, "event.i * event.f": 17.5, "event.i / 2": 3.5, "event.neg // 2": -4,
    "event.neg % 3": 2, "event.i % -3": -2, "event.i // -3": -3, "event.f % 1": 0.5, "-event.i": -7, "+event.i": 7,
    "event.i ** 2": 49, "2 ** -1": 0.5, "1 // 0.1": 9, "1e16 % 3": 1, "0.1 + 0.2": 0.30000000000000004,
    "5 % 0.2": 5 % 0.2, "event.big - 1": 2**53 - 2, "event.big // 10": 900719925474099, "event.big % 10": 1,
    "-event.big // 7": -(2**53 - 1) // 7, "event.t + 'é'": "texté", "event.l + [4]": [3, 1, 2, 4], "[] + []": [],
    # comparison
    "event.i == 7": True, "event.i == 7.0": True, "event.i != 8": True, "event.i < event.f": False, "1 < 2 < 3": True,
    "1 < 3 < 2": False, "event.i <= 7 >= 7": True, "event.t > 'a'": True, "'a' < 'B'": False, "'Z' < 'é'": True,
    "'a' < 'aa'": True, "event.yes == 1": False, "event.no == 0": False, "event.nil == 0": False,
    "event.e == None": False, "event.nil is None": True, "event.i is not None": True, "event.missing is None": True,
    "event.i == '7'": False, "event.l == [3, 1, 2]": True, "event.l == [3, 1]": False,
    "event.empty == event.none": False, "[None] == []": False, "{'x': None} == {}": False, "{} == {'x': None}": False,
    "{'x': None} == {'x': None}": True, "event.o.a == {'x': [10, 20]}": True, "event.o.a != {'x': [10, 21]}": True,
    "[1, 2] < [1, 3]": True, "[1] < [1, 0]": True, "['a', 2] < ['a', 1]": False, "[] < [1]": True, "[2] <= [2]": True,
    # membership
    "2 in event.l": True, "9 not in event.l": True, "None in [None]": True, "True in [1]": False,
    "'ex' in event.t": True, "'' in event.t": True, "'%a' in event.t": False, "'b' in event.o": True,
    "'z' in event.o": False, "'null' in event.o": True, "1 in event.o": False, "[1] in [[1], 2]": True,
    # logic gives the operand that decided, as in Python
    "event.i and event.t": "text", "event.zero and event.t": 0, "event.e or event.t": "text",
    "event.nil or 0 or []": [], "event.i or 1 / 0": 7, "event.no and 1 / 0": False, "not event.e": True,
    "not event.l": False, "not event.none": True, "event.t if event.yes else 1 / 0": "text",
    "1 / 0 if event.zero else 'no'": "no", "not not event.i": True,
    # access
    "event.o.b": 1, "event['o']['a'].x[1]": 20, "event.l[0]": 3, "event.l[-1]": 2, "event.l[3]": None,
    "event.l[-4]": None, "event.o.missing": None, "event.o['null']": None, "event.u[1]": "é", "event.u[-1]": "b",
    "event.u[2]": "😀", "event.u[4]": None, "event.t[0]": "t", "event.t[-9]": None, "event.e[0]": None,
    "event.missing": None,
    # names
    "now": SECOND, "instance.id": "x", "instance.revision": 1, "instance.state": "A", "In('A')": True,
    "In('B')": False,
    # functions
    "len(event.u)": 4, "len(event.l)": 3, "len(event.o)": 3, "len(event.e)": 0, "len({})": 0,
    "min(event.l)": 1, "max(event.l)": 3, "min(2, 1.5, 3)": 1.5, "max('a', 'b')": "b", "min(event.names)": "B",
    "max([[1], [2]])": [2], "abs(event.neg)": 7, "abs(-0.5)": 0.5, "round(2.5)": 2, "round(3.5)": 4,
    "round(-2.5)": -2, "round(2.675, 2)": 2.67, "round(0.15, 1)": 0.1, "round(1250, -2)": 1200, "round(7, -0.0)": 7,
    "round(event.huge, 5)": 1e308, "round(1.25, 300)": 1.25, "round(5, -400)": 0, "round(event.f, event.nil)": 2,
    "floor(-0.5)": -1, "ceil(-0.5)": 0, "floor(2.9)": 2, "ceil(2.1)": 3, "int('42')": 42, "int(' -7 ')": -7,
    "int(2.9)": 2, "int(-2.9)": -2, "int(True)": 1, "number('1e3')": 1000, "number('-.5')": -0.5,
    "number(event.f)": 2.5, "str(event.i)": "7", "str(0.1)": "0.1", "str(2 / 3)": "0.6666666666666666",
    "str(None)": "None", "str(True)": "True", "str(event.t)": "text", "str([1, 'a'])": '[1,"a"]',
    "str(1e21)": "1e+21", "str(event.big)": "9007199254740991", "bool(event.e)": False, "bool('0')": True,
    "bool([0])": True, "bool(0.0)": False, "bool({})": False, "lower('ÀBc')": "Àbc", "upper('aéz')": "AéZ",
    "strip(event.spaced)": "a b", "strip('')": "", "strip('   ')": "", "startswith(event.t, 'te')": True,
    "startswith(event.t, '')": True, "startswith('t', 'te')": False, "endswith(event.t, 'xt')": True,
    "endswith(event.t, '')": True, "endswith('t', 'xt')": False, "contains(event.t, 'ex')": True,
    "contains(event.l, 3)": True, "split(event.csv, ',')": ["a", "b", "", "c"], "split('', ',')": [""],
    "split('a.b', '.')": ["a", "b"], "split('a', 'ab')": ["a"], "join(['a', 'b'], ', ')": "a, b", "join([], ',')": "",
    "replace('a.b.c', '.', '')": "abc", "replace('aaa', 'aa', 'b')": "ba", "replace('a%b', '%', '%%')": "a%%b",
    "keys(event.o)": ["a", "b", "null"], "values({'b': 1, 'a': None})": [None, 1], "sum(event.l)": 6, "sum([])": 0,
    "sum([0.1, 0.2])": 0.30000000000000004, "sorted(event.l)": [1, 2, 3], "sorted([])": [],
    "sorted(event.names)": ["B", "a", "b", "é"], "sorted([[2], [1, 5], [1]])": [[1], [1, 5], [2]],
    "event.l": [3, 1, 2], "0 <= random() < 1": True, "len(random_token(64))": 64,
}  # fmt: skip


@pytest.fixture(scope="module")
def server(redis_url):
    """One engine for the whole table; its keys go with the tests that follow."""
    import secrets

    from machines.engine import Engine
    from tests.conftest import remove

    engine = Engine.from_url(redis_url, prefix=f"t{secrets.token_hex(4)}:")
    yield engine
    remove(engine.client, engine.keys.prefix)
    engine.client.close()


@for_each("text", VALUES)
def test_an_expression_is_worth(server, text):
    found = evaluate(server, text, PAYLOAD)
    assert found == VALUES[text]
    assert isinstance(found, bool) == isinstance(VALUES[text], bool)


ERRORS = {
    "event.i / event.zero": "division by zero",
    "event.i // 0": "division by zero",
    "event.i % event.zero": "division by zero",
    "event.huge * 10": "not a finite number",
    "event.huge + event.huge": "not a finite number",
    "10 ** 400": "not a finite number",
    "(0 - 8) ** (1 / 3)": "not a finite number",
    "0 ** -1": "not a finite number",
    "event.i + event.t": "cannot add number and string",
    "event.t + event.i": "cannot add string and number",
    "event.nil + 1": "cannot add null and number",
    "event.yes + 1": "cannot add boolean and number",
    "event.l + event.t": "cannot add array and string",
    "event.o + event.o": "cannot add object and object",
    "event.t * 2": "a number was expected, not string",
    "event.i - event.yes": "a number was expected, not boolean",
    "-event.t": "a number was expected, not string",
    "event.i < event.t": "cannot order number and string",
    "event.nil < 1": "cannot order null and number",
    "event.yes < event.no": "cannot order boolean and boolean",
    "event.o < event.o": "cannot order object and object",
    "[1] < ['a']": "cannot order number and string",
    "event.i in event.t": "only text can be in text, not number",
    "event.i in event.i": "nothing can be in number",
    "event.i in event.nil": "nothing can be in null",
    "event.missing.deeper": "nothing there to look into (null)",
    "event.nil[0]": "nothing there to look into (null)",
    "event.i.x": "cannot look into number",
    "event.yes[0]": "cannot look into boolean",
    "event.l['a']": 'a whole number was expected, not "a"',
    "event.l[0.5]": "a whole number was expected, not 0.5",
    "event.o[event.i]": "a field name was expected, not number",
    "len(event.i)": "len() takes text, a list or an object, not number",
    "len(event.nil)": "not null",
    "min(event.empty)": "min() of nothing",
    "max(event.l, 1)": "cannot order",
    "min(1, event.nil)": "cannot order null and number",
    "min(1, 2, event.nil)": "cannot order null and number",
    "max(event.nil, 1)": "max() of nothing",
    "max([1, 'a'])": "cannot order",
    "abs(event.t)": "a number was expected",
    "round(event.t)": "a number was expected",
    "round(1, 0.5)": "a whole number was expected, not 0.5",
    "int('x')": 'not a number: "x"',
    "int('0x10')": "not a number",
    "int('1_000')": "not a number",
    "int('nan')": "not a number",
    "number('inf')": "not a number",
    "number('1.2.3')": "not a number",
    "number('1-5')": "not a number",
    "number('')": "not a number",
    "number('1e400')": "not a finite number",
    "number(event.nil)": "not a number: null",
    "lower(event.i)": "text was expected, not number",
    "strip(event.nil)": "text was expected, not null",
    "startswith(event.t, event.i)": "text was expected, not number",
    "split(event.t, event.e)": "split() needs a separator",
    "join(event.t, '')": "join() takes a list, not string",
    "join([1], '')": "text was expected, not number",
    "join([None], '')": "text was expected, not null",
    "replace(event.t, '', 'x')": "replace() needs something to replace",
    "keys(event.l)": "an object was expected, not array",
    "values(event.t)": "an object was expected, not string",
    "sum(event.names)": "a number was expected, not string",
    "sum(event.i)": "sum() takes a list, not number",
    "sum([1e308, 1e308])": "not a finite number",
    "sorted(event.t)": "sorted() takes a list, not string",
    "sorted([1, 'a'])": "cannot order string and number",
    "sorted([None, None])": "cannot order null and null",
    "random_token(0)": "random_token() takes a length from 1 to 64",
    "random_token(65)": "a length from 1 to 64",
    "random_token(1.5)": "a whole number was expected",
}


@for_each("text", ERRORS)
def test_an_expression_that_has_no_value_says_why(server, text):
    with pytest.raises((Refused, DefinitionError)) as caught:
        evaluate(server, text, PAYLOAD)
    if isinstance(caught.value, Refused):
        assert ERRORS[text] in caught.value.explanation.error
    else:  # publishing knows the types of literals, and refuses before anything can run
        assert {finding.code for finding in caught.value.findings if finding.is_error} <= {"SB109", "SB112", "SB120"}


def test_every_function_that_is_allowed_is_in_the_table():
    tables = " ".join([*VALUES, *ERRORS, *test_functions.VALUES, *test_functions.ERRORS])
    assert [name for name in FUNCTIONS if f"{name}(" not in tables] == []


@for_each(
    "text, payload",
    [
        ("strip(event.t)", {"t": "x" + " " * 60_000 + "x"}),
        ("number(event.t)", {"t": "1" * 60_000 + "x"}),
        ("int(event.t)", {"t": "." * 60_000}),
        ("replace(event.t, 'a', event.t)", {"t": "a" * 60_000}),
        ("join(event.l, event.t)", {"l": [""] * 10_000, "t": "b" * 20_000}),
        ("sorted(event.l)", {"l": list(range(0, 9000, 2)) + list(range(8999, 0, -2))}),
        ("len(sorted(event.l))", {"l": [1] * 12_000}),
        ("split(event.t, 'a') == split(event.t, 'a')", {"t": "a" * 60_000}),
        ("event.t in event.u", {"t": "a" * 20_000 + "b", "u": "a" * 40_000}),
        ("event.u[len(event.u) - 1]", {"u": "é" * 30_000}),
        ("event.t < event.u", {"t": "a" * 30_000, "u": "a" * 30_000}),
    ],
)
def test_no_text_keeps_the_server_busy(server, text, payload):
    """Whatever a payload holds, an expression is done with it, or refused, before its caller gives the server up."""
    with contextlib.suppress(Refused):
        evaluate(server, text, payload)


def test_a_value_may_be_any_json_in_which_texts_are_expressions(server):
    value = {"a": ["event.i", {"b": "'t' + event.t"}], "c": None, "d": 1.5, "e": [], "f": {}}
    assert evaluate(server, value, PAYLOAD) == {"a": [7, {"b": "ttext"}], "c": None, "d": 1.5, "e": [], "f": {}}


def test_a_guard_that_fails_does_not_hold_and_the_next_one_is_asked(engine):
    on = {"go": [{"guard": "event.x.y > 1", "target": "B"}, {"guard": "event.x is None", "target": "C"}]}
    started(engine, machine("m", {"A": {"on": on}, "B": {}, "C": {}}))
    assert engine.fire("m", "x", "go").state == "C"


def test_actions_of_one_list_see_each_others_effect(engine):
    steps = [{"set": {"a": "a + 1"}}, {"set": {"b": "a * 10"}}, {"unset": "a"}, {"set": {"c": "a is None"}}]
    context = fields(a={"default": 1}, b="integer", c="boolean")
    started(engine, machine("m", {"A": {"on": {"go": {"actions": steps}}}}, context=context))
    assert engine.fire("m", "x", "go").data == {"b": 20, "c": True}


def test_a_fields_value_is_what_was_declared(server):
    assert evaluate(server, "[n, f, b, s, l]", None, n=1, f=0.5, b=True, s="t", l=[]) == [1, 0.5, True, "t", []]


def test_the_clock_has_whole_seconds(engine):
    started(engine, machine("m", {"A": {"on": {"go": {"actions": {"set": {"at": "now"}}}}}}, context={"at": 0}))
    assert engine.fire("m", "x", "go", now=NOW + 999).data["at"] == SECOND
    assert engine.fire("m", "x", "go", now=NOW + 1000).data["at"] == SECOND + 1


def test_random_tokens_differ_from_draw_to_draw_and_from_instance_to_instance(engine):
    go = {"actions": {"set": {"l": "[random_token(8), random_token(8), random(), random()]"}}}
    definition = machine("m", {"A": {"on": {"go": go}}}, context={"l": []})
    started(engine, definition)
    started(engine, definition, "y")
    drawn = [engine.fire("m", id, "go", now=NOW).data["l"] for id in ("x", "y", "x")]
    assert len({str(value) for values in drawn for value in values}) == 12
