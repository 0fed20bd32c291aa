"""Composing the functions library, and getting it onto the server."""

import contextlib
import random
import re
import threading
from collections import Counter

import pytest
import redis

from machines.engine import Engine, errors
from machines.engine.connection import library
from tests.engine.builders import door, machine, publish

HELD = ("FCALL_RO", "sb_library", 0, "release")
OURS = [library.RELEASE, library.fingerprint(), library.SERVES]


def write(folder, **files):
    """Write Lua files: ``functions__jobs__name`` stands for functions/jobs/name.lua."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.lua"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_modules_come_after_all_they_need(tmp_path):
    text = library.compose(write(tmp_path, a="-- needs: c, b\n", b="-- needs: c\n", c="return 1\n"))
    assert text.index("local c =") < text.index("local b =") < text.index("local a =")


def test_a_file_that_is_needed_and_missing_is_named_with_the_one_that_needs_it(tmp_path):
    with pytest.raises(
        library.LibraryError, match=r"a\.lua needs a module nowhere, and no folder has a file nowhere\.lua"
    ):
        library.compose(write(tmp_path, a="-- needs: nowhere\n"))


def test_a_function_that_needs_a_missing_module_is_named_too(tmp_path):
    with pytest.raises(library.LibraryError, match=r"sb_x\.lua needs a module nowhere"):
        library.compose(write(tmp_path, functions__sb_x="-- needs: nowhere\n"))


def test_a_circle_is_shown_as_it_runs(tmp_path):
    with pytest.raises(library.LibraryError, match="a -> b -> c -> a"):
        library.compose(write(tmp_path, a="-- needs: b\n", b="-- needs: c\n", c="-- needs: a\n"))


def test_one_name_for_a_module_and_a_function_is_refused(tmp_path):
    with pytest.raises(library.LibraryError, match=r"the name sb_x: base/sb_x\.lua and functions/jobs/sb_x\.lua"):
        library.compose(write(tmp_path, base__sb_x="", functions__jobs__sb_x=""))


def test_two_modules_of_one_name_in_two_folders_are_refused_with_both_paths(tmp_path):
    with pytest.raises(library.LibraryError, match=r"two Lua files have the name a: base/a\.lua and jobs/a\.lua"):
        library.compose(write(tmp_path, base__a="", jobs__a=""))


def test_two_functions_of_one_name_in_two_folders_are_refused_with_both_paths(tmp_path):
    with pytest.raises(library.LibraryError, match=r"sb_x: functions/base/sb_x\.lua and functions/jobs/sb_x\.lua"):
        library.compose(write(tmp_path, functions__base__sb_x="", functions__jobs__sb_x=""))


def test_a_module_is_found_in_whatever_folder_it_is(tmp_path):
    files = {"jobs__a": "-- needs: b\n", "base__deep__b": "", "functions__jobs__sb_x": "-- needs: a\n"}
    text = library.compose(write(tmp_path, **files))
    assert text.index("local b =") < text.index("local a =") < text.index("library.sb_x =")


def test_no_folder_of_the_library_has_more_than_fifteen_files():
    folders = Counter(path.parent for path in library.FOLDER.rglob("*.lua"))
    assert {folder.name: count for folder, count in folders.items() if count > 15} == {}
    assert library.FOLDER not in folders


def test_comments_and_indentation_stay_in_the_files(tmp_path):
    lines = [
        "-- needs: b",
        "local a = {}",
        "",
        "function a.f()",
        "    -- why",
        "    return '--' -- kept",
        "end",
        "return a",
    ]
    text = library.compose(write(tmp_path, a="\n".join(lines), b="return {}\n"))
    assert "local a = (function()\nlocal a = {}\nfunction a.f()\nreturn '--' -- kept\nend\nreturn a\nend)()\n" in text


def test_no_file_has_a_string_of_several_lines():
    """Those of the plan of a step are Lua source, which may lose its indentation."""
    for path in library.FOLDER.rglob("*.lua"):
        if path.name != "step_plan.lua":
            assert not re.search(r"^(?!\s*--).*\[=*\[", path.read_text(encoding="utf-8"), re.MULTILINE), path


def test_the_text_and_its_fingerprint_depend_on_the_files_alone():
    assert library.compose() == library.compose() == library.text()
    assert library.fingerprint() in library.text()


def test_functions_that_write_nothing_say_so():
    ours = {
        "sb_explain",
        "sb_export",
        "sb_find",
        "sb_get",
        "sb_history",
        "sb_jobs",
        "sb_live",
        "sb_lookup",
        "sb_outbox",
        "sb_replay",
        "sb_simulate",
        "sb_stats",
    }
    ours |= {"sb_buffer_look", "sb_bus_look", "sb_lock_peek", "sb_session_list"}
    ours |= {"sb_permitted", "sb_survey", "sb_tally", "sb_waits", "sb_versions", "sb_wakeups", "sb_weigh"}
    ours |= {"sb_batch_look", "sb_classify"}
    assert library.read_only() == ours | {"sm_get", "sm_state", "sm_template"}


def test_nothing_in_the_library_is_global(engine):
    publish(engine, door(), "x")
    engine.fire("door", "x", "open")
    with pytest.raises(errors.EngineFault):
        engine._caller.command("EVAL", "return json.encode(1)", 0)


@pytest.fixture
def bare(own_server):
    """An engine on a server that has never seen the library."""
    engine = Engine.from_url(own_server.url)
    yield engine
    engine.client.close()


def test_the_first_call_loads_the_library(bare):
    assert bare.client.function_list() == []
    publish(bare, door(), "x")
    assert bare.client.execute_command(*HELD) == OURS


def test_a_server_that_lost_the_library_gets_it_again_and_the_call_goes_on(bare):
    publish(bare, door(), "x")
    bare.client.function_flush()
    assert bare.fire("door", "x", "open").revision == 2
    bare.client.function_flush()
    assert bare.get("door", "x").state == "Open"
    bare.client.function_flush()
    assert [inst.state for inst in bare.fire_many([("door", "x", "close"), ("door", "x", "open")])] == ["Shut", "Open"]
    bare.client.function_flush()
    assert bare.counts("door") == {"Shut": 0, "Open": 1}


def test_flushing_again_and_again_under_load_counts_no_call_twice_and_loses_none(bare):
    tick = {"tick": {"actions": {"set": {"n": "n + 1"}}}}
    publish(bare, machine("clock", {"Runs": {"on": tick}}, context={"n": 0}), "x")
    stop, pick = threading.Event(), random.Random(7)

    def flush():  # now in the middle of the loading, now after some steps
        while not stop.wait(pick.choice((0.001, 0.02, 0.1))):
            bare.client.function_flush()

    thread = threading.Thread(target=flush)
    thread.start()
    done = 0
    try:
        for _ in range(200):
            with contextlib.suppress(errors.EngineFault):  # flushed once more, between the loading and the second try
                bare.fire("clock", "x", "tick")
                done += 1
    finally:
        stop.set()
        thread.join()
    assert bare.get("clock", "x").data["n"] == done > 0


THROWN = {
    "throws_table": "return function() error({ sb = 'too much', hard = true }) end",
    "throws_foreign": "return function() error(setmetatable({}, { __tostring = function() return 'x' end })) end",
    "throws_fault": "return function(KEYS) local nothing; return nothing.there end",
    "throws_denied": "return function(KEYS) return redis.call('LPUSH', 'throws:text', 'x') end",
    "throws_coded": "return function() error({ err = 'MISCONF no' }) end",
    "sm_fault": "return function(KEYS) local nothing; return nothing.there end",
}


@pytest.fixture(params=["redis_url", pytest.param("other_redis_url", marks=pytest.mark.second_redis)])
def thrower(request, tmp_path):
    """A client of a server whose functions throw each kind of thing. Redis 7.0 ends at a table that is let out."""
    client = redis.Redis.from_url(request.getfixturevalue(request.param), decode_responses=True)
    text = library.compose(write(tmp_path, **{f"functions__{name}": text for name, text in THROWN.items()}))
    text = text.replace(f"name={library.NAME}", "name=throws").replace("sb_library", "throws_library")
    client.function_load(text, replace=True)
    client.set("throws:text", "x")
    yield client
    client.function_delete("throws")
    client.delete("throws:text")
    client.close()


def test_what_is_thrown_gets_out_as_an_answer_and_never_as_it_is(thrower):
    at_fault = "it read damaged keys, or is at fault itself; the log of the server says where"
    assert thrower.fcall("throws_table", 0) == ["FAULT", "throws_table: too much"]
    assert thrower.fcall("throws_foreign", 0) == ["FAULT", f"throws_foreign: {at_fault}"]
    assert thrower.fcall("throws_fault", 0) == ["FAULT", f"throws_fault: {at_fault}"]
    for name, why in [("throws_denied", "^WRONGTYPE"), ("throws_coded", "^MISCONF no"), ("sm_fault", at_fault)]:
        with pytest.raises(redis.ResponseError, match=why):
            thrower.fcall(name, 0)


def test_another_content_on_the_server_is_replaced(bare):
    other = library.text().replace(library.fingerprint(), "0123456789ab")
    bare.client.function_load(other)
    publish(bare, door(), "x")
    assert bare.client.execute_command(*HELD) == OURS


def test_the_same_content_is_not_loaded_twice(bare, own_server):
    publish(bare, door())
    second = Engine.from_url(own_server.url)
    second.machines()
    second.counts("door")
    assert bare.client.info("commandstats")["cmdstat_function|load"]["calls"] == 1
    second.client.close()


def test_load_library_replaces_whatever_is_there(bare):
    bare.load_library()
    bare.load_library()
    assert len(bare.client.function_list()) == 1
