"""Texts that are small to send and large to read: for every reader of definitions, for bodies, frames and headers.

Each is made when it is asked for, so that collecting the tests costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable

Made = Callable[[], str | bytes]
Form = Callable[[], tuple[str, bytes]]


def config(**parts: object) -> str:
    return json.dumps({"id": "m", "initial": "a", "states": {"a": {}}} | parts)


def guarded(guard: str) -> str:
    return config(context={"x": 1}, states={"a": {"on": {"go": {"guard": guard}}}})


def nested(depth: int, **leaf: object) -> str:
    """States in states."""
    inner = json.dumps(leaf)
    return (
        '{"id":"m","initial":"a","states":{"a":' + '{"initial":"a","states":{"a":' * depth + inner + "}}" * depth + "}}"
    )


def boxed(depth: int) -> str:
    """Machines inside machines."""
    part = '{"id":"m%d","initial":"a","states":{"a":{}},"machines":{"x":'
    return "".join(part % n for n in range(depth)) + '{"id":"z","initial":"a","states":{"a":{}}}' + "}}" * depth


def laughs(levels: int = 30, wide: int = 10) -> str:
    """Billion laughs, as entities."""
    entities = [f'<!ENTITY e0 "{"ha" * 10}">']
    entities += [f'<!ENTITY e{n} "{f"&e{n - 1};" * wide}">' for n in range(1, levels)]
    return doctype("".join(entities), logged(f"&e{levels - 1};"))


def doctype(entities: str, document: str) -> str:
    return f"<!DOCTYPE scxml [{entities}]>{document}"


def logged(text: str) -> str:
    return scxml('<state id="a"><onentry><log expr="' + text + '"/></onentry></state>')


def scxml(inside: str) -> str:
    return f'<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" initial="a">{inside}</scxml>'


def yaml_laughs(levels: int = 25, wide: int = 9) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * wide)}]" for n in range(1, levels)]
    return "\n".join(lines)


def merging(levels: int = 25, wide: int = 9) -> str:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * wide)}], k{n}: 1}}" for n in range(1, levels)]
    return "\n".join(lines)


JSON: dict[str, Made] = {
    "arrays without an end": lambda: "[" * 500_000,
    "objects without an end": lambda: '{"a":' * 200_000,
    "a deep context": lambda: (
        '{"id":"m","initial":"a","states":{"a":{}},"context":{"x":' + "[" * 50_000 + "]" * 50_000 + "}}"
    ),
    "deep objects in a context": lambda: '{"context":' + '{"a":' * 20_000 + "1" + "}" * 20_000 + "}",
    "an integer of many digits": lambda: '{"id":"m","context":{"x":' + "9" * 900_000 + "}}",
    "a float out of range": lambda: config(context={"x": 0}).replace("0}", "1e400000}"),
    "no number": lambda: config(context={"x": 0}).replace("0}", "NaN}"),
    "one name twice": lambda: '{"id":"m","id":"n","initial":"a","states":{"a":{}}}',
    "one name very often": lambda: "{" + ",".join('"a":1' for _ in range(150_000)) + "}",
    "half of a pair": lambda: '{"id":"m","description":"\\ud800","initial":"a","states":{"a":{}}}',
    "a name of half a megabyte": lambda: config(states={"a" * 500_000: {}}),
    "many thousand states": lambda: (
        '{"id":"m","initial":"s0","states":{' + ",".join(f'"s{n}":{{}}' for n in range(80_000)) + "}}"
    ),
    "deep states": lambda: nested(8_000),
    "states a little too deep": lambda: nested(40),
    "machines in machines": lambda: boxed(3_000),
    "more than a megabyte": lambda: " " * (1 << 20) + "{}",
    "no object": lambda: json.dumps([config()] * 1000),
    "NUL": lambda: config() + "\0",
    "half of UTF-8": lambda: b'{"id":"\xff\xfe\x80"}',
    "another encoding": lambda: config().encode("utf-16"),
    "actions in actions": lambda: config(states={"a": {"entry": _ifs(2_000)}}),
    "a target list": lambda: config(states={"a": {"on": {"e": [{"target": "a", "guard": "x"}] * 8_000}}}),
}


def _ifs(depth: int) -> object:
    action: object = {"log": "1"}
    for _ in range(min(depth, 400)):
        action = {"if": "1", "then": [action]}
    return action


EXPRESSIONS: dict[str, Made] = {
    "parentheses": lambda: guarded("(" * 50_000 + "x" + ")" * 50_000),
    "lists in lists": lambda: guarded("[" * 50_000 + "]" * 50_000),
    "minus after minus": lambda: guarded("-" * 100_000 + "x"),
    "not after not": lambda: guarded("not " * 100_000 + "x"),
    "a sum of many": lambda: guarded("+".join(["x"] * 200_000)),
    "a chain of and": lambda: guarded(" and ".join(["x"] * 150_000)),
    "a chain of comparisons": lambda: guarded("<".join(["x"] * 200_000)),
    "dots": lambda: guarded("x" + ".a" * 200_000),
    "calls": lambda: guarded("len(" * 20_000 + "x" + ")" * 20_000),
    "a tower of powers": lambda: guarded("9**9**9**9"),
    "an integer of many digits": lambda: guarded("9" * 900_000),
    "a text of many": lambda: guarded("'a' * 10**9"),
    "a comprehension": lambda: guarded("[a for a in range(10**9)]"),
    "insides of Python": lambda: guarded("().__class__.__bases__[0].__subclasses__()"),
    "an import": lambda: guarded("__import__('os').system('true')"),
    "a lambda": lambda: guarded("(lambda f: f(f))(lambda f: f(f))"),
    "a formatted text": lambda: guarded("f'{x:>1000000000}'"),
    "a conditional in a conditional": lambda: guarded("x if x else " * 20_000 + "x"),
    "letters that are others": lambda: guarded("\uff4c\uff45\uff4e(x)"),
    "names of the keyspace": lambda: guarded("redis.call('FLUSHALL')"),
}

YAML: dict[str, Made] = {
    "billion laughs": yaml_laughs,
    "merges of merges": merging,
    "an alias to itself": lambda: "id: m\ncontext: &a\n  x: *a\ninitial: a\nstates: {a: {}}",
    "an alias to its list": lambda: "id: m\ncontext: {x: &a [*a]}\ninitial: a\nstates: {a: {}}",
    "brackets without an end": lambda: "[" * 200_000,
    "braces without an end": lambda: "{a: " * 100_000,
    "a deep block": lambda: "\n".join(" " * n + "a:" for n in range(1200)),
    "dashes": lambda: "- " * 20_000 + "x",
    "keys that are lists": lambda: "? " * 20_000 + "x",
    "an object of Python": lambda: "!!python/object/apply:os.system ['true']",
    "a tag of ours": lambda: "id: !machine m",
    "an integer of many digits": lambda: "id: m\ncontext:\n  x: " + "9" * 900_000,
    "an integer to the base of sixty": lambda: "id: m\ncontext:\n  x: " + "59:" * 100_000 + "59",
    "one name twice": lambda: "id: m\nid: n",
    "many documents": lambda: "---\nid: m\n" * 50_000,
    "many anchors": lambda: "id: m\ncontext: [" + ", ".join(f"&a{n} x" for n in range(30_000)) + "]",
    "a tab": lambda: "id: m\nstates:\n\ta: {}",
}

PLAIN = '<state id="a"/>'
SCXML: dict[str, Made] = {
    "billion laughs": laughs,
    "one large entity often": lambda: doctype('<!ENTITY a "' + "x" * 100_000 + '">', logged("&a;" * 50_000)),
    "a file as an entity": lambda: doctype('<!ENTITY a SYSTEM "file:///etc/passwd">', scxml(PLAIN + "&a;")),
    "a DTD from elsewhere": lambda: '<!DOCTYPE scxml SYSTEM "http://127.0.0.1:9/x.dtd">' + scxml(PLAIN),
    "a parameter entity": lambda: doctype('<!ENTITY % a SYSTEM "http://127.0.0.1:9/x">%a;', scxml(PLAIN)),
    "elements without an end": lambda: scxml("<state>" * 100_000),
    "deep states": lambda: scxml('<state id="a">' + "<state>" * 20_000 + "</state>" * 20_000 + "</state>"),
    "an attribute of a megabyte": lambda: scxml(f'<state id="{"a" * 900_000}"/>'),
    "many attributes": lambda: scxml("<state " + " ".join(f'a{n}="x"' for n in range(80_000)) + "/>"),
    "one attribute twice": lambda: scxml('<state id="a" id="b"/>'),
    "many namespaces": lambda: scxml("<state " + " ".join(f'xmlns:a{n}="u{n}"' for n in range(30_000)) + "/>"),
    "a namespace that is not there": lambda: scxml("<zq:state/>"),
    "a file as data": lambda: scxml('<datamodel><data id="x" src="file:///etc/passwd"/></datamodel><state id="a"/>'),
    "a script from elsewhere": lambda: scxml('<script src="http://127.0.0.1:9/x.js"/><state id="a"/>'),
    "another file inside": lambda: scxml(
        '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd"/><state id="a"/>'
    ),
    "no such encoding": lambda: '<?xml version="1.0" encoding="zq-99"?>' + scxml('<state id="a"/>'),
    "another encoding than it says": lambda: '<?xml version="1.0" encoding="utf-16"?>' + scxml('<state id="a"/>'),
    "a comment without an end": lambda: scxml("<!--" + "-" * 900_000),
    "a script with brackets": lambda: scxml("<script>" + "(" * 50_000 + '</script><state id="a"/>'),
    "a condition with brackets": lambda: scxml(f'<state id="a"><transition event="e" cond="{"(" * 50_000}"/></state>'),
    "a reference to no character": lambda: scxml('<state id="&#0;"/>'),
}

XSTATE: dict[str, Made] = {
    "brackets without an end": lambda: "createMachine(" + "[" * 200_000,
    "braces in braces": lambda: "createMachine({" + "a: {" * 20_000 + "}" * 20_000 + "})",
    "a template in a template": lambda: "let x = `" + "${`" * 50_000,
    "an expression that backtracks": lambda: "createMachine({ id: 'm', a: /(a+)+$/, b: '" + "a" * 200_000 + "!' })",
    "a comment without an end": lambda: "createMachine({ /*" + "*" * 900_000,
    "a text without an end": lambda: "createMachine({ id: '" + "\\" * 900_000,
    "arrows": lambda: "createMachine({ guard: " + "() => " * 50_000 + "1 })",
    "a conditional in a conditional": lambda: "createMachine({ a: " + "1 ? 2 : " * 50_000 + "3 })",
    "spreads": lambda: "const a = {...a};\ncreateMachine({...a, ...a, id: 'm'})",
    "constants that double": lambda: (
        "\n".join(f"const c{n} = [c{n + 1}, c{n + 1}];" for n in range(60))
        + "\nconst c60 = 1; createMachine({ id: 'm', context: c0 })"
    ),
    "a prototype": lambda: 'createMachine({ "__proto__": { id: "m" }, constructor: { prototype: { a: 1 } } })',
    "an integer of many digits": lambda: "createMachine({ a: " + "9" * 500_000 + " })",
    "an import": lambda: "import fs from 'fs'; createMachine({ id: fs.readFileSync('/etc/passwd') })",
    "escapes": lambda: "createMachine({ id: '" + "\\u{110000}" * 50_000 + "' })",
}

SM: dict[str, Made] = {
    "brackets without an end": lambda: '{"map":' + "[" * 200_000,
    "an arrow to everything": lambda: json.dumps(
        {"initial": "s0", "map": {f"s{n}": [f"s{m}" for m in range(300)] for n in range(300)}}
    ),
    "no map": lambda: '{"initial": 1, "map": 2, "current": [], "reason": {}}',
    "one name twice": lambda: '{"initial":"a","initial":"b","map":{"a":[]},"current":"","reason":""}',
    "a name of half a megabyte": lambda: json.dumps(
        {"initial": "", "map": {"a" * 500_000: []}, "current": "", "reason": ""}
    ),
    "NUL": lambda: '{"initial":"\\u0000","map":{"\\u0000":[]},"current":"","reason":""}',
}
MERMAID: dict[str, Made] = {
    "levels without an end": lambda: "stateDiagram-v2\n" + "state a {\n" * 5_000,
    "many states": lambda: "stateDiagram-v2\n" + "\n".join(f"s{n} --> s{n + 1}" for n in range(50_000)),
    "arrows": lambda: "stateDiagram-v2\n" + "-->" * 50_000,
    "a long name": lambda: "stateDiagram-v2\n" + "x" * 300_000 + " --> y",
    "a label that backtracks": lambda: "stateDiagram-v2\na --> b : " + "[" * 50_000 + "/" * 50_000,
}
READ: dict[str, dict[str, Made]] = {
    "json": JSON | EXPRESSIONS,
    "yaml": YAML,
    "scxml": SCXML,
    "xstate": XSTATE,
    "sm": SM,
    "mermaid": MERMAID,
}
#: nothing is wrong with these: what they would do is refused when it is done, or has been left out with a warning
HARMLESS = {
    *(
        ("xstate", name)
        for name in (
            "a conditional in a conditional",
            "a prototype",
            "an expression that backtracks",
            "an import",
            "an integer of many digits",
            "arrows",
            "escapes",
        )
    ),
    ("json", "a tower of powers"),
    ("scxml", "another file inside"),
    ("scxml", "no such encoding"),
    ("scxml", "another encoding than it says"),
    ("scxml", "a script with brackets"),
    ("scxml", "a condition with brackets"),
}

BODIES: dict[str, Made] = {
    "arrays without an end": lambda: "[" * 500_000,
    "objects without an end": lambda: '{"event":' * 100_000,
    "a deep payload": lambda: '{"event":"open","payload":{"x":' + "[" * 20_000 + "]" * 20_000 + "}}",
    "an integer of many digits": lambda: '{"event":"open","payload":{"x":' + "9" * 100_000 + "}}",
    "an integer too large to keep": lambda: '{"event":"open","payload":{"x":' + "9" * 400 + "}}",
    "a float out of range": lambda: '{"event":"open","payload":{"x":1e999}}',
    "no number": lambda: '{"event":"open","payload":{"x":-Infinity}}',
    "one name twice": lambda: '{"event":"open","event":"lock"}',
    "many names": lambda: '{"event":"open","payload":{' + ",".join(f'"k{n}":1' for n in range(50_000)) + "}}",
    "a text too long": lambda: json.dumps({"event": "open", "payload": {"x": "x" * 1_000_000}}),
    "an event too long": lambda: json.dumps({"event": "x" * 1_000_000}),
    "a reason too long": lambda: json.dumps({"event": "open", "reason": "x" * 1_000_000}),
    "half of a pair": lambda: '{"event":"\\ud800"}',
    "NUL": lambda: '{"event":"open\\u0000"}',
    "half of UTF-8": lambda: b'{"event":"\xff"}',
    "another encoding": lambda: '{"event":"open"}'.encode("utf-16"),
    "compressed": lambda: b"\x1f\x8b\x08\x00" + b"\0" * 100,
    "nothing": lambda: "",
    "no object": lambda: "[]",
    "more than is read": lambda: json.dumps({"event": "open", "payload": {"x": "x" * 3_000_000}}),
    "mistakes without an end": lambda: "{" + ",".join(f'"k{n}":1' for n in range(20_000)) + "}",
}

FRAMES: dict[str, Made] = {
    "too long": lambda: json.dumps({"type": "subscribe", "topic": "instance:door/" + "x" * 100_000}),
    "arrays": lambda: "[" * 4000,
    "objects": lambda: '{"type":' * 400,
    "an integer of many digits": lambda: '{"type":' + "9" * 4000 + "}",
    "no number": lambda: '{"type":"subscribe","topic":NaN}',
    "no object": lambda: "[]",
    "nothing": lambda: "",
    "half of UTF-8": lambda: b'{"type":"subscribe","topic":"\xff"}',
    "half of a pair": lambda: '{"type":"subscribe","topic":"\\ud800"}',
    "NUL": lambda: '{"type":"subscribe","topic":"machine:\\u0000"}',
    "a topic that is a list": lambda: '{"type":"subscribe","topic":["overview"]}',
    "a type that is an object": lambda: '{"type":{"a":1},"topic":"overview"}',
    "a topic of markup": lambda: '{"type":"subscribe","topic":"machine:<script>"}',
    "a topic of keys": lambda: '{"type":"subscribe","topic":"machine:door:0}:i:*"}',
    "a topic with a line": lambda: '{"type":"subscribe","topic":"instance:door/a\\r\\nDEL x"}',
}


def multipart(parts: bytes, boundary: str = "zq") -> tuple[str, bytes]:
    return f"multipart/form-data; boundary={boundary}", parts


def part(name: str, content: str = "x", more: str = "") -> bytes:
    return f'--zq\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{content}\r\n'.encode()


PLAIN_FORM = "application/x-www-form-urlencoded"
END = b"--zq--\r\n"
FORMS: dict[str, Form] = {
    "many fields": lambda: (PLAIN_FORM, "&".join(f"f{n}=x" for n in range(20_000)).encode()),
    "one field often": lambda: (PLAIN_FORM, b"event=go&" * 20_000),
    "nothing but marks": lambda: (PLAIN_FORM, b"&" * 1_000_000),
    "a field too large": lambda: (PLAIN_FORM, b"reason=" + b"x" * 3_000_000),
    "a field with no end of escapes": lambda: (PLAIN_FORM, b"reason=" + b"%F0%9F%9A%82" * 80_000),
    "half of UTF-8": lambda: (PLAIN_FORM, b"event=%FF%FE&reason=%ED%A0%80"),
    "an encoding that is none": lambda: (f"{PLAIN_FORM}; charset=zq-99", b"event=go"),
    "many parts": lambda: multipart(b"".join(part(f"f{n}") for n in range(5_000)) + END),
    "many files": lambda: multipart(b"".join(part(f"f{n}", more='; filename="x"') for n in range(2_000)) + END),
    "a part in a part": lambda: multipart(b"--zq\r\nContent-Type: multipart/mixed; boundary=zq\r\n\r\n" * 2_000 + END),
    "a part without an end": lambda: multipart(part("event", "x" * 200_000)),
    "a part with no end of headers": lambda: multipart(b"--zq\r\n" + b"X-Zq: 1\r\n" * 100_000 + b"\r\nx\r\n" + END),
    "a part with one long header": lambda: multipart(b"--zq\r\nX-Zq: " + b"x" * 500_000 + b"\r\n\r\nx\r\n" + END),
    "a header of semicolons": lambda: multipart(part("event", more=";" * 100_000) + END),
    "a name that is a path": lambda: multipart(part("file", more='; filename="../../../../etc/passwd"') + END),
    "a code that is none": lambda: multipart(
        b'--zq\r\nContent-Disposition: form-data; name="event"\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!\r\n'
        + END
    ),
    "no boundary": lambda: ("multipart/form-data", part("event") + END),
    "a boundary that is too long": lambda: multipart(part("event") + END, "z" * 5_000),
    "a boundary that never comes": lambda: multipart(b"x" * 500_000, "zq"),
}
HEADERS: dict[str, dict[str, str]] = {
    "many cookies": {"Cookie": "; ".join(f"c{n}=x" for n in range(5_000))},
    "a long cookie": {"Cookie": "sessionid=" + "x" * 60_000},
    "a cookie of quotes": {"Cookie": 'sessionid="' + '\\"' * 20_000},
    "many languages": {"Accept-Language": ",".join(f"a{n}-b;q=0.{n % 10}" for n in range(5_000))},
    "a language of dashes": {"Accept-Language": "en-" + "-".join(["x"] * 20_000)},
    "many kinds": {"Accept": ",".join(f"a/b{n}" for n in range(5_000))},
    "many ranges": {"Range": "bytes=" + ",".join(f"{n}-{n + 1}" for n in range(5_000))},
    "many tags": {"If-None-Match": ",".join(f'"{n}"' for n in range(5_000))},
    "a tag without an end": {"If-None-Match": '"' * 50_000},
    "a date that is none": {"If-Modified-Since": "9" * 50_000},
    "a long name of a request": {"X-Request-Id": "x" * 50_000},
    "a name of a request with a line": {"X-Request-Id": "a\r\nSet-Cookie: zq=1"},
    "a token too long": {"Authorization": "Bearer sb_" + "0" * 60_000},
    "a token of letters that are digits elsewhere": {"Authorization": "Bearer sb_\u0660\u0661"},
    "a key too long": {"Idempotency-Key": "k" * 50_000},
    "a version that is none": {"If-Match": '"' + "9" * 5_000 + '"'},
    "a length that is none": {"Content-Length": "x" * 10},
    "a way back too long": {"Referer": "http://testserver/" + "x" * 60_000},
    "an address that is none": {"X-Forwarded-For": ", ".join(["::1"] * 10_000)},
    "a machine too long": {"User-Agent": "x" * 60_000},
}
QUERIES: dict[str, str] = {
    "many terms": "&".join(f"t{n}=x" for n in range(20_000)),
    "one term often": "state=x&" * 5_000,
    "a long term": "state=" + "x" * 100_000,
    "half of UTF-8": "state=%FF%FE&id=%ED%A0%80&where=%C0%AF",
    "NUL": "state=%00&id=a%00b&by=%00&is=%00",
    "numbers without an end": "page=" + "9" * 10_000 + "&before=" + "9" * 10_000 + "&limit=" + "9" * 10_000,
    "numbers below all": "page=-1&before=-1&limit=-1&version=-1",
    "letters that are digits elsewhere": "page=%D9%A1&before=%D9%A1&limit=%D9%A1&version=%D9%A1",
    "a cursor of ours": "cursor=WyJhdWRpdCIsMTAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMF0",
    "a deep cursor": "cursor=" + "W1tb" * 20_000,
}
