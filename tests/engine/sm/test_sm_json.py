"""What SM.SET takes for a machine, how large it may be, and what becomes of a hash that someone else wrote into."""

from __future__ import annotations

import json

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.exceptions import ResponseError

from machines.engine.sm_commands import shim
from tests.cases import for_each

GOOD = {"current": "a", "map": {"a": ["b"], "b": []}, "initial": "a", "reason": ""}
ROOM = 128 * 1024  # bytes


@pytest.fixture
def client(redis_url):
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield shim(client)


@pytest.fixture
def key(prefix):
    return f"{prefix}machine"


def refused(client, key, text, match):
    """An error of SM.SET on a machine that is there; it stays as it is."""
    client.execute_command("SM.SET", key, json.dumps(GOOD))
    before = client.hgetall(key)
    with pytest.raises(ResponseError, match=match):
        client.execute_command("SM.SET", key, text)
    assert client.hgetall(key) == before


@pytest.mark.parametrize("field", GOOD)
def test_each_of_the_four_fields_must_be_there(client, key, field):
    text = json.dumps({name: value for name, value in GOOD.items() if name != field})
    refused(client, key, text, f"current, map, initial and reason; '{field}' is missing")


@for_each("field", ["current", "initial", "reason"])
@for_each("value, kind", [(None, "null"), (1, "number"), (True, "boolean"), ([], "array"), ({}, "object")])
def test_three_of_them_are_strings(client, key, field, value, kind):
    refused(client, key, json.dumps(GOOD | {field: value}), f"'{field}' is a string, not {kind}")


@for_each(
    "map, match",
    [
        (None, "'map' is an object, not null"),
        ([], "'map' is an object, not array"),
        ([["a", ["b"]]], "'map' is an object, not array"),
        ("a", "'map' is an object, not string"),
        ({"a": "b"}, "'map' leads from 'a' to a list of states, not to string"),
        ({"a": {}}, "'map' leads from 'a' to a list of states, not to object"),
        ({"a": None}, "'map' leads from 'a' to a list of states, not to null"),
        ({"a": ["b", 1]}, "'map' leads from 'a' to a number, and states are strings"),
        ({"a": [None]}, "'map' leads from 'a' to a null, and states are strings"),
        ({"a": [["b"]]}, "'map' leads from 'a' to a array, and states are strings"),
    ],
)
def test_a_map_leads_from_states_to_lists_of_states(client, key, map, match):
    refused(client, key, json.dumps(GOOD | {"map": map}), match)


@pytest.mark.parametrize("text", ["[]", '"x"', "1", "null", json.dumps(["a", {}, "a", ""])])
def test_a_machine_is_an_object(client, key, text):
    refused(client, key, text, "a state machine is a JSON object")


@for_each(
    "text",
    [
        "",
        "{",
        "nonsense",
        json.dumps(GOOD) + "x",
        json.dumps(GOOD).replace(":", "=", 1),
        json.dumps(GOOD)[:-1] + ",}",
        json.dumps(GOOD).replace('"a"', "'a'"),
        json.dumps(GOOD).replace('"reason": ""', '"reason": "\\ud800"'),
        json.dumps(GOOD).replace('"reason": ""', '"reason": "\\u0000"'),
        json.dumps(GOOD).replace('"reason": ""', '"reason": "", "n": NaN'),
        json.dumps(GOOD).replace('"reason": ""', '"reason": "", "reason": ""'),
        json.dumps(GOOD).replace('"b": []', '"a": []'),
        "[" * 5000,
    ],
)
def test_what_readers_of_json_would_not_agree_on_is_refused(client, key, text):
    refused(client, key, text, "not JSON at byte")


@pytest.mark.parametrize("text", [b'{"current":"\xff"}', b"\xc3\x28", b"\xed\xa0\x80"])
def test_json_is_utf_8(client, key, text):
    refused(client, key, text, "JSON in UTF-8")


def test_a_machine_has_its_bounds(client, key):
    base = len(json.dumps(GOOD | {"pad": ""}))
    assert client.execute_command("SM.SET", key, json.dumps(GOOD | {"pad": "x" * (ROOM - base)})) == "OK"
    refused(client, key, json.dumps(GOOD | {"pad": "x" * (ROOM - base + 1)}), "at most 131072 bytes of JSON")
    refused(client, key, json.dumps(GOOD | {"map": {"\x7f" * 60_000: []}}, ensure_ascii=False), "'map' has at most")
    for field in ("current", "initial", "reason"):
        assert client.execute_command("SM.SET", key, json.dumps(GOOD | {field: "x" * 4000})) == "OK"
        refused(client, key, json.dumps(GOOD | {field: "x" * 4001}), f"'{field}' has at most 4000 bytes")


