"""A state machine under a key of its own, opened and moved from its page: by whom, and what may stand under the key."""

from __future__ import annotations

import json
from urllib.parse import unquote, urlsplit

import pytest
import redis
from django.test import Client
from django.urls import resolve, reverse

from dashboard.instances.sm import views
from machines.connections import get_engine
from machines.engine.sm_commands import call
from machines.instances import sm_keys
from machines.instances.sm_keys import StoredMachine
from machines.models import AuditEntry
from tests.pages.reading import fields, read

ORDER = {
    "initial": "placed",
    "current": "placed",
    "reason": "by phone",
    "map": {"placed": ["paid", "lost"], "paid": ["sent", "placed"], "sent": [], "held": ["placed"]},
}


@pytest.fixture
def client(engine):
    return engine.client


@pytest.fixture
def put(client, prefix, db):
    """Keeps a machine under a key of this test's own; the key."""

    def kept(key="order", **changes):
        call(client, "SM.SET", f"{prefix}{key}", json.dumps(ORDER | changes))
        return f"{prefix}{key}"

    return kept


def at(key, what="key"):
    return reverse(f"signalbox:sm-{what}", args=[key])


def stands(client, key):
    found = json.loads(call(client, "SM.GET", key))
    return found["current"], found["reason"]


def sent(state, seen="placed", **more):
    return {"state": json.dumps(state), "seen": json.dumps(seen)} | more


def test_a_machine_is_found_by_its_key(as_, put):
    key = put("shop/order 17?#")
    viewer = as_("viewer")
    finder = read(viewer.get(reverse("signalbox:sm"))).one("main").one("form", role="search")
    answer = viewer.get(finder["action"], {"key": key})
    assert (answer.status_code, answer.url) == (302, at(key))
    assert read(viewer.get(answer.url)).one("h1").text == key


def test_without_a_key_nothing_is_opened_and_its_link_is_marked(as_):
    page = read(as_("viewer").get(reverse("signalbox:sm"), {"key": ""}))
    assert {link["data-at"] for link in page.all("a", aria_current="page")} == {"sm"}


def test_the_page_says_where_it_stands_and_why_and_where_it_may_go(as_, put):
    page = read(as_("operator").get(at(put()))).one("main")
    assert page.one("div", class_="head").one(class_="state").text == "placed"
    assert "Reason: by phone" in page.text
    assert [button.text for button in page.all("button", class_="primary")] == ["Go to paid"]
    rows = {row.one("th").text: row.one("td").text for row in page.all("tr")}
    assert rows["sent"] == "none"
    assert rows["placed"] == "paid lost (not in the map: unreachable)"


def test_the_diagram_lights_where_it_stands_and_marks_the_ways_on(as_, put):
    svg = read(as_("viewer").get(at(put()))).one("svg", class_="sb-diagram")
    assert [state["data-state"] for state in svg.all(class_="current")] == ["placed"]
    assert [edge["data-target"] for edge in svg.all(class_="possible")] == ["paid"]
    assert {state["data-state"] for state in svg.all(class_="state")} == set(ORDER["map"])


def test_a_button_moves_it(as_, client, put):
    key = put()
    operator = as_("operator")
    form = read(operator.get(at(key))).one("form", action=at(key, "mutate"))
    answer = operator.post(form["action"], fields(form) | {"reason": "by card"})
    assert (answer.status_code, answer.url) == (302, at(key))
    assert stands(client, key) == ("paid", "by card")
    assert "placed → paid" in read(operator.get(at(key))).text


def test_without_a_reason_the_last_one_stays(as_, client, put):
    key = put()
    as_("operator").post(at(key, "mutate"), sent("paid", reason="  "))
    assert stands(client, key) == ("paid", "by phone")


