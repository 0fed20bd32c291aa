"""A transcript: two services are activated on one device, step by step, as the article prints it."""

import re

import pytest

from machines.engine import Refused
from tests.engine.builders import NOW, example

DAY = 86_400  # seconds
VALID = 28 * DAY  # how long an entitlement holds
SECOND = NOW // 1000
NBC, ABC = "ATV-123:NBCSports", "ATV-123:ABC"
RANDOM = re.compile(r"[A-Z0-9]{6}")


class Box:
    """The activation machine with a clock the test sets, in seconds after the beginning."""

    def __init__(self, engine):
        self.engine = engine
        engine.publish(example("activation"))

    def create(self, id):
        return self.engine.create("activation", id, now=NOW)

    def activate(self, id, token="", at=0):
        return self.engine.fire("activation", id, "activate", {"token": token}, now=NOW + at * 1000)

    def entitle(self, id, token="", at=0):
        return self.engine.fire("activation", id, "entitle", {"token": token}, now=NOW + at * 1000)


@pytest.fixture
def box(engine):
    return Box(engine)


def test_the_transcript_of_the_article(box):
    created = box.create(NBC)
    assert (created.state, created.data) == ("New", {"failed": 0})

    waiting = box.activate(NBC, "MTOB1J")
    assert (waiting.state, waiting.data) == ("Waiting", {"token": "MTOB1J", "failed": 0})

    box.create(ABC)
    other = box.activate(ABC)
    assert other.state == "Waiting"
    assert RANDOM.fullmatch(other.data["token"])
    assert box.engine.get("activation", NBC).data["token"] == "MTOB1J", "the first service is left alone"

    active = box.entitle(NBC, "MTOB1J", at=10)
    assert active.state == "Active"
    assert active.data == {
        "token": "MTOB1J",
        "failed": 0,
        "expires": SECOND + 10 + VALID,
        "last_logon_ts": SECOND + 10,
    }

    tries = [box.entitle(ABC, "MTOB1J", at=20 + n) for n in range(4)]
    assert [seen.state for seen in tries] == ["Waiting", "Waiting", "Waiting", "Suspended"]
    assert [seen.data["failed"] for seen in tries] == [1, 2, 3, 3]
    assert [seen.data["last_logon_ts"] for seen in tries] == [SECOND + 20 + n for n in range(4)]
    assert "expires" not in tries[-1].data

    counts = box.engine.counts("activation")
    assert counts == {"New": 0, "Waiting": 0, "Active": 1, "Suspended": 1}


def test_an_activation_without_any_payload_gets_a_random_token_too(box):
    box.create(NBC)
    assert RANDOM.fullmatch(box.engine.fire("activation", NBC, "activate").data["token"])


def test_random_tokens_differ(box):
    ids = [f"ATV-{n}:ABC" for n in range(50)]
    for id in ids:
        box.create(id)
    assert len({box.activate(id).data["token"] for id in ids}) == 50


def test_the_right_token_after_wrong_ones_starts_the_count_again(box):
    box.create(NBC)
    box.activate(NBC, "MTOB1J")
    assert [box.entitle(NBC, "WRONG").data["failed"] for _ in range(3)] == [1, 2, 3]
    active = box.entitle(NBC, "MTOB1J")
    assert (active.state, active.data["failed"]) == ("Active", 0)


def activated(box, id=NBC):
    box.create(id)
    box.activate(id, "MTOB1J")
    return box.entitle(id, "MTOB1J", at=0)


def test_an_active_service_stays_active_to_the_last_second(box):
    first = activated(box)
    again = box.entitle(NBC, "whatever", at=VALID)
    assert again.state == "Active"
    assert again.data["expires"] == first.data["expires"], "a logon does not prolong it"
    assert again.data["last_logon_ts"] == SECOND + VALID
    assert again.entered == first.entered, "it has not left its state"


def test_an_expired_one_is_suspended_and_expires_is_gone(box):
    activated(box)
    late = box.entitle(NBC, "MTOB1J", at=VALID + 1)
    assert late.state == "Suspended"
    assert late.data == {"token": "MTOB1J", "failed": 0, "last_logon_ts": SECOND + VALID + 1}
    assert box.engine.get("activation", NBC).data == late.data
    assert box.engine.history("activation", NBC)[0].changes["expires"] is None


def test_a_suspended_one_gets_a_new_token_and_waits_again(box):
    activated(box)
    box.entitle(NBC, "MTOB1J", at=VALID + 1)
    again = box.entitle(NBC, "NEW123", at=VALID + 2)
    assert (again.state, again.data["token"], again.data["failed"]) == ("Waiting", "NEW123", 0)
    assert again.data["last_logon_ts"] == SECOND + VALID + 2, "the attempt is recorded even while suspended"
    assert box.entitle(NBC, "NEW123", at=VALID + 3).state == "Active"


def test_a_suspended_one_without_a_token_gets_a_random_one(box):
    activated(box)
    box.entitle(NBC, at=VALID + 1)
    again = box.entitle(NBC, at=VALID + 2)
    assert again.state == "Waiting"
    assert RANDOM.fullmatch(again.data["token"])
    assert again.data["token"] != "MTOB1J"


def test_a_new_service_cannot_be_entitled_before_it_is_activated(box):
    box.create(NBC)
    with pytest.raises(Refused, match="no transition accepts it"):
        box.entitle(NBC, "MTOB1J")


def test_a_wrong_token_is_explained_by_the_values_that_were_compared(box):
    box.create(NBC)
    box.activate(NBC, "MTOB1J")
    seen = box.engine.explain("activation", NBC, "entitle", {"token": "X"}, now=NOW)
    assert seen.taken
    first, second, third = seen.candidates
    assert str(first.because[0]) == 'event.token == token is false: event.token = "X", token = "MTOB1J"'
    assert [c.verdict for c in (first, second, third)] == ["guard", "taken", "not reached"]


def test_the_history_tells_the_whole_story(box):
    activated(box)
    box.entitle(NBC, "MTOB1J", at=VALID + 1)
    story = [(step.event, step.source, step.configuration) for step in box.engine.history("activation", NBC)][::-1]
    assert story == [
        ("(create)", None, ["New"]),
        ("activate", ["New"], ["Waiting"]),
        ("entitle", ["Waiting"], ["Active"]),
        ("entitle", ["Active"], ["Suspended"]),
    ]


def test_an_instance_is_readable_in_redis_itself(box):
    activated(box)
    held = box.engine.client.hgetall(box.engine.keys.partition("activation").instance(NBC))
    assert {name: held[name] for name in ("token", "failed", "_state")} == {
        "token": "MTOB1J",
        "failed": "0",
        "_state": "Active",
    }
