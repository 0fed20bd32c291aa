"""The SM commands: arguments and replies of the redis-state-machine module, on a server without it."""

from __future__ import annotations

import json
import threading

import pytest
import redis
from redis.exceptions import ResponseError

from machines.engine.sm_commands import shim
from tests.cases import for_each

ORDER = {
    "initial": "placed",
    "current": "placed",
    "reason": "by phone",
    "map": {"placed": ["paid", "lost"], "paid": ["sent", "placed"], "sent": [], "held": ["placed"]},
}
ANOTHER = "WRONGTYPE Operation against a key holding the wrong kind of value"
KEYED = {
    "SM.CREATE": (),
    "SM.SET": (json.dumps(ORDER),),
    "SM.GET": (),
    "SM.STATE": (),
    "SM.MUTATE": ("paid",),
    "SM.RESET": (),
}
each_keyed = pytest.mark.parametrize("command", KEYED)


@pytest.fixture
def client(redis_url):
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield shim(client)


@pytest.fixture
def sm(client, prefix):
    """Says an SM command about a key of this test's own."""

    def say(command, *words, key="order"):
        return client.execute_command(f"SM.{command}", f"{prefix}{key}", *words)

    say.key = lambda key="order": f"{prefix}{key}"
    return say


@pytest.fixture
def order(sm):
    sm("SET", json.dumps(ORDER))
    return sm


def held(sm, key="order"):
    return json.loads(sm("GET", key=key))


def test_the_template_is_a_machine_without_states(client):
    assert client.execute_command("SM.TEMPLATE") == '{"current":"","map":{},"initial":"","reason":""}'


def test_created_is_the_template_under_a_key(client, sm):
    assert sm("CREATE") == "OK"
    assert sm("GET") == client.execute_command("SM.TEMPLATE")
    assert sm("STATE") == [""]
    assert sm("STATE", "LIST") == []


def test_creating_again_empties_the_machine(order):
    assert order("CREATE") == "OK"
    assert held(order)["map"] == {}


def test_what_is_set_comes_back(sm):
    assert sm("SET", json.dumps(ORDER)) == "OK"
    assert held(sm) == ORDER


def test_the_json_comes_back_in_the_modules_order_of_fields_and_without_spaces(sm):
    sm("SET", '{ "reason": "r", "map": {"b": [], "a": ["b"]}, "initial": "a", "current": "b" }')
    assert sm("GET") == '{"current":"b","map":{"a":["b"],"b":[]},"initial":"a","reason":"r"}'


def test_what_get_gives_can_be_set(order):
    text = order("GET")
    assert order("SET", text, key="other") == "OK"
    assert order("GET", key="other") == text


@pytest.mark.parametrize(
    ("written", "said", "stands"),
    [
        ("paid", (), "paid"),
        ("", (), "placed"),
        ("paid", ("sent",), "sent"),
        ("", ("sent",), "sent"),
        ("paid", ("",), "paid"),
        ("", ("",), "placed"),
        ("nowhere", (), "nowhere"),
    ],
)
def test_a_machine_stands_where_the_call_says_else_the_json_else_where_it_begins(sm, written, said, stands):
    assert sm("SET", json.dumps(ORDER | {"current": written}), *said) == "OK"
    assert sm("STATE") == [stands]
    assert held(sm)["current"] == stands


def test_setting_again_replaces_everything(order):
    order("SET", json.dumps({"current": "", "map": {"x": ["x"]}, "initial": "x", "reason": ""}))
    assert held(order) == {"current": "x", "map": {"x": ["x"]}, "initial": "x", "reason": ""}


def test_fields_the_module_does_not_know_are_left_out(sm):
    sm("SET", json.dumps(ORDER | {"colour": {"deep": [1, None]}}))
    assert held(sm) == ORDER


@pytest.mark.parametrize("word", ["REASON", "reason", "Reason"])
def test_the_reason_is_asked_for_in_any_case(order, word):
    assert order("GET", word) == "by phone"


def test_an_empty_reason_is_an_empty_text_and_not_nothing(sm):
    sm("CREATE")
    assert sm("GET", "REASON") == ""