def test_force_moves_it_against_its_map_and_is_written_down(as_, client, put, caplog):
    key = put()
    supervisor = as_("supervisor", "sue")
    form = read(supervisor.get(at(key))).one("form", action=at(key, "force"))
    options = [option.text for option in form.one("select", name="state").all("option")]
    assert options == ["choose a state", "held", "paid", "placed", "sent"]
    answer = supervisor.post(form["action"], fields(form) | {"state": '"held"', "reason": "an audit"})
    assert answer.status_code == 302
    assert stands(client, key) == ("held", "an audit")
    assert "Forced: placed → held" in read(supervisor.get(at(key))).text
    assert f"sue forced {key!r} from 'placed' to 'held': an audit" in caplog.text


@pytest.mark.parametrize("reason", ["", "   "])
def test_force_without_a_reason_is_not_sent(as_, client, put, reason):
    key = put()
    answer = as_("supervisor").post(at(key, "force"), sent("held", reason=reason))
    assert answer.status_code == 400
    assert "Enter a reason" in read(answer).one(id="mistake").text
    assert stands(client, key) == ("placed", "by phone")


@pytest.mark.parametrize(("what", "state"), [("mutate", "sent"), ("mutate", "lost"), ("force", "lost"), ("force", "")])
def test_what_the_map_does_not_allow_is_refused_in_the_librarys_words(as_, client, put, what, state):
    key = put()
    answer = as_("supervisor").post(at(key, what), sent(state, reason="why"))
    assert answer.status_code == 422
    assert "Invalid state transition" in read(answer).one(id="refused").text
    assert stands(client, key) == ("placed", "by phone")


@pytest.mark.parametrize("what", ["mutate", "force"])
def test_what_was_moved_meanwhile_is_not_moved_again(as_, client, put, what):
    key = put(current="paid")
    answer = as_("supervisor").post(at(key, what), sent("placed", reason="why"))
    assert answer.status_code == 409
    page = read(answer)
    assert "The state changed from placed to paid." in page.one(id="conflict").text
    assert page.one("div", class_="head").one(class_="state").text == "paid"
    assert stands(client, key) == ("paid", "by phone")


def test_and_not_even_when_that_happens_in_the_last_moment(as_, client, put, monkeypatch):
    key = put()
    look = sm_keys.read

    def looked_and_then_it_moved(key):
        found = look(key)
        call(client, "SM.MUTATE", key, "paid", "faster")
        call(client, "SM.MUTATE", key, "placed")
        return found

    monkeypatch.setattr(sm_keys, "read", looked_and_then_it_moved)
    answer = as_("operator").post(at(key, "mutate"), sent("paid"))
    assert answer.status_code == 409
    monkeypatch.undo()
    assert stands(client, key) == ("placed", "faster")


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"state": '"paid"'},
        {"seen": '"placed"'},
        sent("paid") | {"state": "paid"},
        sent("paid") | {"state": "[" * 20_000},
        sent("paid") | {"state": "1"},
        sent("paid") | {"state": '["paid"]'},
        sent("paid") | {"state": '"\\ud800"'},
        sent("paid") | {"seen": "null"},
        sent("x" * 40_000),
        sent("paid", reason="x" * 1001),
        sent("paid", reason="nul\0"),
    ],
)
def test_a_form_that_makes_no_sense_is_not_sent(as_, client, put, form):
    key = put()
    answer = as_("operator").post(at(key, "mutate"), form)
    assert answer.status_code == 400
    assert read(answer).one(id="mistake").text
    assert stands(client, key) == ("placed", "by phone")


@pytest.mark.parametrize("what", ["mutate", "force"])
def test_the_address_of_a_form_leads_back_to_the_page(as_, put, what):
    key = put()
    answer = as_("supervisor").get(at(key, what))
    assert (answer.status_code, answer.url) == (302, at(key))


