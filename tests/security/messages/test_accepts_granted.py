"""Machines that are older than ``accepts``: what was in use goes on, with a warning, and nothing else does."""

from __future__ import annotations

import io

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from dashboard.serving.checks import system_checks
from machines.catalog import accepted_senders, publishing
from machines.duties import DUTIES, make_exclusive_duties
from machines.engine import Acceptance, BadInput, Engine, UnknownMachine
from machines.models import Machine
from machines.people.permissions import RIGHTS
from machines.worker.options import Options
from tests.engine.builders import machine
from tests.engine.messages.mailing import teller, told

from .senders import closed, older, pair, tell


@pytest.fixture
def before(engine: Engine, db: None) -> Engine:
    """A teller and a thief that send to a noter, all published by a release without ``accepts``; the thief by an
    address that only running it tells."""
    publishing.publish(closed())
    publishing.publish(teller())
    send = {"send": {"event": "note", "to": "event.to", "data": {"n": "1"}}}
    publishing.publish(machine("thief", {"A": {"on": {"go": {"actions": send}}}}))
    for name, id in (("noter", "x"), ("teller", "t"), ("thief", "t")):
        engine.create(name, id)
    older(engine, "noter", "teller", "thief")
    return engine


def steal(engine: Engine) -> None:
    engine.fire("thief", "t", "go", {"to": "#_scxml_noter/x"})


def test_until_somebody_has_looked_all_goes_on_as_before(before):
    tell(before)
    steal(before)
    assert told(before) == [7, 1]
    assert before.list_granted() == {"noter": None, "teller": None, "thief": None}


def test_what_is_in_use_is_granted_with_a_warning_and_nothing_else(before, caplog):
    (found,) = accepted_senders.grant_used()
    assert (found.machine, list(found.uses)) == ("noter", ["teller"])
    assert 'Add to its definition: "accepts": {"from": ["teller"]}' in caplog.text
    assert "thief computes the machine it sends to or invokes" in caplog.text
    tell(before)
    steal(before)
    assert told(before) == [7]
    assert before.list_granted() == {"noter": ("teller",), "teller": (), "thief": ()}
    assert Machine.objects.get(name="noter").granted == ["teller"]


def test_it_is_looked_once(before):
    accepted_senders.grant_used()
    publishing.publish(machine("late", {"A": {"entry": {"send": {"event": "note", "to": "'#_scxml_noter/x'"}}}}))
    assert accepted_senders.grant_used() == []
    assert before.list_granted()["noter"] == ("teller",)


def test_a_machine_that_is_new_is_closed_from_the_beginning(engine):
    pair(engine)
    assert engine.list_granted() == {"noter": (), "teller": ()}
    assert engine.acceptance("noter") == Acceptance(None, ())


def test_a_version_that_says_who_ends_what_was_granted(before):
    accepted_senders.grant_used()
    publishing.publish(closed(senders=["billing"]))
    tell(before)
    assert (told(before), before.acceptance("noter")) == ([], Acceptance(("billing",), ()))
    publishing.publish(closed() | {"description": "it says nothing again"})
    tell(before)
    assert (told(before), Machine.objects.get(name="noter").granted) == ([], [])


def test_a_version_that_says_nothing_leaves_it(before):
    accepted_senders.grant_used()
    publishing.publish(closed() | {"description": "in other words"})
    tell(before)
    assert told(before) == [7]


def test_who_answers_is_granted_to_those_who_ask(engine, db):
    answer = {"actions": {"send": {"event": "note", "to": "trigger.origin", "data": {"n": "1"}}}}
    publishing.publish(closed("oracle", ask=answer))
    send = {"send": {"event": "ask", "to": {"machine": "oracle", "id": "'o'"}}}
    publishing.publish(closed("asker", go={"actions": send}))
    older(engine, "oracle", "asker")
    accepted_senders.grant_used()
    assert engine.list_granted() == {"oracle": ("asker",), "asker": ("oracle",)}
    engine.create("oracle", "o")
    engine.create("asker", "a")
    engine.fire("asker", "a", "go")
    engine.tick()
    assert told(engine, "a", "asker") == [1]


