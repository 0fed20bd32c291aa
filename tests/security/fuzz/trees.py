"""Random expressions: trees over every documented function, most of them well typed, and shapes made to be dear.

A type is one letter: ``n`` number, ``s`` text, ``l`` list, ``o`` object, ``b`` truth value, ``x`` any.
"""

from __future__ import annotations

import random
import re

#: what each function takes; ``*`` stands for more of the last one, ``?`` for what may be left out
SIGNATURES = {
    "len": "x", "min": "xx*", "max": "xx*", "abs": "n", "round": "n?n", "floor": "n", "ceil": "n", "int": "x",
    "number": "x", "str": "x", "bool": "x", "lower": "s", "upper": "s", "strip": "s", "startswith": "ss",
    "endswith": "ss", "contains": "xx", "split": "ss", "join": "ls", "replace": "sss", "keys": "o", "values": "o",
    "sum": "l", "sorted": "l", "random": "", "random_token": "n", "sqrt": "n", "exp": "n", "log": "n", "sign": "n",
    "range": "nn", "fail": "s", "item": "xx", "length": "x", "has": "xx", "filled": "x", "put": "lnx", "without": "ox",
    "concat": "xx*", "slice": "x?nn", "substring": "sn?n", "char_at": "sn", "char_code": "sn", "repeated": "sn",
    "characters": "s", "index_of": "xx?n", "last_index_of": "xx", "replace_first": "sss", "reversed": "l",
    "is_list": "x", "json": "x", "parse_json": "s", "truthy": "x", "typeof": "x", "plus": "xx", "remainder": "nn",
    "loosely_equal": "xx", "less": "xx", "more": "xx", "at_most": "xx", "at_least": "xx", "to_text": "x",
    "joined": "l?s", "fixed": "n?n", "parse_int": "s?n", "parse_float": "s", "is_nan": "x",
}  # fmt: skip
#: what gives a value of that type
GIVES = {
    "n": [
        "len", "abs", "round", "floor", "ceil", "int", "number", "sum", "sqrt", "exp", "log", "sign", "remainder",
        "index_of", "last_index_of", "random", "char_code", "parse_int", "parse_float", "length", "min", "max", "plus",
        "item",
    ],
    "s": [
        "str", "lower", "upper", "strip", "join", "replace", "random_token", "substring", "char_at", "repeated",
        "replace_first", "json", "typeof", "to_text", "joined", "fixed", "slice", "concat", "plus", "item",
        "max", "min",
    ],
    "l": [
        "split", "keys", "values", "sorted", "range", "concat", "slice", "characters", "reversed", "put", "parse_json",
        "item", "without",
    ],
    "o": ["put", "without", "parse_json", "item", "filled"],
    "b": [
        "bool", "startswith", "endswith", "contains", "has", "is_list", "truthy", "loosely_equal", "less", "more",
        "at_most", "at_least", "is_nan",
    ],
}  # fmt: skip
NUMBERS = ["0", "1", "-1", "2", "0.5", "16", "64", "9999", "10000", "10001", "65536", "1e308", "-1e308", "2.0**53",
           "9007199254740991", "2.0**60", "1/3", "n", "now", "event.n", "instance.revision"]  # fmt: skip
TEXTS = ["''", "'x'", "'a,b'", "'é😀'", "'12'", "'[1,2]'", "'0x1f'", "' '", "s", "u", "event.s", "instance.id",
         "repeated('x', 65000)", "repeated('ab ', 20000)", "repeated('é', 30000)", "instance.state"]  # fmt: skip
LISTS = ["[]", "[1, 2, 3]", "['b', 'a']", "[[], {}]", "l", "m", "event.l", "range(0, 9999)", "range(0.5, 9999)",
         "range(2.0**60, 2.0**60 + 512)", "characters(s)", "split(s, 'x')", "[s, s, s]", "[l, l, l]"]  # fmt: skip
OBJECTS = ["{}", "{'a': 1}", "o", "event", "event.o", "instance", "trigger", "{'a': s, 'b': l}", "put(o, 'k', l)"]
TRUTHS = ["True", "False", "None", "In('A')", "n > 0", "'x' in s", "1 in l", "'k1' in o", "l == m", "s < u"]
LEAVES = {"n": NUMBERS, "s": TEXTS, "l": LISTS, "o": OBJECTS, "b": TRUTHS}
BINARY = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
MOST_TEXT, MOST_PARTS = 3900, 480  # of an expression, a little below what the engine takes
ODD = 0.08  # chance that an argument has any type at all
_PART = re.compile(r"'[^']*'|[A-Za-z_]\w*|\d[\w.]*|[-+*/<>=!%]+")

Random = random.Random


def leaf(rng: Random, kind: str) -> str:
    return rng.choice(LEAVES[kind if kind in LEAVES else rng.choice("nnsslob")])


def arguments(rng: Random, name: str) -> str:
    """The types of one call's arguments."""
    wanted, _, optional = SIGNATURES[name].partition("?")
    if wanted.endswith("*"):
        wanted = wanted[:-2] + wanted[-2] * rng.choice([0, 1, 2, 5, 20])
    return wanted + optional[: rng.randint(0, len(optional))]


def tree(rng: Random, kind: str = "x", depth: int = 4) -> str:
    """An expression that mostly gives such a value."""
    if rng.random() < ODD:
        kind = rng.choice("nslob")
    if depth <= 0 or rng.random() < 0.2:
        return leaf(rng, kind)
    if rng.random() < 0.25:
        return operation(rng, kind, depth)
    names = GIVES.get(kind) or sorted(SIGNATURES)
    name = rng.choice(names)
    return f"{name}({', '.join(tree(rng, wanted, depth - 1) for wanted in arguments(rng, name))})"