@pytest.mark.parametrize("kind", ["missing", "string", "hash", "list", "an instance of the engine"])
def test_what_is_no_state_machine_is_not_there_and_does_not_say_what_it_is(as_, engine, client, prefix, waiting, kind):
    key = f"{prefix}other"
    {
        "missing": lambda: None,
        "string": lambda: client.set(key, "x"),
        "hash": lambda: client.hset(key, mapping={"current": "a"}),
        "list": lambda: client.rpush(key, "x"),
        "an instance of the engine": lambda: client.copy(engine.keys.partition("activation").instance(waiting.id), key),
    }[kind]()
    supervisor = as_("supervisor")
    for answer in (supervisor.get(at(key)), supervisor.post(at(key, "force"), sent("a", reason="r"))):
        assert answer.status_code == 404
        assert read(answer).one(class_="panel").all("p")[1].text == f"No state machine under the key {key}."


def test_a_machine_that_someone_damaged_is_said_to_be_and_does_no_harm(as_, client, put):
    key = put()
    client.hset(key, "map", '{"a":')
    answer = as_("supervisor").get(at(key))
    assert answer.status_code == 404
    assert "This state machine was damaged" in read(answer).text


NASTY = [
    "<script>alert(1)</script>",
    '"quoted" & {{ templated }} {% if %}',
    "two\nlines\r\nand\ttabs",
    " spaces ",
    "",
    "émoji 🚦",
    "x" * 3000,
    "\x1b[31mred",
]


@pytest.mark.parametrize("name", NASTY)
def test_a_state_of_any_name_is_written_as_text_and_can_be_moved_to(as_, client, put, name):
    key = put(map={"placed": [name], name: ["placed"]}, reason=name[:1000])
    operator = as_("operator")
    answer = operator.get(at(key))
    assert b"<script>alert" not in answer.content
    form = read(answer).one("form", action=at(key, "mutate"))
    assert operator.post(form["action"], fields(form)).status_code == 302
    assert stands(client, key)[0] == name
    assert operator.get(at(key)).status_code == 200


@pytest.mark.parametrize("name", ["a/b", "..", ".", "%2F", "~", "<b>", "{x}:1", "é", "mutate", "a/force", "line\nend"])
def test_a_key_of_any_name_has_one_address_and_its_forms_theirs(as_, client, put, name):
    key = put(name)
    for what in ("key", "mutate", "force"):
        path = urlsplit(at(key, what)).path
        found = resolve(unquote(path))
        assert (found.url_name, found.kwargs) == (f"sm-{what}", {"key": key})
    assert read(as_("viewer").get(at(key))).one("h1").text == " ".join(key.split())


def test_a_viewer_sees_where_it_may_go_and_no_button(as_, put):
    page = read(as_("viewer").get(at(put())))
    assert page.one(class_="event-action").text == "paid"
    assert "read-only access" in page.text
    assert page.one("main").all("form") == []


def test_an_operator_is_offered_no_force(as_, put):
    key = put()
    assert at(key, "force").encode() not in as_("operator").get(at(key)).content


@pytest.mark.parametrize(("role", "what"), [("viewer", "mutate"), ("viewer", "force"), ("operator", "force")])
def test_who_may_not_move_it_does_not(as_, client, put, role, what):
    key = put()
    assert as_(role).post(at(key, what), sent("paid", reason="r")).status_code == 403
    assert stands(client, key) == ("placed", "by phone")


@pytest.mark.parametrize("what", ["mutate", "force"])
def test_a_form_without_its_csrf_token_is_not_taken(user_of, client, put, what):
    key = put()
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(user_of("supervisor"))
    assert browser.post(at(key, what), sent("paid", reason="r")).status_code == 403
    assert stands(client, key) == ("placed", "by phone")


def test_a_state_that_leads_nowhere_says_so(as_, put):
    assert "This state has no successors." in read(as_("operator").get(at(put(current="sent")))).text


def test_out_of_a_state_that_is_no_key_there_is_only_force(as_, client, put):
    key = put(current="none")
    supervisor = as_("supervisor")
    page = read(supervisor.get(at(key)))
    assert "only Force can change it" in page.text
    assert page.all(class_="current") == []
    assert supervisor.post(at(key, "force"), sent("paid", "none", reason="r")).status_code == 302
    assert stands(client, key) == ("paid", "r")