def test_another_word_after_get_is_answered_with_nothing(order):
    assert order("GET", "CURRENT") is None


def test_a_state_is_an_array_of_one(order):
    assert order("STATE") == ["placed"]


@pytest.mark.parametrize("word", ["LIST", "list", "lisT"])
def test_the_states_are_the_keys_of_the_map_in_any_case(order, word):
    assert order("STATE", word) == ["held", "paid", "placed", "sent"]


def test_mutating_follows_the_map(order):
    assert order("MUTATE", "paid") == "OK"
    assert order("STATE") == ["paid"]
    assert order("MUTATE", "placed") == "OK"
    assert held(order) == ORDER, "there and back, and the reason stays"


def test_the_third_argument_is_the_reason_whatever_it_says(order):
    assert order("MUTATE", "paid", "FORCE") == "OK"
    assert order("GET", "REASON") == "FORCE"
    with pytest.raises(ResponseError):
        order("MUTATE", "held", "FORCE")


def test_a_reason_stays_until_another_is_given(order):
    order("MUTATE", "paid", "card")
    order("MUTATE", "placed")
    assert order("GET", "REASON") == "card"
    order("MUTATE", "paid", "")
    assert order("GET", "REASON") == ""


def refused(sm, match, *words):
    """The error of a MUTATE, which leaves the machine as it was."""
    before = sm("GET")
    with pytest.raises(ResponseError, match=match):
        sm("MUTATE", *words)
    assert sm("GET") == before


@for_each("more", [(), ("why",), ("why", "FORCE")])
@for_each("target", ["nowhere", "lost", "", "PAID", " paid"])
def test_nothing_leads_to_what_is_no_key_of_the_map_not_even_force(order, target, more):
    refused(order, f"invalid state transition: '{target}' is no key of the map", target, *more)


def test_where_the_state_does_not_lead_is_an_error_that_says_where_it_does(order):
    refused(order, "'placed' does not lead to 'sent'; it leads to 'paid', 'lost'", "sent", "why")
    order("MUTATE", "paid")
    order("MUTATE", "sent")
    refused(order, "'sent' does not lead to 'held'; it leads to nothing", "held")


@pytest.mark.parametrize("word", ["FORCE", "force", "fOrCe"])
def test_force_goes_to_any_state_of_the_map(order, word):
    assert order("MUTATE", "held", "an audit", word) == "OK"
    assert held(order) == ORDER | {"current": "held", "reason": "an audit"}


@for_each("target", ["paid", "held"])
@for_each("word", ["", "F", "FORCED", "LIST", "REASON"])
def test_a_fourth_argument_that_is_not_force_is_an_error_wherever_it_would_go(order, word, target):
    refused(order, f"invalid command option '{word}'", target, "why", word)


def test_staying_is_a_move_like_any_other(order):
    refused(order, "'placed' does not lead to 'placed'", "placed")
    assert order("MUTATE", "placed", "again", "FORCE") == "OK"


def test_out_of_a_state_that_is_no_key_only_force_leads(sm):
    sm("SET", json.dumps(ORDER | {"current": "nowhere"}))
    refused(sm, "'nowhere' does not lead to 'paid'; it leads to nothing", "paid")
    assert sm("MUTATE", "paid", "", "FORCE") == "OK"


def test_reset_goes_back_to_the_beginning_and_keeps_the_reason(order):
    order("MUTATE", "paid", "card")
    assert order("RESET") == "OK"
    assert held(order) == ORDER | {"reason": "card"}


@pytest.mark.parametrize("command", ["GET", "STATE", "RESET"])
def test_a_missing_key_is_nothing(sm, command):
    assert sm(command) is None


@pytest.mark.parametrize("words", [("paid",), ("paid", "r", "FORCE"), ("paid", "r", "nonsense")])
def test_nothing_mutates_under_a_missing_key(client, sm, words):
    assert sm("MUTATE", *words) is None
    assert client.exists(sm.key()) == 0


