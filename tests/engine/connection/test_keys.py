"""Every key literal, pinned. A change here is a change of the data layout."""

import re

from machines.engine.connection import library
from machines.engine.keys import PREFIX, Keys, Partition, choose_partition, crc16
from tests.cases import for_each
from tests.engine.builders import machine, publish
from tests.engine.dumps import keys_left

ROOT = "sb:{activation:0}"
LITERALS = {
    ("meta",): ":meta",
    ("states",): ":states",
    ("queues",): ":queues",
    ("flow",): ":flow",
    ("log",): ":log",
    ("pulse",): ":pulse",
    ("edited",): ":edited",
    ("bells",): ":bells",
    ("clock",): ":bell",
    ("timers",): ":timers",
    ("late",): ":late",
    ("refused",): ":refused",
    ("outbox",): ":out",
    ("floors",): ":floors",
    ("seen", "sb:{order:3}"): ":seen:sb:{order:3}",
    ("held", "ATV-123:ABC"): ":held:ATV-123:ABC",
    ("undo", "ATV-123:ABC"): ":undo:ATV-123:ABC",
    ("definition", 3): ":def:3",
    ("instance", "ATV-123:ABC"): ":i:ATV-123:ABC",
    ("state", "On hold"): ":in:On hold",
    ("history", "ATV-123:ABC"): ":h:ATV-123:ABC",
    ("outcome", "é:1", "req-42"): ":k:4:é:1:req-42",
    ("creation", "é:1", "req-42"): ":c:4:é:1:req-42",
    ("job", "0-17"): ":job:0-17",
    ("ready", "todo"): ":q:todo",
    ("leased", "todo"): ":q:todo:leased",
    ("delayed", "todo"): ":q:todo:delayed",
    ("dead", "todo"): ":q:todo:dead",
    ("handled", "todo"): ":q:todo:handled",
    ("bell", "todo"): ":q:todo:bell",
    ("rules", "todo"): ":q:todo:rules",
    ("turns", "todo"): ":q:todo:turns",
    ("limits", "todo"): ":q:todo:limits",
    ("members", "todo"): ":q:todo:members",
    ("admitted", "todo"): ":q:todo:admitted",
    ("arrivals", "todo"): ":q:todo:arrivals",
    ("releases", "todo"): ":q:todo:releases",
    ("stats", "todo"): ":qs:todo",
    ("unique", "todo", "serial:7"): ":u:todo:serial:7",
    ("withdrawn", "0-17"): ":w:0-17",
    ("lookup", "serial"): ":by:serial",
    ("filling",): ":filling",
    ("versions",): ":versions",
    ("wrong",): ":wrong",
    ("staged",): ":staged",
    ("imported", "3f2a"): ":imported:3f2a",
    ("pages", "totals:1f"): ":mr:pages:totals:1f",
    ("index", "totals:1f"): ":mr:index:totals:1f",
    ("parts", "totals:1f"): ":mr:parts:totals:1f",
    ("result", "totals:1f"): ":mr:result:totals:1f",
    ("bulk_order", "3f2a"): ":bk:order:3f2a",
    ("bulk_items", "3f2a"): ":bk:items:3f2a",
    ("bulk_previews", "3f2a"): ":bk:verdicts:3f2a",
    ("bulk_outcomes", "3f2a"): ":bk:outcomes:3f2a",
    ("enqueued", "req-42"): ":once:req-42",
    ("batch", "import-7"): ":batch:import-7",
    ("schedule", "nightly"): ":sc:nightly",
    ("task_result", "0-17"): ":task:0-17",
    ("task_errors", "0-17"): ":task:0-17:errors",
}


@for_each("call, suffix", LITERALS.items())
def test_each_key_of_a_partition_is_what_it_is(call, suffix):
    partition = Keys().partition("activation")
    attribute = getattr(partition, call[0])
    assert (attribute(*call[1:]) if len(call) > 1 else attribute) == ROOT + suffix


def test_each_key_outside_the_partitions_is_what_it_is():
    assert PREFIX == "sb:"
    assert (Keys().machines, Keys().layout, Keys().workers) == ("sb:machines", "sb:layout", "sb:workers")
    assert Keys().worker("host:1") == "sb:worker:host:1"
    assert (Keys().order("host:1"), Keys().news) == ("sb:worker:host:1:order", "sb:news")
    assert Keys().library_lock(7) == "sb:{library:7}:loading"
    assert (Keys().shares, Keys().revision) == ("sb:shares", "sb:revision")
    assert Keys().output(ROOT, "0-17") == ROOT + ":output:0-17"
    assert Keys("t:").partition("door", 5).root == "t:{door:5}"
    assert (Keys().jobs_pattern(), Keys("a*:").jobs_pattern("door")) == ("sb:{*:*}:[jq]*", "a\\*:{door:*}:[jq]*")


