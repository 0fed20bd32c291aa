"""The page of an instance that stands in several states at once: where, why, until when, and with whom."""

from __future__ import annotations

import pytest
from django.template import Context, Template

from dashboard.instances.presenters import list_event_actions
from dashboard.shared import version_view
from tests.pages.reading import Element, fields, read

INSTANCE = "/machines/delivery/instances/R-1/"


@pytest.fixture
def page(as_, order):
    """The page as a supervisor sees it now."""
    client = as_("supervisor", "sue")
    return lambda query="": read(client.get(INSTANCE + query))


def lit(page: Element) -> list[str]:
    return sorted(part["data-state"] for part in page.one("svg", class_="sb-diagram").all(class_="current"))


def routes(action: Element) -> list[str]:
    return [route.text for route in action.one("ul", class_="routes").all("li")]


def action(page: Element, event: str) -> Element:
    return next(one for one in page.all("li", class_="event-action") if one.one("span", class_="event").text == event)


def test_every_active_state_is_lit_in_each_region_and_around_it(page):
    assert lit(page()) == ["Customer", "Expecting", "Fulfilling", "Invoice", "Open", "Packed", "Parcel"]


def test_in_the_view_of_the_top_level_the_state_around_them_is_lit(page):
    assert lit(page("?view=top")) == ["Fulfilling"]


def test_the_head_tells_each_leaf_with_its_region(page):
    head = page().one("div", class_="head")
    assert [place.text for place in head.all("span", class_="place")] == [
        "Parcel Packed",
        "Invoice Open",
        "Customer Expecting",
    ]
    assert head.all("span", class_="place")[0]["title"] == "Fulfilling › Parcel › Packed"


def test_events_of_all_active_states_are_actions_with_the_state_that_listens(page):
    shown = page()
    assert routes(action(shown, "collect")) == ["✓Packed → On its way"]
    assert routes(action(shown, "bill")) == ["✓Open → Sent"]
    assert "Fulfilling → Cancelled if" in routes(action(shown, "cancel"))[0]
    assert action(shown, "deliver").has("class", "idle")


def test_a_transition_that_another_region_goes_before_is_said_to_be_outdone(engine, db):
    regions = {
        "a": {"initial": "a1", "states": {"a1": {"on": {"go": "#Z"}}}},
        "b": {"initial": "b1", "states": {"b1": {"on": {"go": "#Y"}}}},
    }
    engine.publish(
        {"id": "m", "initial": "P", "states": {"P": {"type": "parallel", "states": regions}, "Y": {}, "Z": {}}}
    )
    instance = engine.create("m", "one")
    (go,) = list_event_actions(engine.explain_all("m", "one", ["go"]), version_view.load_version("m", 1), instance)
    assert go.verdict == "open"
    assert [(route.kind, route.source, route.target) for route in go.routes] == [
        ("holds", "a1", "Z"),
        ("outdone", "b1", "Y"),
    ]


def test_the_history_tells_only_what_changed(as_, engine, page, order):
    engine.fire("delivery", order.id, "collect")
    engine.fire("delivery", order.id, "bill")
    rows = page().one("table", class_="steps").one("tbody").all("tr")
    moves = [row.all("td")[3].text for row in rows]
    assert moves[:2] == ["Open → Sent", "Packed, Expecting → On its way, Told"]
    assert rows[0].all("td")[3]["title"] == "On its way, Sent, Told"


def test_timers_are_listed_with_what_waits_and_how_long(engine, page, order):
    assert "Waits for" not in page().text
    engine.fire("delivery", order.id, "collect")
    waiting = page().one("section", class_="waiting-panel")
    (row,) = waiting.all("tr")
    assert row.one("th").text == "◷ after 45 s in On its way"
    due = engine.get("delivery", order.id).timers[0].due
    assert row.one("time")["data-at"] == str(due)
    assert row.one("time")["data-kind"] == "until"
    assert row.one("time").text.startswith("in 4")


def test_a_child_and_its_parent_lead_to_each_other(as_, engine, paying):
    client = as_("viewer")
    child = paying.children["payment"]["id"]
    link = read(client.get(INSTANCE)).one("section", class_="waiting-panel").one("a")
    assert link.text == child
    shown = read(client.get(link["href"]))
    assert shown.one("h1").text == child
    assert shown.one("div", class_="head").one("a")["href"] == INSTANCE


def test_a_child_of_a_machine_that_can_have_no_page_is_named_without_a_link(rf, django_user_model):
    request = rf.get(INSTANCE)
    request.user = django_user_model(username="root", is_superuser=True, is_active=True)
    link = '{% load room %}{% id_link "instance" "no such/machine" "1" %}'
    assert Template(link).render(Context({"request": request})) == '<span class="key">1</span>'


def test_suspending_needs_a_reason_and_stands_in_the_history(as_, engine, order):
    client = as_("supervisor", "sue")
    form = fields(read(client.get(f"{INSTANCE}suspend/")).one("form", action=f"{INSTANCE}suspend/"))
    refused = client.post(f"{INSTANCE}suspend/", form)
    assert refused.status_code == 400
    assert "Enter a reason" in read(refused).text
    assert engine.get("delivery", order.id).suspended is None
    answer = client.post(f"{INSTANCE}suspend/", form | {"reason": "the address is wrong"})
    assert answer.url == INSTANCE
    assert engine.get("delivery", order.id).suspended
    step = engine.history("delivery", order.id)[0]
    assert (step.actor, step.reason) == ("sue", "the address is wrong")


