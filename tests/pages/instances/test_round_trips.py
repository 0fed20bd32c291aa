"""What an event costs on its way from a page: one question of the right, one of the rate, one call of the engine; and
one read to draw the answer. Counted, not timed: see ``benchmarks/ROUND_TRIPS.md``."""

from __future__ import annotations

from collections import Counter

import pytest
from django.urls import reverse

from machines.catalog.publishing import adopt
from machines.people import permissions
from tests import wire

from .test_firing import FIRE, INSTANCE, sent

STEP = ("sb_fire", "sb_create", "sb_force")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Right -> how often anybody was asked whether they hold it."""
    counted: Counter[str] = Counter()
    real = permissions._find_scope

    def held(user, right):
        counted[right] += 1
        return real(user, right)

    monkeypatch.setattr(permissions, "_find_scope", held)
    return counted


def trips(traffic: wire.Traffic) -> dict[str, int]:
    """Store -> round trips."""
    return {store: len(found) for store in wire.STORES if (found := traffic.of(store))}


@pytest.fixture
def operator(as_, waiting):
    """Somebody who has been here a moment ago: what is noted once a minute is noted."""
    adopt("activation")
    client = as_("operator", "alice")
    client.post(FIRE, sent(client, "entitle", **{"payload-token": "wrong"}))
    return client


def test_a_fire_asks_the_right_once_and_makes_one_throttle_call_and_one_call_of_the_engine(operator, engine, asked):
    form = sent(operator, "entitle", **{"payload-token": "MTOB1J"})
    asked.clear()
    with wire.recorded() as traffic:
        answer = operator.post(FIRE, form)
    assert (answer.status_code, engine.get("activation", "ATV-123:NBCSports").state) == (302, "Active")
    assert trips(traffic) == {"session": 1, "throttle": 1, "engine": 1}
    assert [traffic.functions[name] for name in STEP] == [1, 0, 0]
    assert asked == {"fire": 1, "view": 1}  # a right without view is worth nothing


def test_the_answer_is_drawn_from_one_read(operator):
    form = sent(operator, "entitle", **{"payload-token": "MTOB1J"})
    with wire.recorded() as traffic:
        operator.get(operator.post(FIRE, form).url)
    drawn = traffic.of("engine")[1:]
    assert len(drawn) == 1
    assert traffic.of("session") == [traffic.trips[0]] * 2


def test_an_instance_with_work_is_drawn_from_one_read_and_its_parent_from_another(as_, engine, paying):
    adopt("payment")
    child = paying.children["payment"]["id"]
    client, address = as_("viewer"), reverse("signalbox:instance", args=["payment", child])
    assert client.get(address).status_code == 200
    assert engine.get("payment", child).jobs
    with wire.recorded() as traffic:
        client.get(address)
    assert trips(traffic) == {"session": 1, "engine": 2}


def test_a_repair_asks_the_right_once_and_is_one_step(as_, waiting, asked):
    client = as_("supervisor", "sue")
    form = {"reason": "a test", "expect": "2", "key": "k-1", "state": "Active"}
    asked.clear()
    with wire.recorded() as traffic:
        answer = client.post(f"{INSTANCE}force/", form)
    assert answer.status_code == 302
    assert asked["operate"] == 1
    assert (traffic.functions["sb_force"], len(traffic.of("throttle"))) == (1, 1)


def test_an_old_form_without_its_version_still_counts(operator, engine):
    form = sent(operator, "entitle", **{"payload-token": "MTOB1J"})
    del form["version"]
    assert operator.post(FIRE, form).status_code == 302
    assert engine.get("activation", "ATV-123:NBCSports").state == "Active"


@pytest.mark.parametrize("named", ["0", "99", "x", "9" * 400])
def test_a_version_that_is_none_is_passed_over(operator, engine, named):
    form = sent(operator, "entitle", **{"payload-token": "MTOB1J"}) | {"version": named}
    assert operator.post(FIRE, form).status_code == 302
    assert engine.get("activation", "ATV-123:NBCSports").state == "Active"