def operation(rng: Random, kind: str, depth: int) -> str:
    def part(wanted: str = kind) -> str:
        return tree(rng, wanted, depth - 1)

    forms = [
        lambda: f"({part()} {rng.choice(BINARY)} {part()})",
        lambda: f"({part('x')} if {part('b')} else {part('x')})",
        lambda: f"(not {part('b')})",
        lambda: f"(-{part('n')})",
        lambda: "[" + ", ".join(part("x") for _ in range(rng.randint(0, 4))) + "]",
        lambda: "{" + ", ".join(f"'k{number}': {part('x')}" for number in range(rng.randint(0, 3))) + "}",
        lambda: f"{part('l')}[{part('n')}]" if rng.random() < 0.5 else f"({part('o')}).a",
        lambda: f"({part('n')} < {part('n')} <= {part('n')})",
    ]
    return rng.choice(forms)()


# Shapes that repeat one dear thing as often as an expression may have parts.

#: what is dear by itself
CORES = ["s", "l", "o", "m", "u", "event.l", "event.s", "range(0, 9999)", "range(0.5, 9999)", "characters(s)",
         "split(s, 'x')", "split(s, ' ')", "parse_json(j)", "repeated('x', 65000)", "sorted(l)", "keys(o)", "values(o)",
         "json(l)", "str(l)", "lower(s)", "strip(s)", "reversed(l)", "concat(l, l)", "[s, s]", "[l, l]", "[o, o]",
         "put(l, 1, 1)", "slice(s, 1)", "replace(s, 'x', 'y')", "join(l, s)", "to_text(l)", "concat(s, s)", "s + s",
         "l + l", "instance", "event", "random_token(64)", "substring(s, 1, 29999)", "1e308"]  # fmt: skip
#: what is made of one thing, or of a list of things
WHOLE = ["sorted", "json", "str", "len", "joined", "max", "min", "to_text", "reversed", "int", "bool", "is_nan", "keys",
         "values", "sum", "filled", "typeof", "characters", "strip", "lower", "parse_json", "parse_int"]  # fmt: skip
PAIRED = [
    "loosely_equal", "less", "more", "at_most", "at_least", "index_of", "last_index_of", "contains", "concat",
    "plus", "item", "has", "startswith", "endswith", "split", "join", "joined", "max", "min", "without",
]  # fmt: skip
COMPARED = ["==", "!=", "<", ">=", "in", "not in"]


def wide(rng: Random) -> str:
    """As many times the same as there is room for."""
    core = rng.choice(CORES)
    if rng.random() < 0.4:
        core = f"{rng.choice(WHOLE)}({core})"
    if rng.random() < 0.3:
        core = f"{rng.choice(PAIRED)}({core}, {rng.choice(CORES)})"
    before, between, after = rng.choice([
        (f"{rng.choice(WHOLE)}([", ", ", "])"),
        (f"len({rng.choice(WHOLE)}([", ", ", "])) == 0"),
        ("", f" {rng.choice(COMPARED)} {rng.choice(['0', 'None', 's', 'l', 'm', 'u', core])} or ", " == 0"),
        ("", f" {rng.choice(COMPARED)} ", ""),
        ("", " + ", ""),
        ("", " and ", ""),
        (f"{rng.choice(['max', 'min', 'concat'])}(", ", ", ")"),
        (f"{rng.choice(CORES)} {rng.choice(COMPARED)} [", ", ", "]"),
        (f"{rng.choice(PAIRED)}([", ", ", f"], {rng.choice(CORES)})"),
    ])  # fmt: skip
    most = min(
        (MOST_TEXT - len(before) - len(after)) // (len(core) + len(between)),
        (MOST_PARTS - parts(before + after)) // (parts(core + between) + 1),
    )
    return before + between.join([core] * max(1, rng.choice([most, most // 2, most // 10]))) + after


def nested(rng: Random) -> str:
    """One call inside another, as deep as may be."""
    names = [name for name, takes in SIGNATURES.items() if takes in ("x", "s", "l", "o", "n")]
    chosen = [rng.choice(names) for _ in range(rng.randint(1, 3))]
    found = rng.choice(CORES)
    for level in range(rng.choice([3, 10, 28])):
        found = f"{chosen[level % len(chosen)]}({found})"
    return found


def searching(rng: Random) -> str:
    """Looking for a long part in a long text that has nearly the same everywhere."""
    text, part = rng.choice([
        ("repeated('a', 65000)", "repeated('a', 32000) + 'b'"),
        ("s", "repeated(slice(s, 0, 1), 30000) + 'b'"),
        ("repeated('ab', 32000)", "repeated('ab', 16000) + 'a!'"),
        ("u", "substring(s, 0, 30000)"),
    ])  # fmt: skip
    return rng.choice([
        f"{part} in {text}", f"len(split({text}, {part}))", f"replace({text}, {part}, 'x') == ''",
        f"index_of({text}, {part})", f"last_index_of({text}, {part})", f"replace_first({text}, {part}, '')",
        f"contains({text}, {part})", f"{text} < {text}", f"startswith({text}, {part})",
    ])  # fmt: skip


def parts(text: str) -> int:
    """About as many parts as the engine counts."""
    return len(_PART.findall(text))


def expression(rng: Random) -> str:
    """Any of them, no longer than the engine takes."""
    made = rng.choices([lambda: tree(rng, rng.choice("nslobx"), rng.randint(1, 5)), lambda: wide(rng),
                        lambda: nested(rng), lambda: searching(rng)], weights=[4, 5, 1, 1])[0]()  # fmt: skip
    return made if len(made) <= MOST_TEXT else leaf(rng, "x")
