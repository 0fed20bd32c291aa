"""Moving instances by hand has a rate, for each account and each address: on pages, in the admin, and nowhere else."""

from __future__ import annotations

import json
from functools import partial

import pytest
from django.urls import reverse

from machines.engine.sm_commands import call
from machines.instances import actions as instances
from machines.models import AuditEntry
from machines.people.actor import Actor
from machines.people.errors import TooFast
from tests.admin.conftest import machine, staff
from tests.configuration import configure
from tests.pages.reading import read

__all__ = ["machine", "staff"]
HERE = "/machines/activation/instances/ATV-123:NBCSports/"
WRONG = {"event": "entitle", "payload-token": "wrong"}
FORCED = {"state": "Active", "data": "{}", "reason": "asked to"}


@pytest.fixture
def fired(engine):
    """Sends the form of an event as a page has it now; the answer."""

    def sent(client, **more):
        form = WRONG | {"expect": engine.get("activation", "ATV-123:NBCSports").revision} | more
        return client.post(f"{HERE}fire/", form)

    return sent


@pytest.fixture(autouse=True)
def rate(settings):
    configure(settings, FIRE_RATE="2/h")


def test_past_the_rate_nothing_moves_and_the_page_says_when_to_come_back(as_, engine, waiting, fired):
    client = as_("supervisor", "ann")
    assert [fired(client).status_code for _ in range(2)] == [302, 302]
    version = engine.get("activation", waiting.id).revision
    looked_at = {"expect": version}
    for url, form in (
        (f"{HERE}fire/", WRONG | looked_at | {"key": "k-1"}),
        (f"{HERE}force/", FORCED | looked_at),
        (f"{HERE}suspend/", {"reason": "asked to"} | looked_at),
        (reverse("signalbox:create", args=["activation"]), {"id": "new", "key": "k-2"}),
    ):
        answer = client.post(url, form)
        assert (answer.status_code, 0 < int(answer["Retry-After"]) <= 1800) == (429, True), url
        page = read(answer)
        assert "SB711" in page.text
        assert "nothing was done" in page.text
        assert (f'value="{form.get("key")}"' in answer.content.decode()) == ("key" in form)
    assert engine.get("activation", waiting.id).revision == version
    assert not AuditEntry.objects.filter(action="create", outcome="done").exists()
    assert fired(client, check="1").status_code == 200  # only looked at


def test_the_audit_has_one_refusal_in_the_time_of_the_rate(as_, waiting, fired):
    client = as_("supervisor", "ann")
    for _ in range(6):
        fired(client)
    entry = AuditEntry.objects.get(outcome="refused")
    assert (entry.actor, entry.action, entry.instance) == ("ann", "fire", waiting.id)
    assert "SB711" in str(entry.detail)


def test_each_account_has_a_rate_of_its_own_and_their_address_one_for_all(as_, waiting, fired, monkeypatch):
    monkeypatch.setattr("machines.people.limits.PER_ADDRESS", 2)
    people = [as_("supervisor", name) for name in ("ann", "bob", "cid")]
    told = [fired(who).status_code for who in (*people[:2], *people)]
    assert told == [302, 302, 302, 302, 429]
    people[2].defaults["REMOTE_ADDR"] = "2001:db8::1"
    assert fired(people[2]).status_code == 302


def test_the_admin_and_state_machines_under_keys_spend_the_same_rate(staff, machine, engine, prefix):
    engine.create("activation", "one")
    client = staff("view", "fire", "operate", name="olga")
    call(
        engine.client,
        "SM.SET",
        f"{prefix}k",
        json.dumps({"initial": "a", "current": "a", "reason": "", "map": {"a": ["b"], "b": ["a"]}}),
    )
    url = f"{reverse('admin:machines_machine_instance', args=[machine.pk])}?id=one"
    told = []
    for number in range(3):
        form = {"event": "activate" if number == 0 else "entitle", "expect": number + 1, "payload-token": "T"}
        last = client.post(url, form)
        told.append(last.status_code)
    assert told == [302, 302, 429]
    assert (last.status_code, bool(last["Retry-After"])) == (429, True)
    sent = {"state": '"b"', "seen": '"a"', "reason": ""}
    assert client.post(reverse("signalbox:sm-mutate", args=[f"{prefix}k"]), sent).status_code == 429


@pytest.mark.parametrize("source", ["api 10.0.0.7", "approval 3", "command line", ""])
def test_no_other_door_has_it(user_of, waiting, source):
    actor = Actor(user_of("supervisor"), source)
    for _ in range(5):
        instances.fire(actor, "activation", waiting.id, "entitle", {"token": "wrong"})
    paced = partial(instances.fire, Actor(actor.user, "page 10.0.0.7"), "activation", waiting.id, "entitle")
    paced({"token": "wrong"}), paced({"token": "wrong"})
    with pytest.raises(TooFast) as caught:
        paced({"token": "wrong"})
    assert caught.value.facts()["by"] == "account"


def test_it_can_be_switched_off_and_without_redis_the_outage_is_what_is_told(as_, waiting, fired, settings):
    client = as_("supervisor")
    configure(settings, FIRE_RATE="off")
    assert {fired(client).status_code for _ in range(5)} == {302}
    configure(settings, FIRE_RATE="2/h")
    configure(settings, REDIS_URL="unix:///nonexistent/none.sock")
    assert client.post(f"{HERE}fire/", WRONG).status_code == 503
