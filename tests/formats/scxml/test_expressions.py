"""ECMAScript's expressions: what they become here, and that they are worth the same on a real server."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

import pytest

from tests.cases import for_each

from .builders import back, definition, evaluate, expression, findings, run

VARIABLES = {
    "n": "7", "f": "2.5", "neg": "-7", "s": "'text'", "e": "''", "yes": "true", "no": "false", "nil": "null",
    "l": "[3, 1, 2]", "o": "{a: {b: [10, 20]}, 'c d': 1}", "two": "'2'", "u": "undefined",
}  # fmt: skip
# What stays as plain as it was, and what needs a function because the two languages differ.
WRITTEN = {
    "n === 7": "n == 7",
    "n !== 7": "n != 7",
    "n == 7": "n == 7",
    "s == 7": "loosely_equal(s, 7)",
    "n + 1": "n + 1",
    "s + 1": "s + to_text(1)",
    "s + 'x'": "s + 'x'",
    "x + 1": "fail('x is not declared') + 1",
    "_event.data.a + 1": "plus(event.a, 1)",
    "n < 3 && !no": "n < 3 and not no",
    "_event.data.a < 3": "less(event.a, 3)",
    "n - 1 - (2 - 3)": "n - 1 - (2 - 3)",
    "(n + 1) * 2": "(n + 1) * 2",
    "n % 2": "remainder(n, 2)",
    "-n * -2": "-n * -2",
    "Math.pow(n, 3)": "n ** 3",
    "Math.pow(-n, 2)": "(-n) ** 2",
    "l.length": "len(l)",
    "l[0]": "l[0]",
    "o.a.b[1]": "item(o.a.b, 1)",
    "o['c d']": "o['c d']",
    "o.class": "o['class']",
    "yes ? 1 : 2": "1 if yes else 2",
    "u === undefined": "u == None",
    "typeof u === 'undefined'": "u == None",
    "typeof u !== 'undefined'": "u != None",
    "typeof x": "'undefined'",
    "_event.name": "trigger.name",
    "_event.data": "filled(event)",
    "_event.data.a.b": "event.a.b",
    "_event['data']['a']": "event.a",
    "_event.data === 'x'": "event == 'x'",
    "_event": "trigger and put(trigger, 'data', event)",
    "'name' in _event": "trigger != None",
    "In('a')": "In('a')",
    "In('nowhere')": "False",
    "`n is ${n}`": "'n is ' + to_text(n)",
    "[1, [], {}]": "[1, [], {}]",
    "{a: 1, 'b c': [n], 3: null}": "{'a': 1, 'b c': [n], '3': None}",
    "'it\\'s \\\"x\\\"'": "'it\\'s \"x\"'",
    "l && n": "n if truthy(l) else l",
    "n && l": "n and l",
    "a.b": "fail('a is not declared').b",
}


@for_each("text", WRITTEN)
def test_an_expression_stays_as_plain_as_it_can(text):
    assert expression(text, **VARIABLES) == WRITTEN[text]


VALUES = {
    # literals
    "1e3": 1000, "0x1F": 31, "017": 15, ".5": 0.5, "'a\\n\\u0041\\x42\\u{1F600}\\ud83d\\ude00'": "a\nAB😀😀",
    "[1, 2,]": [1, 2], "{a: 1, b: {c: []}}": {"a": 1, "b": {"c": []}}, "null": None, "undefined": None, "void 0": None,
    "`a${n}b${l}`": "a7b3,1,2", "``": "", "[...l, 4]": [3, 1, 2, 4], "{['k' + n]: 1, z: 2}": {"k7": 1, "z": 2},
    # arithmetic
    "n + f": 9.5, "n + ' ' + f": "7 2.5", "1 + 2 + 'x'": "3x", "'x' + 1 + 2": "x12", "two * n": 14, "two - 1": 1,
    "two + 1": "21", "+two + 1": 3, "-two": -2, "neg % 3": -1, "n % 3": 1, "7 / 2": 3.5, "2 ** 10": 1024,
    "(-2) ** 2": 4, "2 ** 3 ** 2": 512, "yes + 1": 2, "l + 1": "3,1,21", "s + nil": "textundefined", "n - - 1": 8,
    "10 - 4 - 3": 3, "2 * (3 + 4)": 14, "100 / 10 / 2": 5, "(1, 2)": 2,
    # comparison
    "n == '7'": True, "n === '7'": False, "n != '7'": False, "n !== '7'": True, "u == null": True,
    "u === undefined": True,
    "'' == 0": True, "nil == 0": False, "u < 1": False, "u >= 0": False, "two < 10": True, "'10' < '9'": True,
    "'b' > 'a'": True, "n >= 7 && n <= 7": True, "yes == 1": True, "yes === 1": False, "1 < 2 == true": True,
    "(1 < 2) === (3 > 2)": True, "l == l": True,
    # logic
    "n && s": "text", "e || s": "text", "e || 0 || nil": None, "l && 'yes'": "yes", "[] && 1": 1, "{} && 1": 1,
    "e && 1": "", "!n": False, "!!l": True, "![]": False, "!e": True, "u ?? 5": 5, "0 ?? 5": 0, "e ? 1 : 2": 2,
    "[] ? 1 : 2": 1, "n > 5 ? 'big' : n > 3 ? 'mid' : 'small'": "big", "(no || l) && n": 7, "no || [] || 1": [],
    # access
    "l[1]": 1, "l[9]": None, "l[-1]": None, "l['0']": 3, "o.a.b[1]": 20, "o['c d']": 1, "o.nope": None,
    "o.a.nope": None,
    "s[1]": "e", "s.length": 4, "l.length": 3, "l['length']": 3, "o.length": None, "o.a['b'].length": 2, "l[n - 6]": 1,
    "s[s.length - 1]": "t", "o?.a": {"b": [10, 20]}, "u?.a": None, "'c d' in o": True, "'z' in o": False,
    "1 in l": True,
    # kinds
    "typeof n": "number", "typeof s": "string", "typeof yes": "boolean", "typeof l": "object", "typeof u": "undefined",
    "typeof nope": "undefined", "typeof null": "object", "typeof (n + s)": "string",
    "typeof nope === 'undefined'": True,
    "typeof n === 'undefined'": False, "typeof _sessionid": "string", "l instanceof Array": True,
    "o instanceof Array": False,
    "o instanceof Object": True, "Array.isArray(l)": True, "Array.isArray(o)": False,
    # texts
    "s.toUpperCase()": "TEXT", "'ABC'.toLowerCase()": "abc", "'  a '.trim()": "a", "s.charAt(1)": "e",
    "s.indexOf('x')": 2,
    "s.indexOf('z')": -1, "s.lastIndexOf('t')": 3, "s.slice(1, 3)": "ex", "s.slice(-2)": "xt",
    "s.substring(3, 1)": "ex",
    "s.substr(1, 2)": "ex", "s.substr(-2, 1)": "x", "s.replace('t', 'T')": "Text", "s.replaceAll('t', 'T')": "TexT",
    "'a,b,c'.split(',')": ["a", "b", "c"], "s.split('')": ["t", "e", "x", "t"], "s.split()": ["text"],
    "s.charCodeAt(0)": 116, "s.repeat(2)": "texttext",
    "s.startsWith('te')": True, "s.endsWith('xt')": True, "s.includes('ex')": True, "s.concat(1, yes)": "text1true",
    "n.toString()": "7", "f.toFixed(2)": "2.50", "String(l)": "3,1,2", "String(nil)": "undefined", "s.at(-1)": "t",
    # lists
    "l.concat([4], 5)": [3, 1, 2, 4, 5], "[].concat(l, [4])": [3, 1, 2, 4], "l.slice(1)": [1, 2], "l.indexOf(2)": 2,
    "l.includes(3)": True, "l.join('-')": "3-1-2", "l.join()": "3,1,2", "[1, null, 'a'].join('')": "1a", "l.at(0)": 3,
    "Object.keys({b: 1, a: 2})": ["a", "b"], "Object.values({b: 1, a: 2})": [2, 1], "o.hasOwnProperty('a')": True,
    # numbers
    "Math.max(1, n, 3)": 7, "Math.min(n, f)": 2.5, "Math.floor(f)": 2, "Math.ceil(f)": 3, "Math.round(2.5)": 3,
    "Math.round(-2.5)": -2, "Math.trunc(-2.9)": -2, "Math.abs(neg)": 7, "Math.sqrt(49)": 7,
    "Math.pow(2, 0.5) > 1.4": True,
    "Math.sign(neg)": -1, "Math.PI > 3.14": True, "Math.random() < 1": True, "parseInt('42px')": 42,
    "parseInt('x')": None,
    "parseInt('ff', 16)": 255, "parseFloat('3.5em')": 3.5, "isNaN('x')": True, "isNaN(parseInt('x'))": True,
    "isFinite('1')": True, "Number('12')": 12, "Number(yes)": 1, "Number.isInteger(n)": True,
    "Number.isInteger(f)": False,
    "Boolean([])": True, "Boolean('')": False,
    "n + 1;": 8,
    "1e308 > 1e307": True,
    "{...o.a, c: 1, ['d']: n}": {"b": [10, 20], "c": 1, "d": 7},
    # JSON
    "JSON.stringify({b: [1, null], a: 'x'})": '{"a":"x","b":[1,null]}', "JSON.parse('[1, {\"a\": 2}]')": [1, {"a": 2}],
    "new Array()": [], "new Array(1, 2)": [1, 2], "Array(1, 2)": [1, 2], "new Object()": {},
    "new Error('x').message": "x",
    "(function (a, b) { return a + b; })(1, 2)": 3, "((a) => a * 2)(4)": 8,
}  # fmt: skip


@for_each("text", VALUES)
def test_an_expression_is_worth_what_ecmascript_says(engine, text):
    assert evaluate(engine, text, **VARIABLES) == VALUES[text]


@for_each(
    "text, payload, value",
    [
        ("_event.data.a + _event.data.b", {"a": 1, "b": 2}, 3),
        ("_event.data.a + _event.data.b", {"a": "1", "b": 2}, "12"),
        ("_event.data.a - _event.data.b", {"a": "5", "b": 2}, 3),
        ("_event.data.a == _event.data.b", {"a": "5", "b": 5}, True),
        ("_event.data.a < _event.data.b", {"a": "5", "b": 10}, True),
        ("_event.data.a || 'none'", {"a": []}, []),
        ("_event.data.a || 'none'", {"a": 0}, "none"),
        ("_event.data.l[_event.data.i]", {"l": [1, 2], "i": 1}, 2),
        ("_event.data.l.length", {"l": [1, 2]}, 2),
        ("_event.data", {"a": 1}, {"a": 1}),
        ("_event.data", {}, None),
        ("_event.data == undefined", {}, True),
        ("!_event.data", {}, True),
        ("typeof _event.data", {}, "undefined"),
        ("_event.name", {}, "go"),
        ("_event.type", {}, "external"),
        ("_event.sendid", {}, None),
        ("_event.type + '/' + _event.invokeid", {}, "external/undefined"),
        ("'data' in _event && !('raw' in _event)", {}, True),
        ("JSON.parse(JSON.stringify(_event)).name", {}, "go"),
        ("_event.data.a.b === undefined", {"a": {}}, True),
    ],
)
def test_the_event_is_what_it_was(engine, text, payload, value):
    assert evaluate(engine, text, payload) == value


EARLY = ["typeof _event === 'undefined'", "typeof _event == 'undefined'", "_event === undefined", "_event == null"]
LATE = ["typeof _event !== 'undefined'", "typeof _event === 'object'", "_event !== undefined", "_event"]


@for_each("text", [*EARLY, *LATE, *(f"!({text})" for text in EARLY + LATE)])
def test_there_is_no_event_before_the_first(engine, text):
    """Asking for one fails nowhere."""
    asked = f"<if cond={quoteattr(text)}><assign location='{{}}' expr='true'/></if>"
    body = (
        f"<state id='a'><onentry>{asked.format('first')}</onentry>"
        f"<transition event='go'>{asked.format('then')}</transition>"
        "<transition event='error.*' target='b'/></state><state id='b'/>"
    )
    early = text in EARLY or text.removeprefix("!") in [f"({late})" for late in LATE]
    found = run(engine, body, '<data id="first"/><data id="then"/>', "go")
    assert (found.configuration, found.data) == (["a"], {"first" if early else "then": True})


@pytest.mark.parametrize("text", ["_event", "typeof _event", "_event === undefined"])
def test_the_whole_event_is_read_back_as_it_was_written(text):
    found = definition(f"<state id='a'><onentry><log expr={quoteattr(text)}/></onentry></state>")
    assert back(found)["states"] == found["states"]


def test_what_every_document_can_ask_for(engine):
    assert evaluate(engine, "_sessionid.length > 3 && _sessionid.indexOf('/x') > 0") is True
    assert evaluate(engine, "_name.indexOf('doc')") == 0
    assert evaluate(engine, "_ioprocessors['scxml'].location === '#_scxml_' + _sessionid") is True
    processor = "http://www.w3.org/TR/scxml/#SCXMLEventProcessor"
    assert evaluate(engine, f"_ioprocessors.scxml === _ioprocessors['{processor}']") is True
    assert evaluate(engine, "typeof _x.anything") == "undefined"
    assert evaluate(engine, "Date.now() > 1600000000000") is True


@for_each(
    "text",
    [
        "/a+/.test('x')",
        "(function () { return this; })()",
        "new Thing()",
        "async () => 1",
        "x => x",
        "class {}",
        "1e309",
        "{a: 1, ...o}",
        "n & 1",
        "n >>> 1",
        "~n",
        "l.map(function (x) { return x; })",
        "l.sort()",
        "eval('1')",
        "l.forEach(n)",
        "[1, , 2]",
        "1n",
        "n = 5, n = 6",
        "<a/>",
        "'\\ud800'",
        "{get a() { return 1; }}",
        "tag`x`",
        "l.push(...l)",
        "o[n]()",
        "JSON.stringify(o, null, 2)",
        "new Array(5)",
        "Function('return 1')()",
    ],
)
def test_what_cannot_be_said_here_is_refused_with_its_place(text):
    body = f'<state id="a"><transition event="go"><log expr={quoteattr(text)}/></transition></state>'
    found = findings(body, '<data id="n"/><data id="l"/><data id="o"/>')
    assert any(one.startswith("SB145 line 1, column ") and "cannot be translated" in one for one in found), found


@for_each("text", ["return", "", "a b", "1 +", "x; y", "var x", "1) + (2", "'open", "/* nothing */", "}", "@"])
def test_what_is_no_expression_fails_when_it_runs_and_not_before(engine, text):
    body = (
        f'<state id="a"><onentry><log expr={quoteattr(text)}/></onentry>'
        '<transition event="error.execution" target="b"/></state><state id="b"/>'
    )
    assert any(one.startswith("SB224") and "fails whenever it runs" in one for one in findings(body))
    assert run(engine, body).configuration == ["b"]


def test_a_deep_expression_is_refused_and_not_followed_down():
    n = 5000
    texts = ["(" * n + "1" + ")" * n, "!" * n + "1", "x" + ".a" * n, " && ".join(["!x"] * n), "x" + " + 1" * n]
    for text in [*texts, "[" * n + "]" * n, "x ? 1 : " * n + "2", "f(" * n + ")" * n, "x" + "[0]" * n + " = 1"]:
        body = f'<state id="a"><transition cond={quoteattr(text)}/></state>'
        assert isinstance(findings(body, '<data id="x"/>'), list)