@pytest.fixture
def held(engine, order):
    """R-1 on its way, suspended, with its timer."""
    engine.fire("delivery", order.id, "collect")
    return engine.suspend("delivery", order.id, actor="sue", reason="a test")


def test_a_suspended_instance_says_so_and_holds_its_actions(as_, held):
    page = read(as_("supervisor").get(INSTANCE))
    assert "suspended" in page.one("div", class_="head").text
    assert action(page, "deliver").has("class", "held")
    assert not action(page, "deliver").all("form")
    assert page.one("section", class_="waiting-panel").all("td")[0].text == "paused"
    assert not page.all("a", href=f"{INSTANCE}suspend/")
    assert not read(as_("operator").get(INSTANCE)).all("form", action=f"{INSTANCE}resume/")


@pytest.mark.parametrize("overdue", ["fire", "shift"])
def test_resuming_goes_on_with_the_timers_as_told(as_, engine, held, overdue):
    client = as_("supervisor", "sue")
    form = fields(read(client.get(INSTANCE)).one("form", action=f"{INSTANCE}resume/"))
    before = held.timers[0].due
    answer = client.post(f"{INSTANCE}resume/", form | {"overdue": overdue, "reason": "all is well"})
    assert answer.url == INSTANCE
    now = engine.get("delivery", held.id)
    assert now.suspended is None
    assert (now.timers[0].due > before) is (overdue == "shift")
    assert "R-1 resumed" in read(client.get(INSTANCE)).text


@pytest.mark.parametrize("changes", [{"reason": ""}, {"overdue": "never", "reason": "x"}])
def test_resuming_as_nobody_can_is_a_400_in_its_form(as_, engine, held, changes):
    form = {"expect": str(held.revision), "overdue": "fire"} | changes
    assert as_("supervisor").post(f"{INSTANCE}resume/", form).status_code == 400
    assert engine.get("delivery", held.id).suspended


def test_a_resume_of_what_moved_meanwhile_is_a_conflict_that_can_be_sent_again(as_, engine, held):
    client = as_("supervisor")
    answer = client.post(f"{INSTANCE}resume/", {"expect": "1", "overdue": "shift", "reason": "all is well"})
    assert answer.status_code == 409
    again = fields(read(answer).one("section", id="conflict").one("form"))
    assert (again["overdue"], again["reason"], again["expect"]) == ("shift", "all is well", str(held.revision))
    assert client.post(f"{INSTANCE}resume/", again).status_code == 302
    assert engine.get("delivery", held.id).suspended is None


@pytest.mark.parametrize("check", [{}, {"check": "1"}])
def test_firing_at_a_suspended_instance_says_so(as_, engine, held, check):
    form = {"event": "deliver", "expect": str(held.revision), "key": "k"} | check
    answer = as_("operator").post(f"{INSTANCE}fire/", form)
    assert answer.status_code == 409
    notice = read(answer).one("section", id="held")
    assert "The instance is suspended" in notice.text
    assert "SB432" in notice.text
    assert engine.get("delivery", held.id).revision == held.revision


def test_forcing_takes_a_state_in_each_of_several_regions(as_, engine, order):
    client = as_("supervisor")
    form = read(client.get(f"{INSTANCE}force/")).one("form", action=f"{INSTANCE}force/")
    options = [option["value"] for option in form.one("select").all("option")]
    assert {"Fulfilling", "Parcel", "Late", "Delivered"} <= set(options)
    assert "as it was" not in options
    sent = fields(form) | {"state": ["Late", "Booked"], "reason": "the carrier called"}
    assert client.post(f"{INSTANCE}force/", sent).status_code == 302
    assert engine.get("delivery", order.id).configuration == ["Late", "Booked", "Expecting"]


def test_forcing_into_two_states_that_exclude_each_other_is_refused_in_the_form(as_, engine, order):
    client = as_("supervisor")
    sent = {"state": ["Late", "Packed"], "reason": "why not", "expect": str(order.revision)}
    answer = client.post(f"{INSTANCE}force/", sent)
    assert answer.status_code == 400
    chosen = read(answer).one("form", action=f"{INSTANCE}force/").one("select").all("option")
    assert [option["value"] for option in chosen if "selected" in option.attributes] == ["Packed", "Late"]
    assert engine.get("delivery", order.id).revision == order.revision


def test_an_instance_that_is_at_its_end_cannot_be_suspended(as_, engine, order):
    engine.force("delivery", order.id, "Delivered", actor="sue", reason="a test")
    assert not read(as_("supervisor").get(INSTANCE)).all("a", href=f"{INSTANCE}suspend/")


def test_a_preview_tells_every_state_after_the_step(as_, order):
    form = {"event": "collect", "expect": str(order.revision), "check": "1"}
    notice = read(as_("operator").post(f"{INSTANCE}fire/", form)).one("section", id="preview")
    assert "Packed, Open, Expecting → On its way, Open, Told" in notice.text


def test_a_line_that_is_available_leads_to_the_form_of_its_event(page):
    shown = page()
    lines = {
        line["data-events"]: line["href"] for line in shown.one("svg", class_="sb-diagram").all("a", class_="possible")
    }
    assert {"collect", "bill", "hold", "cancel"} <= lines.keys()
    for event, href in lines.items():
        (form,) = [one for one in shown.all("li", class_="event-action") if f"#{one['id']}" == href]
        assert form.one("span", class_="event").text == event
