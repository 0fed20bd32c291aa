"""Sessions under tokens: exact under a race, closed to who reads Redis, and gone when they are gone."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from machines.engine import EngineFault
from machines.engine.keys import crc16
from machines.patterns import Changed, Full, Gone, Held, Session, Sessions
from tests.engine.instances.racing import in_threads, kinds

NOW = 1_800_000_000_000
ROOT = Path(__file__).resolve().parents[2]
RACER = """
import sys
from machines.engine import Engine
from machines.patterns import Changed, Sessions
url, prefix, token = sys.argv[1:4]
sessions = Sessions(Engine.from_url(url, prefix=prefix).client, "race", prefix=prefix)
sessions.get(token)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(60):
    while True:
        held = sessions.get(token)
        try:
            sessions.put(token, {"n": held.state["n"] + 1}, expect=held.revision)
            break
        except Changed:
            continue
"""


@pytest.fixture
def make(engine, prefix):
    return partial(Sessions, engine.client, "s", prefix=prefix)


@pytest.fixture
def dump(engine, prefix):
    """Every key of the test as it is, with all it holds."""

    def read():
        keys = sorted(engine.client.scan_iter(match=f"{prefix}[^l]*", count=1000))
        readers = {"hash": engine.client.hgetall, "string": engine.client.get}
        readers["zset"] = lambda key: engine.client.zrange(key, 0, -1, withscores=True)
        return {key: readers[engine.client.type(key)](key) for key in keys}

    return read


def test_a_session_keeps_its_state_and_counts_who_wrote_it(make):
    sessions = make(ttl=60)
    made = sessions.create("ann", {"page": "é\u202e\0", "n": [1, None]}, now=NOW)
    assert (made.subject, made.revision, made.created, made.expires) == ("ann", 1, NOW, NOW + 60_000)
    assert sessions.get(made.token, now=NOW) == made
    after = sessions.put(made.token, {"n": 2}, expect=1, now=NOW)
    assert (after.state, after.revision) == ({"n": 2}, 2)
    with pytest.raises(Changed) as caught:
        sessions.put(made.token, {"n": 3}, expect=1, now=NOW)
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert sessions.put(made.token, {}, now=NOW).revision == 3
    assert sessions.of("ann", now=NOW) == [Held(made.handle, "ann", {}, 3, NOW, NOW + 60_000)]


def test_use_prolongs_a_session_by_hundredths_and_never_past_its_end(make):
    sessions = make(ttl=100, lifetime=250)
    made = sessions.create("ann", now=NOW)
    expires = [sessions.get(made.token, now=NOW + at).expires - NOW for at in (0, 999, 1000, 90_000, 180_000, 249_999)]
    assert expires == [100_000, 100_000, 101_000, 190_000, 250_000, 250_000]
    with pytest.raises(Gone):
        sessions.get(made.token, now=NOW + 250_000)
    fixed = make(ttl=100, sliding=False).create("ann", now=NOW)
    assert sessions.get(fixed.token, now=NOW + 99_999).expires == NOW + 100_000
    assert sessions.create("ann", ttl=1000, now=NOW).expires == NOW + 250_000
    assert sessions.create("ann", ttl=5, now=NOW).expires == NOW + 5000


def test_a_clock_that_is_set_back_ends_nothing_and_prolongs_nothing(make):
    sessions = make(ttl=60)
    made = sessions.create("ann", now=NOW)
    assert sessions.get(made.token, now=NOW - 3_600_000).expires == made.expires


def test_another_token_opens_the_same_session_and_the_former_one_for_its_grace(make):
    sessions = make(ttl=60)
    made = sessions.create("ann", {"n": 1}, now=NOW)
    second = sessions.rotate(made.token, grace=5, now=NOW)
    assert (second.handle, second.revision, second.state) == (made.handle, made.revision, made.state)
    assert sessions.put(made.token, {"n": 2}, now=NOW + 4999).token == made.token
    with pytest.raises(Gone):  # else who kept the former one could take the session over
        sessions.rotate(made.token, now=NOW + 4999)
    third = sessions.rotate(second.token, now=NOW + 4999)
    for token in (made.token, second.token):
        with pytest.raises(Gone):
            sessions.get(token, now=NOW + 5000)
    fourth = sessions.rotate_handle("ann", made.handle, now=NOW + 5000)
    assert sessions.get(fourth.token, now=NOW + 5000).state == {"n": 2}
    with pytest.raises(Gone):
        sessions.get(third.token, now=NOW + 5000)


def test_what_is_revoked_opens_nothing_and_only_its_own_subject_can_by_handle(make, dump):
    sessions = make(partitions=64, most=9)
    made = [sessions.create("ann", {"n": n}) for n in range(6)]
    assert [sessions.revoke(made[0].token), sessions.revoke(made[0].token)] == [True, False]
    assert sessions.revoke_handle("bob", made[1].handle) is False
    assert sessions.revoke_handle("ann", made[1].handle) is True
    assert {held.handle for held in sessions.of("ann")} == {one.handle for one in made[2:]}
    assert sessions.revoke_all("ann", but=made[2].handle) == 3
    assert sessions.get(made[2].token).state == {"n": 2}
    with pytest.raises(Gone):
        sessions.rotate_handle("bob", made[2].handle)
    for one in made[:2] + made[3:]:
        with pytest.raises(Gone):
            sessions.get(one.token)
    assert sessions.revoke_all("ann") == 1
    assert sessions.revoke_all("ann") == 0
    assert dump() == {}


def test_all_that_opens_nothing_answers_alike(make):
    sessions, other = make(partitions=2), make(partitions=2)
    made, expired, revoked = (sessions.create("ann", now=NOW) for _ in range(3))
    sessions.revoke(revoked.token, now=NOW)
    part, handle, secret = made.token.split(".")
    wrong = [
        expired.token, revoked.token, "", "x", None, 7, b"x", "9" * 4000,
        f"{part}.{handle}", f"{part}.{handle}.{secret[:-1]}",
        f"{part}.{handle}.{secret[::-1]}", f"{1 - int(part)}.{handle}.{secret}", f"0{part}.{handle}.{secret}",
        f"63.{handle}.{secret}", f"{part}.{handle[::-1]}.{secret}", f"{part}.{handle}.{secret}\n",
        f"\u0660.{handle}.{secret}",
    ]  # fmt: skip
    told = set()
    for token in wrong:
        for use in (
            sessions.get,
            partial(sessions.put, state={}),
            partial(other.put, state={}, expect=9),
            sessions.rotate,
        ):
            with pytest.raises(Gone) as caught:
                use(token, now=NOW + (3_600_000 if token == expired.token else 0))
            told.add((str(caught.value), caught.value.code))
        assert sessions.revoke(token, now=NOW + 3_600_000) is False
    assert len(told) == 1
    with pytest.raises(Gone):
        Sessions(sessions._caller.client, "other", prefix=sessions._keys.prefix).get(made.token, now=NOW)


def test_too_many_of_a_subject_are_refused_or_the_one_that_ends_first_goes(make, dump):
    sessions = make(most=2, ttl=60)
    first, second = sessions.create("ann", now=NOW), sessions.create("ann", now=NOW + 1)
    before = dump()
    with pytest.raises(Full, match="2 is the most"):
        sessions.create("ann", now=NOW + 2)
    assert dump() == before
    assert sessions.create("bob", now=NOW + 2)
    sessions.get(first.token, now=NOW + 30_000)  # so the second ends first
    third = make(most=2, ttl=60, drop=True).create("ann", now=NOW + 30_001)
    assert [held.handle for held in sessions.of("ann", now=NOW + 30_001)] == [first.handle, third.handle]
    with pytest.raises(Gone):
        sessions.get(second.token, now=NOW + 30_001)
    assert sessions.create("ann", now=NOW + 90_000)  # what expired counts no more


def test_nothing_is_kept_without_an_expiry_and_no_token_is_kept_at_all(make, engine, prefix, dump):
    sessions = make(ttl=60, partitions=3, most=2, drop=True)
    made = [sessions.create(subject, {"x": 1}) for subject in ("ann", "ann", "ann", "bob")]
    made += [sessions.rotate(made[2].token, grace=9), sessions.rotate_handle("bob", made[3].handle)]
    made.append(sessions.put(made[4].token, {"x": 2}))
    for key in engine.client.scan_iter(match=f"{prefix}session:*"):
        assert 0 < engine.client.pttl(key) <= 60_000
    kept = repr(dump())
    assert sum(one.handle in kept for one in made[:3]) == 2  # of two that end in the same ms either may go
    assert made[2].handle in kept
    for one in made:
        assert one.token not in kept
        assert one.token.rpartition(".")[2] not in kept
        assert one.token not in repr(one)
    assert crc16(b"ann") % 3 == int(made[0].token[0])


@pytest.mark.faults
def test_writers_that_race_lose_nothing(engine, redis_url, prefix):
    sessions = Sessions(engine.client, "race", prefix=prefix)
    token = sessions.create("ann", {"n": 0}).token
    words = [sys.executable, "-c", RACER, redis_url, prefix, token]
    racers = [subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in "ab"]

    def add():
        for _ in range(30):
            while True:
                held = sessions.get(token)
                try:
                    sessions.put(token, {"n": held.state["n"] + 1}, expect=held.revision)
                    break
                except Changed:
                    continue

    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    in_threads([add] * 4)
    assert [racer.communicate(timeout=90) and racer.returncode for racer in racers] == [0, 0]
    after = sessions.get(token)
    assert (after.state["n"], after.revision) == (240, 241)


def test_of_many_that_rotate_one_holds(make):
    sessions = make()
    for grace in (0, 60):
        made = sessions.create("ann")
        found = in_threads([partial(sessions.rotate, made.token, grace=grace)] * 12)
        assert kinds(found) == {"Session": 1, "Gone": 11}
        (won,) = (one for one in found if isinstance(one, Session))
        assert sessions.get(won.token).handle == made.handle


def test_what_came_before_revoking_all_is_gone_and_what_came_after_holds(make):
    sessions = make(most=1000)
    for _ in range(5):
        calls = [partial(sessions.create, "ann")] * 10 + [partial(sessions.revoke_all, "ann")]
        *made, ended = in_threads(calls)
        assert len(sessions.of("ann")) == 10 - ended
        opened = [one for one in in_threads([partial(sessions.get, one.token) for one in made]) if one in made]
        assert len(opened) == 10 - ended
        sessions.revoke_all("ann")


def test_any_subject_is_its_own(make):
    sessions = make(partitions=7)
    subjects = ["a}b", "{}", "a:b", " ", "é\u202e", "a\nb", "a\0b", "🚂", "x" * 512]
    for subject in subjects:
        sessions.create(subject, {"is": subject})
    found = sessions.of_each(subjects)
    assert {subject: [held.state["is"] for held in held_of] for subject, held_of in found.items()} == {
        subject: [subject] for subject in subjects
    }


HEX, WIDE = "0" * 16, "0" * 64
RUBBISH = {
    "sb_session_create": [
        [], [HEX, WIDE, "ann", "[]", "1", "1", "0", "1", "0", ""], [HEX, "x", "ann", "{}", "1", "1", "0", "1", "0", ""],
        ["x", WIDE, "ann", "{}", "1", "1", "0", "1", "0", ""], [HEX, WIDE, "", "{}", "1", "1", "0", "1", "0", ""],
        [HEX, WIDE, "ann", "{}", "0", "1", "0", "1", "0", ""], [HEX, WIDE, "ann", "{}", "nan", "1", "0", "1", "0", ""],
        [HEX, WIDE, "ann", "{}", "1", "1", "1e99", "1", "0", ""], [HEX, WIDE, "ann", "{}", "1", "1", "0", "0", "0", ""],
        [HEX, WIDE, "ann", "{}", "1", "1", "0", "1", "0", "soon"],
    ],
    "sb_session_get": [[], [HEX], ["x", WIDE], [HEX, "x"], [HEX, WIDE, "-1"]],
    "sb_session_put": [[], [HEX, WIDE], [HEX, WIDE, "{}"], [HEX, WIDE, "{}", "x", ""], [HEX, WIDE, "{}", "", "x"]],
    "sb_session_rotate": [
        [], [HEX, WIDE, "", "x", "0", ""], [HEX, "", "", WIDE, "0", ""], [HEX, WIDE, "", WIDE, "-1", ""],
        [HEX, WIDE, "", WIDE, "0", "x"],
    ],
    "sb_session_revoke": [
        [], ["some", HEX, WIDE], ["one", HEX], ["one", HEX, "", ""], ["all", "x", "", "ann"], ["all", "", "", ""],
    ],
    "sb_session_list": [[], [""], ["ann", "x"]],
}  # fmt: skip


def test_the_functions_themselves_refuse_rubbish_and_write_nothing(make, engine, prefix, dump):
    make().create("ann", now=NOW)
    before = dump()
    for function, calls in RUBBISH.items():
        for words in calls:
            assert engine.client.fcall(function, 1, f"{prefix}session:{{s:0}}", *words)[0] == "BADARG", (
                function,
                words,
            )
    assert dump() == before


def test_what_another_program_wrote_in_the_way_is_an_error_and_stays_as_it_is(make, engine, prefix, dump):
    sessions = make()
    made = sessions.create("ann", now=NOW)
    key, listed = f"{prefix}session:{{s:0}}:s:{made.handle}", f"{prefix}session:{{s:0}}:of:ann"
    put = partial(sessions.put, state={})
    uses = [partial(use, made.token, now=NOW) for use in (sessions.get, put, sessions.rotate, sessions.revoke)]
    lists = [partial(use, "ann", now=NOW) for use in (sessions.create, sessions.of, sessions.revoke_all)]
    was = engine.client.get(key)
    for broken in ("", "x", was[1:], "9" * 20 + was[1:], was.replace(" 0 ", " -1 ", 1), was.replace(" - ", " ", 1)):
        engine.client.set(key, broken)
        before = dump()
        for use in uses:
            with pytest.raises(EngineFault):
                use()
            assert dump() == before, broken
    engine.client.set(key, was.replace("{}", "[]"))
    with pytest.raises(EngineFault, match="damaged"):
        sessions.get(made.token, now=NOW)
    engine.client.set(key, was)
    for wrong, calls in ((key, uses), (listed, uses + lists)):
        engine.client.rename(wrong, f"{prefix}aside")
        engine.client.hset(wrong, "foreign", "1")
        before = dump()
        for use in calls:
            with pytest.raises(EngineFault):
                use()
            assert dump() == before
        engine.client.rename(f"{prefix}aside", wrong)
    engine.client.delete(listed)
    with pytest.raises(Gone):  # what the list does not show opens nothing
        sessions.get(made.token, now=NOW)