def test_a_machine_without_states_has_a_page(as_, client, put, prefix):
    call(client, "SM.CREATE", f"{prefix}blank")
    page = read(as_("supervisor").get(at(f"{prefix}blank")))
    assert "The map has no states" in page.text
    assert page.one("div", class_="head").one(class_="state").text == "(no name)"


def test_what_makes_no_definition_has_no_picture_but_all_else(as_, put):
    page = read(as_("operator").get(at(put(initial="none"))))
    assert "No diagram." in page.text
    assert page.all("svg", class_="sb-diagram") == []
    assert page.one("main").one("button", class_="primary").text == "Go to paid"


def test_a_large_machine_is_shown_in_part_and_moved_all_the_same(as_, client, put):
    names = [f"s{number:04}" for number in range(1200)]
    key = put(map={"s0000": names} | {name: [] for name in names[1:]}, initial="s0000", current="s0000")
    supervisor = as_("supervisor")
    answer = supervisor.get(at(key))
    page = read(answer)
    assert len(answer.content) < 400_000
    assert "1,200 states and 1,200 transitions: too many for a diagram" in page.text
    assert (len(page.all("tr")), "700 more states left out" in page.text) == (500, True)
    further = page.one("select", id="sm-further")
    assert supervisor.post(at(key, "mutate"), sent("s1199", "s0000")).status_code == 302
    assert (stands(client, key)[0], further.all("option")[0].text) == ("s1199", "s0040")


def test_a_map_is_drawn_once_however_often_it_is_looked_at(monkeypatch):
    kept = StoredMachine("k", "a", "a", "", {"a": ["b"], "b": [], "only here": []})
    drawn = []
    draw = views.diagrams.draw
    monkeypatch.setattr(views.diagrams, "draw", lambda outline: drawn.append(1) or draw(outline))
    first = views.draw_key(kept)
    second = views.draw_key(StoredMachine("other", "b", "a", "moved", kept.map))
    assert drawn == [1]
    assert first.svg != second.svg, "another state is lit"


def test_when_redis_is_away_the_page_says_so(as_, put, monkeypatch):
    key = put()
    supervisor = as_("supervisor")

    def away(*_):
        raise redis.ConnectionError("refused")

    monkeypatch.setattr(sm_keys.sm_commands, "call", away)
    for answer in (supervisor.get(at(key)), supervisor.post(at(key, "mutate"), sent("paid"))):
        assert answer.status_code == 503
        assert b"Redis unavailable" in answer.content


def test_a_server_that_is_full_is_no_fault_of_the_machine(as_, put, monkeypatch):
    key = put()
    pipeline = get_engine().client.pipeline

    def full(**options):
        pipe = pipeline(**options)
        pipe.execute = lambda **_: [redis.OutOfMemoryError("used memory > 'maxmemory'.", status_code="OOM")] * len(pipe)
        return pipe

    monkeypatch.setattr(get_engine().client, "pipeline", full)
    answer = as_("operator").post(at(key, "mutate"), sent("paid"))
    assert answer.status_code == 503


def test_the_overview_leads_there(as_):
    assert reverse("signalbox:sm") in [link["href"] for link in read(as_("viewer").get("/")).all("a")]


def test_each_move_leaves_an_entry_in_the_audit_refused_ones_too(as_, put):
    key, sue = put(), as_("supervisor", "sue")
    sue.post(at(key, "mutate"), sent("sent"))
    sue.post(at(key, "force"), sent("sent", reason="found it"))
    sue.post(at(key, "mutate"), sent("paid"))
    late, forced, refused = AuditEntry.objects.all()
    assert (forced.actor, forced.action, forced.instance, forced.reason) == ("sue", "force", key, "found it")
    assert (forced.target, forced.detail) == ("sent", {"before": "placed", "after": "sent"})
    assert [(entry.action, entry.outcome) for entry in (refused, late)] == [("fire", "refused"), ("fire", "refused")]