def test_every_key_that_python_builds_is_pinned_here():
    built = {name for name in vars(Partition) if not name.startswith("_") and name != "root"}
    assert built == {call[0] for call in LITERALS}


def list_lua_keys() -> set[str]:
    text = library.module_paths()["keys"].read_text(encoding="utf-8")
    return set(re.findall(r"^function keys\.(\w+)", text, re.MULTILINE))


def test_lua_builds_the_keys_that_its_functions_use_and_python_knows_them():
    paths = [path for path in library.FOLDER.rglob("*.lua") if path.name != "keys.lua"]
    used = {name for path in paths for name in re.findall(r"\bkeys\.(\w+)", path.read_text())}
    assert list_lua_keys() <= used & {call[0] for call in LITERALS}


LUA = """#!lua name={name}
local keys = (function()
{module}
end)()
redis.register_function{{ function_name = '{name}', flags = {{ 'no-writes' }}, callback = function(_, args)
    return keys[args[1]](unpack(args, 2))
end }}
"""


def test_lua_builds_each_key_letter_for_letter_as_python_does(engine, prefix):
    name = f"probe_{prefix.strip(':')}"
    module = library.module_paths()["keys"].read_text(encoding="utf-8")
    engine.client.function_load(LUA.format(name=name, module=module))
    try:
        for call, suffix in ((call, suffix) for call, suffix in LITERALS.items() if call[0] in list_lua_keys()):
            assert engine.client.fcall_ro(name, 0, call[0], ROOT, *call[1:]) == ROOT + suffix
    finally:
        engine.client.function_delete(name)


def test_no_lua_file_but_keys_puts_a_key_together():
    for path in library.FOLDER.rglob("*.lua"):
        if path.name not in ("keys.lua", "pattern_keys.lua"):
            found = re.findall(r"root \.\. '", path.read_text(encoding="utf-8"))
            assert found == [] or path.name == "programs.lua", path  # the cache slot there is no key


def test_a_run_leaves_only_keys_that_are_listed_here(engine):
    states = {
        "Shut": {"on": {"open": {"target": "Open", "actions": {"emit": {"type": "opened"}}}}},
        "Open": {"invoke": {"src": "work", "retry": {"attempts": 2}, "unique": "instance.id"}, "on": {"shut": "Shut"}},
    }
    name = publish(engine, machine("door", states, queues={"work": {"rate": "1000/s"}}))
    for id in ("a", "b", "c", "d"):
        engine.create(name, id, key="once")
        engine.fire(name, id, "open", key="once")
    delayed, dead, held = engine.take(name, "work", "w", count=3)
    engine.fail(delayed, "no")
    engine.fail(dead, "no", retry=False)
    engine.fire(name, held.instance, "shut")
    engine.fire(name, held.instance, "open")
    engine.take(name, "work", "w")
    known = [re.escape("{door:0}" + suffix) for call, suffix in LITERALS.items() if len(call) == 1]
    known += [r"\{door:0\}:(def:1|i:[abcd]|in:(Shut|Open)|h:[abcd]|[kc]:1:[abcd]:once|job:0-[1-5])"]
    known += [r"\{door:0\}:q:work(:leased|:delayed|:dead|:rules)?", "machines", "revision", "layout"]
    known += [r"\{door:0\}:(qs:work|u:work:[abcd]|w:0-3|by:instance\.error)"]
    left = keys_left(engine)
    assert {key for key in left if not any(re.fullmatch(pattern, key) for pattern in known)} == set()
    assert {"{door:0}:q:work" + end for end in ("", ":leased", ":delayed", ":dead", ":rules")} <= left
    assert {"{door:0}:" + end for end in ("qs:work", "u:work:a", "w:0-3")} <= left


def test_the_checksum_is_the_one_clusters_place_keys_by():
    assert crc16(b"123456789") == 0x31C3


def test_an_instance_stays_in_its_partition():
    assert [choose_partition(id, 4) for id in ("a", "ATV-123:ABC", "é", "😀")] == [3, 0, 0, 3]
    assert choose_partition("anything", 1) == 0
