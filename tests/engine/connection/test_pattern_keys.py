"""Every key of the patterns, pinned. A change here is a change of the data layout."""

import dataclasses
import inspect
import re

from machines.engine import pattern_keys
from machines.engine.connection import library
from machines.engine.pattern_keys import PatternKeys
from tests.cases import for_each

ROOTS = {
    ("pace", "login", "al:ice"): "sb:pace:{login:al:ice}",
    ("window", "login.name", "::1"): "sb:window:{login.name:::1}",
    ("stream", "orders"): "sb:stream:{orders}",
    ("topic", "definitions"): "sb:topic:{definitions}",
    ("buffer", "statistics", 0): "sb:buffer:{statistics:0}",
    ("lock", "scheduler"): "sb:lock:{scheduler}",
    ("record", "notes"): "sb:record:{notes}",
    ("session", "links", 3): "sb:session:{links:3}",
    ("ids", "ids"): "sb:ids:{ids}",
    ("block", "invoices"): "sb:block:{invoices}",
    ("distinct", "visitors"): "sb:distinct:{visitors}",
    ("board", "points"): "sb:board:{points}",
}
LITERALS = {
    ("pace", "run"): "",
    ("window", "count"): "",
    ("stream", "log"): ":log",
    ("stream", "dead"): ":dead",
    ("topic", "channel"): ":channel",
    ("buffer", "pending"): ":pending",
    ("buffer", "claims"): ":claims",
    ("buffer", "held"): ":held",
    ("buffer", "seq"): ":seq",
    ("buffer", "marks"): ":marks",
    ("buffer", "open", "a:{b}"): ":e:a:{b}",
    ("buffer", "batch", "1700000000000-7"): ":b:1700000000000-7",
    ("lock", "holder"): ":holder",
    ("lock", "last"): ":last",
    ("record", "last"): ":last",
    ("record", "one", "a}b:c"): ":r:a}b:c",
    ("session", "one", "0af1"): ":s:0af1",
    ("session", "of", "a}b:c"): ":of:a}b:c",
    ("ids", "nodes"): ":nodes",
    ("ids", "holders"): ":holders",
    ("ids", "guard"): ":guard",
    ("block", "next"): ":next",
    ("distinct", "set", 20454, "a:b"): ":set:20454:a:b",
    ("distinct", "sketch", 20454, "a:b"): ":sketch:20454:a:b",
    ("board", "scores", "20454"): ":scores:20454",
    ("board", "epoch"): ":epoch",
    ("board", "span"): ":span",
}
LUA = """#!lua name={name}
local patternkeys = (function()
{module}
end)()
redis.register_function{{ function_name = '{name}', flags = {{ 'no-writes' }}, callback = function(_, args)
    return patternkeys[args[1]](unpack(args, 2))
end }}
"""


@for_each("call, root", ROOTS.items())
def test_each_root_is_what_it_is_and_ends_in_its_hash_tag(call, root):
    assert getattr(PatternKeys("sb:"), call[0])(*call[1:]).root == root
    assert re.fullmatch(r"sb:[a-z]+:\{[^{}]+\}", root)


@for_each("call, suffix", LITERALS.items())
def test_each_key_below_a_root_is_what_it_is(call, suffix):
    holder = _classes()[call[0]]("sb:x:{y}")
    attribute = getattr(holder, call[1])
    assert (attribute(*call[2:]) if callable(attribute) else attribute) == "sb:x:{y}" + suffix


def test_every_root_and_key_that_python_builds_is_pinned_here():
    assert {call[0] for call in ROOTS} == {
        name for name, _ in inspect.getmembers(PatternKeys, inspect.isfunction) if name[0] != "_"
    }
    built = {
        (kind, name)
        for kind, holder in _classes().items()
        for name in vars(holder)
        if name[0] != "_" and name != "root"
    }
    assert built == {call[:2] for call in LITERALS}


def test_lua_builds_each_key_letter_for_letter_as_python_does(engine, prefix):
    module = library.module_paths()["pattern_keys"].read_text(encoding="utf-8")
    in_lua = set(re.findall(r"^function pattern_keys\.(\w+)", module, re.MULTILINE))
    assert in_lua <= {f"{call[0]}_{call[1]}" for call in LITERALS}
    name = f"probe_{prefix.strip(':')}"
    engine.client.function_load(LUA.format(name=name, module=module))
    try:
        for call, suffix in LITERALS.items():
            if f"{call[0]}_{call[1]}" in in_lua:
                made = engine.client.fcall_ro(name, 0, f"{call[0]}_{call[1]}", "sb:x:{y}", *call[2:])
                assert made == "sb:x:{y}" + suffix
    finally:
        engine.client.function_delete(name)


def _classes():
    """``lock`` -> LockKeys, and so on."""
    found = {name: member for name, member in vars(pattern_keys).items() if dataclasses.is_dataclass(member)}
    return {name.removesuffix("Keys").lower(): member for name, member in found.items() if member is not PatternKeys}
