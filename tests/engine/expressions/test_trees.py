"""Each construct of the language becomes the tree the functions library evaluates."""

from __future__ import annotations

from machines.engine.expressions import FUNCTIONS, parse, read, references
from tests.cases import for_each

N, ONE, TWO = ["data", "n"], ["num", 1], ["num", 2]


@for_each(
    "text, tree",
    [
        ("None", ["null"]),
        ("True", ["true"]),
        ("False", ["false"]),
        ("3.5", ["num", 3.5]),
        ("1_000", ["num", 1000]),
        ("'it''s'", ["str", "its"]),
        ('"a\\n😀"', ["str", "a\n😀"]),
        ("n", N),
        ("event", ["event"]),
        ("now", ["now"]),
        ("trigger", ["trigger"]),
        ("trigger.name", ["get", ["trigger"], ["str", "name"]]),
        ("instance.id", ["get", ["instance"], ["str", "id"]]),
        ("event.token", ["get", ["event"], ["str", "token"]]),
        ("n['a b'][-1]", ["get", ["get", N, ["str", "a b"]], ["num", -1]]),
        ("n[n]", ["get", N, N]),
        ("[1, (2,), []]", ["list", ONE, ["list", TWO], ["list"]]),
        ("{'a': 1, 'b': {}}", ["obj", ["a", ONE], ["b", ["obj"]]]),
        ("1 and 2 and n", ["and", ONE, TWO, N]),
        ("1 or not n", ["or", ONE, ["not", N]]),
        ("-n", ["neg", N]),
        ("-2", ["num", -2]),
        ("+2", ["num", 2]),
        ("1 < n <= 2", ["cmp", ONE, ["<", N], ["<=", TWO]]),
        ("n == 1", ["cmp", N, ["==", ONE]]),
        ("n != 1", ["cmp", N, ["!=", ONE]]),
        ("n is None", ["cmp", N, ["==", ["null"]]]),
        ("n is not None", ["cmp", N, ["!=", ["null"]]]),
        ("1 in n", ["cmp", ONE, ["in", N]]),
        ("1 not in n", ["cmp", ONE, ["not in", N]]),
        ("1 if n else 2", ["if", N, ONE, TWO]),
        ('In("On hold")', ["in", "On hold"]),
        ("min(1, 2)", ["call", "min", ONE, TWO]),
        ("random()", ["call", "random"]),
        ("  n \n + 1 ", ["bin", "+", N, ONE]),
        ("n # a comment", N),
    ],
)
def test_a_construct_becomes_its_tree(text, tree):
    assert parse(text) == tree


@for_each("operator", ["+", "-", "*", "/", "//", "%", "**"])
def test_arithmetic_keeps_its_operator(operator):
    assert parse(f"n {operator} 2") == ["bin", operator, N, TWO]


def test_precedence_is_that_of_python():
    assert parse("1 + 2 * n") == ["bin", "+", ONE, ["bin", "*", TWO, N]]
    assert parse("-n ** 2") == ["neg", ["bin", "**", N, TWO]]


def test_whole_floats_read_as_integers_so_that_digests_agree():
    assert parse("3.0") == ["num", 3]
    assert isinstance(parse("3.0")[1], int)


def test_each_leaf_of_a_guard_keeps_its_source_text():
    tree = parse("event.token == token and not (failed < 3 or In('Held'))", guard=True)
    assert tree[0] == "and"
    assert tree[1][:2] == ["because", "event.token == token"]
    assert [leaf[1] for leaf in tree[2][1][1:]] == ["failed < 3", "In('Held')"]


def test_a_guard_without_and_or_not_is_one_leaf():
    assert parse("n if n else 1", guard=True)[:2] == ["because", "n if n else 1"]


def test_the_text_of_a_leaf_counts_characters_not_bytes():
    assert parse("'é😀' == n and n == 'ü'", guard=True)[2][1] == "n == 'ü'"


def test_references_are_the_names_a_tree_reads():
    tree = parse("token == event.token and now > min(expires, 3) and {'x': a}['x'] == 'str'", guard=True)
    assert references(tree) == {"token", "event", "now", "expires", "a"}


def test_the_facts_of_an_event_are_a_name_of_their_own():
    assert references(parse("trigger.type == 'external' and instance.id")) == {"trigger", "instance"}
    assert [(use.kind, use.name) for use in read("trigger.name").uses] == [("trigger", "name")]


def test_keys_and_texts_are_no_references():
    assert references(parse("{'data': 'event', 'event': 1}['now'] == In('data')")) == set()


@for_each("function", FUNCTIONS.values())
def test_a_function_is_called_with_as_many_arguments_as_its_usage_shows(function):
    count = function.usage.count(",") + 1 if function.least else 0
    assert parse(f"{function.name}({', '.join(['n'] * function.least)})") == [
        "call",
        function.name,
        *[N] * function.least,
    ]
    assert function.takes(min(count, function.most or count))
