"""SCXML and XState have one reading of JavaScript: the same expression is the same in both."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

import pytest

from machines.formats import load, read
from tests.cases import for_each

pytestmark = pytest.mark.pure
FIELDS = {"n": 1, "s": "a", "l": [1], "o": {"a": 1}}


def as_scxml(expression: str) -> str:
    data = "".join(f"<data id='{name}'>{str(value).replace(chr(39), chr(34))}</data>" for name, value in FIELDS.items())
    return (
        '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" datamodel="ecmascript" name="m"><datamodel>'
        f'{data}</datamodel><state id="a"><transition event="go" cond={quoteattr(expression)} target="a"/></state>'
        "</scxml>"
    )


def as_xstate(expression: str) -> str:
    guard = f"({{context: {{{', '.join(FIELDS)}}}}}) => {expression}"
    states = f"{{a: {{on: {{go: {{guard: {guard}}}}}}}}}"
    return f"createMachine({{id: 'm', initial: 'a', context: {FIELDS}, states: {states}}})"


def guard_of(definition) -> str:
    return definition["states"]["a"]["on"]["go"]["guard"]


@for_each(
    "expression, ours",
    [
        ("n + 1 > 2 && s === 'a'", "n + 1 > 2 and s == 'a'"),
        ("!(n >= 1) || l.length == 0", "not n >= 1 or len(l) == 0"),
        ("s.trim().toLowerCase().includes('x')", "contains(lower(strip(s)), 'x')"),
        ("Math.max(n, 2) % 2 === 0", "remainder(max(n, 2), 2) == 0"),
        ("l.indexOf(n) !== -1", "index_of(l, n) != -1"),
        ("l.some(x => x === n || x === 2)", "contains(l, n) or contains(l, 2)"),
        ("l.every((x) => x !== n)", "not contains(l, n)"),
        ("[1, 2].some((x) => n > x)", "n > 1 or n > 2"),
        ("(typeof s === 'string' ? n : 0) > 1", "(n if typeof(s) == 'string' else 0) > 1"),
        ("o.a?.b ?? n > 0", None),
        ("`${s}-${n}` === 'a-1'", "s + '-' + to_text(n) == 'a-1'"),
        ("parseInt(s, 10) < Math.trunc(n)", None),
        ("new Error('no') instanceof Error", None),
    ],
)
def test_an_expression_means_the_same_in_both(expression, ours):
    first, second = load(as_scxml(expression), "scxml"), load(as_xstate(expression), "xstate")
    assert guard_of(first) == guard_of(second)
    assert ours in (None, guard_of(first))


@for_each(
    "expression",
    [
        "/a/.test(s)",
        "l.sort()",
        "l.map((x) => x * n).length > 1",
        "n >>> 1",
        "eval(s)",
        "async () => 1",
        "[...l, , n]",
        "[1].some((x) => (n = x) > 0)",
    ],
)
def test_what_cannot_be_translated_is_refused_in_both(expression):
    for text, format in ((as_scxml(expression), "scxml"), (as_xstate(expression), "xstate")):
        assert any(finding.is_error for finding in read(text, format)[1]), format


def test_types_belong_to_scripts_of_xstate_alone():
    assert guard_of(load(as_xstate("(n as number) > 1"), "xstate")) == "n > 1"
    said = [str(found) for found in read(as_scxml("(n as number) > 1"), "scxml")[1]]
    assert any("this fails whenever it runs: not ECMAScript" in one for one in said), said
