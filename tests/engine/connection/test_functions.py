"""What the functions are worth that look into values, change copies of them, or follow ECMAScript's rules."""

import contextlib

import pytest

from machines.engine import DefinitionError, Refused
from tests.cases import for_each
from tests.engine.builders import evaluate

PAYLOAD = {
    "i": 7, "f": 2.5, "neg": -7, "zero": 0, "t": "text", "u": "aé😀b", "e": "", "yes": True, "no": False, "nil": None,
    "l": [3, 1, 2], "empty": [], "o": {"b": 1, "a": {"x": [10, 20]}, "null": None, "7": "seven"}, "none": {},
    "mixed": [1, "a", None, True, [2, [3]], {}], "big": 1e21, "small": 1e-7,
}  # fmt: skip
VALUES = {
    # numbers
    "sqrt(49)": 7, "exp(0)": 1, "log(1)": 0, "sign(event.neg)": -1, "sign(0)": 0, "sign(event.f)": 1,
    "range(0, 3)": [0, 1, 2], "range(2, 2)": [], "range(3, 1)": [], "range(0.5, 2)": [0.5, 1.5],
    "fixed(2.005, 1)": "2.0", "fixed(event.i)": "7", "fixed(-1.25, 1)": "-1.2",
    "remainder(event.neg, 3)": -1, "remainder(7, -3)": 1, "remainder(5.5, 2)": 1.5,
    # looking into values
    "item(event.l, 0)": 3, "item(event.l, 3)": None, "item(event.l, -1)": None, "item(event.l, '1')": 1,
    "item(event.l, 'x')": None, "item(event.l, 'length')": 3, "item(event.o, 'b')": 1, "item(event.o, 7)": "seven",
    "item(event.o, 'z')": None, "item(event.u, 2)": "😀", "item(event.u, 9)": None, "item(event.i, 'x')": None,
    "length(event.u)": 4, "length(event.l)": 3, "length(event.o)": None, "length({'length': 5})": 5,
    "length(event.i)": None, "has(event.o, 'b')": True, "has(event.o, 'null')": True, "has(event.o, 'z')": False,
    "has(event.l, 2)": True, "has(event.l, 3)": False, "has(event.t, 0)": False, "has(event.nil, 'x')": False,
    "filled(event.none)": None, "filled(event.o) == event.o": True, "filled(event.empty)": [], "filled(event.zero)": 0,
    "is_list(event.empty)": True, "is_list(event.none)": False, "is_list(event.t)": False,
    # changed copies
    "put(event.none, 'x', 1)": {"x": 1}, "put({'a': 1}, 'a', None)": {"a": None}, "put([1, 2], 1, 'b')": [1, "b"],
    "put([], 2, 'c')": [None, None, "c"], "put([1], '0', 2)": [2], "put({'a': {'b': 1}}, 'a', 2)": {"a": 2},
    "[put(event.l, 0, 9), event.l]": [[9, 1, 2], [3, 1, 2]], "put({}, 1, 'x')": {"1": "x"},
    "without({'a': 1, 'b': 2}, 'a')": {"b": 2}, "without({'a': 1}, 'z')": {"a": 1}, "without([1, 2], 0)": [None, 2],
    "concat([1], 2, [3, [4]])": [1, 2, 3, [4]], "concat([], None)": [None],
    "concat('a', 1, True, None)": "a1trueundefined",
    "concat(event.l) == event.l": True, "reversed(event.l)": [2, 1, 3], "reversed([])": [],
    # parts
    "slice(event.u, 1, 3)": "é😀", "slice(event.u, -2)": "😀b", "slice(event.u, 3, 1)": "", "slice(event.l, 1)": [1, 2],
    "slice(event.l, -1)": [2], "slice(event.l, 0, -1)": [3, 1], "slice(event.l)": [3, 1, 2],
    "slice(event.t, 1.9)": "ext",
    "substring(event.u, 1, 3)": "é😀", "substring(event.t, 3, 1)": "ex", "substring(event.t, -5, 99)": "text",
    "substring(event.t, 2)": "xt", "char_at(event.u, 1)": "é", "char_at(event.t, 9)": "", "char_at(event.t, -1)": "",
    "char_code('aé😀', 2)": 0x1F600, "char_code('aé', 1)": 0xE9, "char_code('a', 0)": 97, "char_code('€', 0)": 0x20AC,
    "char_code('a', 5)": None, "repeated('ab', 3)": "ababab", "repeated('ab', 0)": "", "has(event.l, 'length')": True,
    "characters(event.u)": ["a", "é", "😀", "b"], "characters('')": [], "index_of(event.u, 'b')": 3,
    "index_of(event.u, 'z')": -1, "index_of('abab', 'b', 2)": 3, "index_of('ab', '')": 0, "index_of(event.l, 1)": 1,
    "index_of(event.l, 9)": -1, "index_of([1, 2, 1], 1, 1)": 2, "index_of([1, 2, 1], 1, -1)": 2,
    "index_of(['1'], 1)": -1, "last_index_of('abab', 'b')": 3, "last_index_of('ab', '')": 2,
    "last_index_of('ab', 'z')": -1,
    "last_index_of([1, 2, 1], 1)": 2, "replace_first('aaa', 'a', 'b')": "baa", "replace_first('a', 'z', 'b')": "a",
    "replace_first('50%', '%', '%1')": "50%1", "joined(event.mixed, '-')": "1-a--true-2,3-[object Object]",
    "joined([1, 2])": "1,2",
    # texts and numbers
    "to_text(event.i)": "7", "to_text(event.f)": "2.5", "to_text(event.yes)": "true", "to_text(event.nil)": "undefined",
    "to_text(event.big)": "1e+21", "to_text(event.small)": "1e-7",
    "to_text(1.5e20)": "150000000000000000000", "to_text(0.000001)": "0.000001", "to_text(-0.5)": "-0.5",
    "to_text(1 / 3)": "0.3333333333333333", "to_text(1.25e-9)": "1.25e-9", "to_text(0 * -1)": "0",
    "to_text(0.1 + 0.2)": "0.30000000000000004",
    "to_text(event.l)": "3,1,2", "to_text(event.o)": "[object Object]", "to_text(100)": "100",
    "parse_int('42abc')": 42, "parse_int(' -7.9')": -7, "parse_int('abc')": None, "parse_int('0x1F')": 31,
    "parse_int('ff', 16)": 255, "parse_int('102', 2)": 2, "parse_int('9', 8)": None, "parse_int(3.9)": 3,
    "parse_int('')": None, "parse_int('1', 99)": None, "parse_float('3.5em')": 3.5, "parse_float('-.5e1')": -5,
    "parse_float('e1')": None, "parse_float('1.')": 1, "is_nan('1')": False, "is_nan('')": False, "is_nan('x')": True,
    "is_nan(event.nil)": True, "is_nan([5])": False, "is_nan({})": True, "is_nan('0x10')": False,
    "is_nan('1e999')": True,
    "json(event.o)": '{"7":"seven","a":{"x":[10,20]},"b":1,"null":null}', "json('a\"')": '"a\\""', "json(None)": "null",
    "parse_json('[1, {\"a\": null}]')": [1, {"a": None}], "parse_json('null')": None,
    # ECMAScript's rules
    "truthy(event.empty)": True, "truthy(event.none)": True, "truthy(event.zero)": False, "truthy(event.e)": False,
    "truthy('0')": True, "truthy(event.nil)": False, "truthy(event.no)": False, "truthy(-1)": True,
    "typeof(event.missing)": "undefined", "typeof(event.i)": "number", "typeof(event.t)": "string",
    "typeof(event.yes)": "boolean", "typeof(event.l)": "object", "typeof(event.o)": "object",
    "plus(1, 2)": 3, "plus('a', 1)": "a1", "plus(1, 'a')": "1a", "plus(event.yes, 1)": 2, "plus(event.l, 1)": "3,1,21",
    "plus('x', event.nil)": "xundefined", "plus(event.none, '')": "[object Object]",
    "loosely_equal('1', 1)": True, "loosely_equal(1, '1.0')": True, "loosely_equal('', 0)": True,
    "loosely_equal(event.yes, '1')": True, "loosely_equal(event.nil, 0)": False,
    "loosely_equal(event.nil, event.missing)": True,
    "loosely_equal('a', 'b')": False, "loosely_equal([1], '1')": True, "loosely_equal([1], [1])": True,
    "loosely_equal('x', 1)": False, "loosely_equal(event.no, event.nil)": False, "loosely_equal(event.no, '')": True,
    "less(1, 2)": True, "less('10', 9)": False, "less('10', '9')": True, "less(event.nil, 1)": False,
    "less('x', 1)": False, "less(event.no, event.yes)": True, "less([2], 3)": True, "more('10', 9)": True,
    "more(event.nil, 1)": False, "at_most(2, '2')": True, "at_most('a', 'b')": True, "at_most(event.nil, 1)": False,
    "at_least(event.nil, event.nil)": False, "at_least('b', 'a')": True, "at_least(2, 3)": False,
}  # fmt: skip
ERRORS = {
    "sqrt(event.neg)": "no square root of -7",
    "log(0)": "no logarithm of 0",
    "exp(1000)": "not a finite number",
    "sign(event.t)": "a number was expected",
    "range(0, 20000)": "a list longer than 10000",
    "range('a', 1)": "a number was expected",
    "fixed(1, 100)": "0 to 99 digits",
    "remainder(1, 0)": "division by zero",
    "item(event.nil, 'x')": "nothing there to look into",
    "length(event.nil)": "nothing there to look into",
    "put(event.nil, 'x', 1)": 'cannot put "x" into null',
    "put(event.i, 'x', 1)": 'cannot put "x" into number',
    "put(event.l, 'x', 1)": 'cannot put "x" into array',
    "put(event.l, -1, 1)": "cannot put -1 into array",
    "put(event.l, 10000, 1)": "a list longer than 10000",
    "without(event.t, 'x')": "cannot take anything out of string",
    "concat(event.i, 1)": "text was expected, not number",
    "slice(event.i)": "slice() takes text or a list, not number",
    "substring(event.i, 0)": "text was expected",
    "characters(event.l)": "text was expected",
    "index_of(event.i, 1)": "text was expected",
    "reversed(event.t)": "reversed() takes a list, not string",
    "joined(event.t)": "joined() takes a list, not string",
    "plus(event.nil, 1)": "cannot add null and number",
    "plus('a', 1) + 1": "cannot add string and number",
    "repeated('a', -1)": "from 0, not -1",
    "repeated('ab', 40000)": "text longer than 65536 bytes",
    "parse_json('{')": "not JSON",
    "parse_json(event.i)": "text was expected",
    "fail('the reason')": "the reason",
}