def test_arguments_beside_the_json_have_theirs(client, key):
    text = json.dumps(GOOD)
    for bad in ("x" * 4001, b"\xff", "nul\0"):
        with pytest.raises(ResponseError, match="a state (has at most 4000 bytes|is UTF-8 without NUL)"):
            client.execute_command("SM.SET", key, text, bad)
        assert client.exists(key) == 0
    client.execute_command("SM.SET", key, text)
    for bad in ("x" * 4001, b"\xff", "nul\0"):
        with pytest.raises(ResponseError, match="a reason (has at most 4000 bytes|is UTF-8 without NUL)"):
            client.execute_command("SM.MUTATE", key, "b", bad)
    assert json.loads(client.execute_command("SM.GET", key)) == GOOD


def test_an_error_does_not_repeat_a_long_name_in_full(client, key):
    client.execute_command("SM.SET", key, json.dumps(GOOD | {"current": "c" * 4000, "map": {"b": []}}))
    with pytest.raises(ResponseError) as caught:
        client.execute_command("SM.MUTATE", key, "b")
    assert len(str(caught.value)) < 200
    with pytest.raises(ResponseError) as caught:
        client.execute_command("SM.MUTATE", key, "é" * 100_000)
    assert len(str(caught.value)) < 200
    client.execute_command("SM.SET", key, json.dumps(GOOD | {"map": {"a": [f"s{n}" for n in range(5000)], "b": []}}))
    with pytest.raises(ResponseError, match="'s7', ...$"):
        client.execute_command("SM.MUTATE", key, "b")


names = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)


@settings(max_examples=60)
@given(map=st.dictionaries(names, st.lists(names, max_size=4), max_size=6), current=names, initial=names, reason=names)
def test_any_machine_comes_back_as_it_was_and_lists_and_follows_its_map(client, key, map, current, initial, reason):
    machine = {"current": current, "map": map, "initial": initial, "reason": reason}
    client.execute_command("SM.SET", key, json.dumps(machine))
    stands = current or initial
    assert json.loads(client.execute_command("SM.GET", key)) == machine | {"current": stands}
    assert client.execute_command("SM.STATE", key, "LIST") == sorted(map, key=str.encode)
    for target in {*map, *map.get(stands, [])}:
        client.execute_command("SM.SET", key, json.dumps(machine))
        if target in map and target in map.get(stands, []):
            assert client.execute_command("SM.MUTATE", key, target) == "OK"
            assert client.execute_command("SM.STATE", key) == [target]
        else:
            with pytest.raises(ResponseError, match="invalid state transition"):
                client.execute_command("SM.MUTATE", key, target)
            assert client.execute_command("SM.STATE", key) == [stands]


@for_each(
    "field, value",
    [
        ("map", None),
        ("map", ""),
        ("map", '{"a":'),
        ("map", "[]"),
        ("map", '{"a":"b"}'),
        ("map", b'{"\xff":[]}'),
        ("map", '{"a":[' + '"b",' * 50_000 + '"b"]}'),
        ("current", None),
        ("initial", None),
        ("reason", b"\xff"),
    ],
)
@for_each("command", ["SM.GET", "SM.STATE", "SM.MUTATE", "SM.RESET"])
def test_a_hash_someone_else_wrote_into_is_an_error_until_it_is_set_anew(client, key, field, value, command):
    client.execute_command("SM.SET", key, json.dumps(GOOD))
    client.hdel(key, field) if value is None else client.hset(key, field, value)
    words = ("b",) if command == "SM.MUTATE" else ()
    with pytest.raises(ResponseError, match=f"this state machine was damaged: (its field )?'{field}'"):
        client.execute_command(command, key, *words)
    assert client.execute_command("SM.SET", key, json.dumps(GOOD)) == "OK"
    assert json.loads(client.execute_command("SM.GET", key)) == GOOD


def test_a_layout_of_another_release_is_said(client, key):
    client.execute_command("SM.SET", key, json.dumps(GOOD))
    client.hset(key, "_sm", "2")
    with pytest.raises(ResponseError, match="kept in layout '2'; this library knows 1"):
        client.execute_command("SM.GET", key)


def test_what_a_machine_is_kept_as(client, key):
    """The layout: readable in redis-cli, and a change of it needs another number."""
    client.execute_command("SM.SET", key, json.dumps(GOOD))
    assert client.hgetall(key) == {
        "_sm": "1",
        "current": "a",
        "initial": "a",
        "reason": "",
        "map": '{"a":["b"],"b":[]}',
    }


@pytest.mark.hostile
def test_what_many_maps_mean_is_kept_within_bounds_and_right_past_them(own_server):
    """The library remembers maps between calls; 150 large ones would be 50 MB."""
    with redis.Redis.from_url(own_server.url, decode_responses=True) as client:
        shim(client)
        for number in range(150):
            map = {f"s{number}": ["t"] * 10_000, "t": []}
            client.execute_command("SM.SET", "m", json.dumps(GOOD | {"map": map, "current": f"s{number}"}))
            assert client.execute_command("SM.STATE", "m", "LIST") == [f"s{number}", "t"]
            assert client.execute_command("SM.MUTATE", "m", "t") == "OK"
        assert client.info("memory")["used_memory_vm_functions"] < 25_000_000