def test_what_was_granted_survives_a_redis_that_lost_everything(before):
    accepted_senders.grant_used()
    for key in before.client.scan_iter(match=f"{before.keys.prefix}*", count=1000):
        before.client.delete(key)
    fresh = type(before)(before.client, prefix=before.keys.prefix)
    publishing.restore()
    assert fresh.list_granted() == {"noter": ("teller",), "teller": (), "thief": ()}


def test_a_redis_that_was_lost_before_anybody_looked_is_looked_at_then(before):
    for key in before.client.scan_iter(match=f"{before.keys.prefix}*", count=1000):
        before.client.delete(key)
    fresh = type(before)(before.client, prefix=before.keys.prefix)
    publishing.restore()
    assert fresh.list_granted() == {"noter": None, "teller": None, "thief": None}
    accepted_senders.grant_used()
    assert fresh.list_granted() == {"noter": ("teller",), "teller": (), "thief": ()}


def test_a_machine_of_a_script_is_adopted_with_what_was_granted(engine, db):
    engine.publish(closed())
    engine.grant("noter", ["teller"])
    assert publishing.adopt("noter").granted == ["teller"]


def test_granting_takes_names_of_machines_and_a_machine_that_is_there(engine):
    engine.publish(closed())
    assert engine.grant("noter", ["b", "a", "b"]) == ("b", "a")
    assert engine.grant("noter", ["c"], once=True) == ("b", "a")
    with pytest.raises(BadInput):
        engine.grant("noter", ["a b"])
    with pytest.raises(UnknownMachine):
        engine.grant("nobody", [])


def test_a_worker_looks(before):
    assert "acceptance" in DUTIES
    assert make_exclusive_duties(before, Options(queues=()))["acceptance"].once() is False
    assert before.list_granted()["noter"] == ("teller",)


def test_the_command_looks_and_lists(before):
    out = io.StringIO()
    call_command("machine", "accepts", stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("granted: noter is sent to by teller (states.A.on.")
    assert 'noter: teller, granted; "accepts": {"from": ["teller"]}' in lines
    assert "teller: no other machine" in lines


def test_a_system_check_names_them_with_the_line_to_add(before):
    found = [one for one in system_checks.redis_server(None) if one.id == "signalbox.W010"]
    assert [one.msg.partition(" ")[0] for one in found] == ["noter", "teller", "thief"]
    accepted_senders.grant_used()
    (one,) = [one for one in system_checks.redis_server(None) if one.id == "signalbox.W010"]
    assert "noter accepts messages from teller" in one.msg
    assert one.hint == 'Add to it: "accepts": {"from": ["teller"]}'
    publishing.publish(closed(senders=["teller"]))
    assert [one for one in system_checks.redis_server(None) if one.id == "signalbox.W010"] == []


# On the page


def page_of(client: Client, name: str = "noter") -> str:
    content = client.get(reverse("signalbox:machine", args=[name])).content.decode()
    return content.partition('id="accepts"')[2].partition("</section>")[0]


def test_the_page_and_the_api_say_who_may_send(before, as_):
    client = as_("viewer")
    assert "any machine" in page_of(client)
    assert "until a worker has recorded" in page_of(client)
    accepted_senders.grant_used()
    shown = page_of(client)
    assert ">teller</a>" in shown
    assert "granted" in shown
    assert "{&quot;from&quot;: [&quot;teller&quot;]}" in shown
    publishing.publish(closed(senders=["billing", "teller"]))
    shown = page_of(client)
    assert "billing" in shown
    assert ">teller</a>" in shown
    assert "granted" not in shown
    api = client.get("/api/v1/machines/noter/accepts").json()
    assert api == {"machine": "noter", "declared": ["billing", "teller"], "granted": []}


def test_who_sees_one_machine_learns_no_name_of_another_from_what_was_granted(before, db):
    accepted_senders.grant_used()
    user = get_user_model().objects.create_user("one")
    assign_perm(RIGHTS["view"], user, Machine.objects.get(name="noter"))
    client = Client()
    client.force_login(user)
    shown = page_of(client)
    assert "teller" not in shown
    assert "1 more" in shown
    assert client.get("/api/v1/machines/noter/accepts").json()["granted"] == []
