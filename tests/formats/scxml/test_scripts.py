"""Scripts become actions, where they assign, choose and walk over lists; what they do beyond that is refused."""

from __future__ import annotations

from tests.cases import for_each

from .builders import after_script, data, definition, evaluate, findings, run, started

SCRIPTS = {
    # assignments
    "x = 5": {"x": 5},
    "x = 1; y = x + 1": {"x": 1, "y": 2},
    "var z = 3, w; x = z": {"z": 3, "x": 3},
    "let z = [1]; const q = z.length": {"z": [1], "q": 1},
    "made = 4": {"made": 4},
    "x = y = 2": {"x": 2, "y": 2},
    "n += 3": {"n": 10},
    "n -= 1; n *= 2; n /= 4; n %= 2": {"n": 1},
    "n **= 2": {"n": 49},
    "x ||= 'default'; n &&= 1; x ??= 2": {"x": "default", "n": 1},
    "s += 1": {"s": "text1"},
    "n++; ++n; n--": {"n": 8},
    "x = n++": {"x": 7, "n": 8},
    "x = ++n": {"x": 8, "n": 8},
    "x = (y = 3) + 1": {"x": 4, "y": 3},
    "x = 1, y = 2": {"x": 1, "y": 2},
    "'use strict'; ; x = 1 // done": {"x": 1},
    # inside values
    "o.a = 1; o['b c'] = 2": {"o": {"k": 0, "a": 1, "b c": 2}},
    "o.a = {}; o.a.b = {}; o.a.b.c = 1": {"o": {"k": 0, "a": {"b": {"c": 1}}}},
    "o.k++; o.k += 2": {"o": {"k": 3}},
    "l[0] = 9; l[3] = 4": {"l": [9, 1, 2, 4]},
    "l[l.length] = 7": {"l": [3, 1, 2, 7]},
    "o.l = [{}]; o.l[0].x = 1": {"o": {"k": 0, "l": [{"x": 1}]}},
    "delete o.k": {"o": {}},
    # lists
    "l.push(4)": {"l": [3, 1, 2, 4]},
    "l.push(4, 5)": {"l": [3, 1, 2, 4, 5]},
    "l.push([4])": {"l": [3, 1, 2, [4]]},
    "x = l.push(4)": {"x": 4, "l": [3, 1, 2, 4]},
    "x = l.pop()": {"x": 2, "l": [3, 1]},
    "x = l.shift()": {"x": 3, "l": [1, 2]},
    "l.unshift(0)": {"l": [0, 3, 1, 2]},
    "l.reverse()": {"l": [2, 1, 3]},
    "x = l.splice(1, 1)": {"x": [1], "l": [3, 2]},
    "l.splice(1, 0, 'a', 'b')": {"l": [3, "a", "b", 1, 2]},
    "o.l = []; o.l.push(1); o.l.push(2)": {"o": {"k": 0, "l": [1, 2]}},
    # choices
    "if (n > 5) x = 1; else x = 2": {"x": 1},
    "if (n > 9) { x = 1 } else if (n > 5) { x = 2; y = 3 } else { x = 4 }": {"x": 2, "y": 3},
    "if (l) { if (!e) { x = 1 } }": {"x": 1},
    "if (n > 9) x = 1": {},
    # loops
    "x = 0; for (const i of l) { x += i }": {"x": 6, "i": 2},
    "x = ''; for (k in {a: 1, b: 2}) x += k": {"x": "ab", "k": "b"},
    "x = 0; for (var i = 0; i < 4; i++) { x += i }": {"x": 6, "i": 4},
    "x = 0; for (i = 1; i <= 4; ++i) x += i": {"x": 10, "i": 5},
    "for (var i = 0; i < l.length; i += 1) l[i] = l[i] * 2": {"l": [6, 2, 4], "i": 3},
    "x = 0; for (var i = 5; i < 3; i++) x++": {"x": 0, "i": 5},
    # functions
    "function twice(a) { return a * 2; } x = twice(n)": {"x": 14},
    "var twice = function (a) { return a * 2; }; x = twice(twice(n))": {"x": 28},
    "const add = (a, b) => a + b; x = add(1, 2)": {"x": 3},
    "function size(a) { if (a > 5) { return 'big' } else if (a > 2) return 'mid'; return 0 } x = size(n) + size(1)":
        {"x": "big0"},
    "function area(a, b) { var h = b || 2; var r = a * h; return r; } x = area(3)": {"x": 6},
    "function nothing() {} x = nothing() === undefined": {"x": True},
    "function set(a) { x = a; if (a > 1) { y = a } } set(5)": {"x": 5, "y": 5},
    "console.log('x is', x)": {},
}  # fmt: skip
BEFORE = {"n": 7, "s": "text", "e": "", "l": [3, 1, 2], "o": {"k": 0}}
VARIABLES = {"x": "undefined", "y": "undefined", "n": "7", "s": "'text'", "e": "''", "l": "[3, 1, 2]", "o": "{k: 0}"}