@pytest.fixture(scope="module")
def server(redis_url):
    from machines.engine import Engine

    engine = Engine.from_url(redis_url, prefix="functions:")
    yield engine
    for key in engine.client.scan_iter(match="functions:*"):
        engine.client.unlink(key)
    engine.client.close()


@for_each("text", VALUES)
def test_a_function_is_worth_this(server, text):
    assert evaluate(server, text, PAYLOAD) == VALUES[text]
    assert type(evaluate(server, text, PAYLOAD)) is type(VALUES[text]) or isinstance(VALUES[text], int | float)


@for_each("text", ERRORS)
def test_a_function_that_has_no_value_says_why(server, text):
    with pytest.raises((Refused, DefinitionError)) as caught:
        evaluate(server, text, PAYLOAD)
    if isinstance(caught.value, Refused):
        assert ERRORS[text] in caught.value.explanation.error
    else:
        assert {finding.code for finding in caught.value.findings if finding.is_error} <= {"SB112"}


@for_each(
    "text",
    [
        "plus(event.x, event.x)",
        "concat(event.x, event.x)",
        "joined([event.x, event.x])",
        "replace_first(event.x, 'a', event.x)",
        "json([event.x, event.x])",
    ],
)
def test_what_is_too_long_is_refused(server, text):
    with pytest.raises(Refused) as caught:
        evaluate(server, text, {"x": "a" * 40_000})
    assert "text longer than 65536 bytes" in caught.value.explanation.error


@for_each(
    "text",
    [
        "last_index_of(event.t, event.u)",
        "index_of(event.t, event.u)",
        "index_of(event.t, 'z', 39999)",
        "characters(substring(event.t, 0, 9999))",
        "slice(event.accents, 20000, 29000)",
        "parse_int(event.digits)",
        "parse_float(event.digits)",
        "is_nan(event.digits)",
        "loosely_equal(event.digits, 1)",
        "reversed(range(0, 10000)) == range(0, 10000)",
    ],
)
def test_none_keeps_the_server_busy(server, text):
    """It is done, or refused, before its caller gives the server up."""
    payload = {"t": "a" * 40_000}
    payload |= {"u": "a" * 20_000 + "b"} if "event.u" in text else {}
    payload = {"accents": "é" * 30_000} if "event.accents" in text else payload
    payload = {"digits": "1" * 60_000} if "event.digits" in text else payload
    with contextlib.suppress(Refused):
        evaluate(server, text, payload)