@each_keyed
@pytest.mark.parametrize("kind", ["string", "list", "hash", "zset", "stream"])
def test_a_key_of_another_type_is_an_error_and_stays(client, sm, command, kind):
    key = sm.key("other")
    {
        "string": lambda: client.set(key, "x"),
        "list": lambda: client.rpush(key, "x"),
        "hash": lambda: client.hset(key, "current", "placed"),
        "zset": lambda: client.zadd(key, {"x": 1}),
        "stream": lambda: client.xadd(key, {"x": "1"}),
    }[kind]()
    before = client.dump(key)
    with pytest.raises(ResponseError, match=ANOTHER):
        client.execute_command(command, key, *KEYED[command])
    assert client.dump(key) == before


def test_other_commands_find_a_machine_to_be_of_another_type(client, order):
    with pytest.raises(ResponseError, match=ANOTHER):
        client.get(order.key())


def test_a_copy_is_a_machine_of_its_own(client, order):
    assert client.copy(order.key(), order.key("copy"))
    order("MUTATE", "paid", key="copy")
    assert (order("STATE"), order("STATE", key="copy")) == (["placed"], ["paid"])


def test_a_machine_is_deleted_renamed_and_kept_for_a_while_as_any_key(client, order):
    client.rename(order.key(), order.key("new"))
    assert (order("GET"), order("STATE", key="new")) == (None, ["placed"])
    client.pexpire(order.key("new"), 100_000)
    order("MUTATE", "paid", key="new")
    assert client.pttl(order.key("new")) > 0
    order("SET", json.dumps(ORDER), key="new")
    assert client.pttl(order.key("new")) == -1, "set anew, it stays"
    assert client.delete(order.key("new")) == 1
    assert order("STATE", key="new") is None


def test_a_machine_is_dumped_and_restored(redis_url, prefix, order):
    with redis.Redis.from_url(redis_url) as raw:
        raw.restore(order.key("back"), 0, raw.dump(order.key()))
    assert held(order, "back") == ORDER


USAGE = {
    "SM.TEMPLATE": "none",
    "SM.CREATE": "key",
    "SM.SET": "key json [current]",
    "SM.GET": "key [REASON]",
    "SM.STATE": "key [LIST]",
    "SM.MUTATE": "key state [reason [FORCE]]",
    "SM.RESET": "key",
}


@pytest.mark.parametrize("command", USAGE)
def test_too_few_or_too_many_words_are_an_error_that_says_which_there_are(client, prefix, command):
    takes = USAGE[command]
    words = 0 if takes == "none" else len(takes.split())
    fewest = 0 if takes == "none" else sum(1 for word in takes.split() if not word.startswith("["))
    expected = f"wrong number of arguments for '{command}' command; it takes {takes}"
    for count in {*range(fewest), words + 1, words + 5}:
        with pytest.raises(ResponseError) as caught:
            client.execute_command(command, *([f"{prefix}k"] * count))
        assert str(caught.value) == expected
    assert client.exists(f"{prefix}k") == 0


@pytest.mark.parametrize("keys", [0, 2])
def test_a_function_called_with_no_key_or_with_two_is_misused(client, prefix, keys):
    client.execute_command("SM.TEMPLATE")  # loads the library where nobody has yet
    for function in ("sm_create", "sm_set", "sm_get", "sm_state", "sm_mutate", "sm_reset"):
        with pytest.raises(ResponseError, match="wrong number of arguments"):
            client.execute_command("FCALL", function, keys, f"{prefix}a", f"{prefix}b")
    with pytest.raises(ResponseError, match="wrong number of arguments"):
        client.execute_command("FCALL", "sm_template", 1, f"{prefix}a")


def test_two_that_race_for_one_move_are_told_apart(redis_url, order):
    """Of many that would pay an order, one does; the others find it paid."""
    done, told = [], []
    start = threading.Barrier(8)

    def pay():
        with redis.Redis.from_url(redis_url, decode_responses=True) as own:
            shim(own)
            start.wait()
            try:
                done.append(own.execute_command("SM.MUTATE", order.key(), "paid"))
            except ResponseError as error:
                told.append(str(error))

    threads = [threading.Thread(target=pay) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == ["OK"]
    assert told == ["invalid state transition: 'paid' does not lead to 'paid'; it leads to 'sent', 'placed'"] * 7