@for_each("script", SCRIPTS)
def test_a_script_changes_what_it_would_change(engine, script):
    found = after_script(engine, script, **VARIABLES)
    assert {name: value for name, value in found.items() if value is not None} == BEFORE | SCRIPTS[script]


@for_each(
    "script, what",
    [
        ("while (true) {}", "a loop"),
        ("do { x = 1 } while (x)", "a loop"),
        ("for (;;) {}", "a loop"),
        ("for (var i = 9; i > 0; i--) {}", "a loop"),
        ("for (var i = 0; i < 3; i++) { i = 5 }", "a loop that changes i itself"),
        ("try { x = 1 } catch (e) {}", "try and catch"),
        ("switch (x) { case 1: break; }", "switch"),
        ("class A {}", "a class"),
        ("x = /a/", "a regular expression"),
        ("x = n++ + n++", "changing n twice in one expression"),
        ("if (n++) {}", "changing a variable here"),
        ("[x, y] = l", "taking apart"),
        ("var {x} = o", "taking apart"),
        ("l.sort()", "the method sort()"),
        ("x = window.location", None),
        ("function f(a) { return f(a); } f(1); x = f(1)", "nested more than"),
        ("function f() { while (1) {} } x = f()", "anything but var, if and return"),
        ("function* f() {}", "function"),
        ("function f({a}) {}", "the function f"),
        ("function f() { var q = 1; x = q } f()", "a variable of a function"),
        ("delete x", "delete of anything but a property"),
        ("eval('x = 1')", "eval()"),
        ("x = function () {} || 1", "a function as a value"),
        ("import a from 'b'", "import"),
        ("return 1", "return"),
    ],
)
def test_what_a_script_does_beyond_that_is_refused_with_its_place(script, what):
    body = f'<state id="a"><onentry>\n  <script><![CDATA[  {script}]]></script></onentry></state>'
    found = findings(body, data(**VARIABLES))
    if what is None:
        assert any("SB224 line 2" in one and "window is not declared" in one for one in found)
    else:
        assert any(one.startswith("SB145 line 2, column ") and what in one for one in found), found


def test_the_place_is_that_of_the_statement():
    body = '<state id="a"><onentry><script>\nx = 1;\n  while (x) {}\n</script></onentry></state>'
    assert [one.split(":")[0] for one in findings(body)] == ["SB145 line 3, column 3"]


def test_a_script_that_is_none_fails_when_it_runs(engine):
    body = '<state id="a"><onentry><script>x = = 1</script></onentry><transition event="error" target="b"/></state>'
    assert run(engine, body + '<state id="b"/>').configuration == ["b"]
    assert any(one.startswith("SB224 line 1") for one in findings(body + '<state id="b"/>'))


def test_throwing_ends_the_block_only(engine):
    body = (
        '<state id="a"><onentry><script>x = 1; throw new Error("no: " + x); x = 2</script></onentry>'
        '<onentry><script>y = 3</script></onentry><transition event="error.execution" target="b">'
        '<assign location="z" expr="_event.data.message"/></transition></state><state id="b"/>'
    )
    found = run(engine, body, data(x="0", y="0", z="''"))
    assert found.data == {"x": 1, "y": 3, "z": "no: 1"}


def test_a_script_of_the_document_runs_after_its_data_and_before_the_first_state(engine):
    body = '<script>x = y + 1; function twice(a) { return a * 2 }</script><state id="a"><onentry>' + (
        '<assign location="z" expr="twice(x)"/></onentry></state>'
    )
    assert run(engine, body, data(x="0", y="Math.max(1, 2)", z="0")).data == {"x": 3, "y": 2, "z": 6}


def test_functions_as_data(engine):
    variables = {"twice": "function (a) { return a * 2; }", "more": "a => a + 1"}
    assert evaluate(engine, "twice(3) + more(1)", **variables) == 8
    assert evaluate(engine, "typeof twice", **variables) == "function"


def test_names_that_no_field_may_have_are_changed_everywhere(engine):
    variables = {
        "_private": "1",
        "$cost": "2",
        "event": "3",
        "now": "4",
        "class_": "5",
        "from": "6",
        "é": "7",
        "trigger": "8",
    }
    body = (
        '<state id="a"><onentry><script>_private += 10; $cost++; event = event * 2; é += from</script>'
        '<assign location="now" expr="_private + $cost + event + now + class_ + from + é + trigger"/></onentry></state>'
    )
    found = definition(body, data(**variables))
    names = list(found["context"]["properties"])
    assert names == ["private", "cost", "event_", "now_", "class_", "from_", "x", "trigger_"]
    assert started(engine, found).data["now_"] == 11 + 3 + 6 + 4 + 5 + 6 + 13 + 8
    assert sum(one.startswith("SB223") for one in findings(body, data(**variables))) == 7
