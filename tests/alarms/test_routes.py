"""Routes: each episode is sent once and its end once, a flood is one message, and nothing is sent without a route."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.utils import timezone

from machines import duties
from machines.alarms import recording, routes, sending
from machines.alarms.errors import BadRoute, UnknownRoute
from machines.conf import extras
from machines.models import AlarmNotice, AlarmRoute, AlarmState, AuditEntry, Delivery, Webhook
from machines.people.errors import Forbidden
from machines.webhooks import apprise_post, sender
from tests.cases import for_each
from tests.configuration import configure
from tests.conftest import missing
from tests.webhooks.conftest import receiver
from tests.webhooks.test_sending import signed_by

__all__ = ["receiver"]

MINUTE = timedelta(minutes=1)
NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)  # a Friday


def stand(key: str = "dead:order/pay", severity: str = "warning", **more) -> AlarmState:
    """An alarm that stands."""
    kind, machine = key.partition(":")[0], key.partition(":")[2].partition("/")[0]
    fields = {"kind": kind, "machine": machine, "severity": severity, "text": "…", "first_seen": NOW - MINUTE}
    return AlarmState.objects.create(key=key, episode="e1", **fields | more)


def messages() -> list[dict]:
    return [json.loads(row.body)["data"] for row in Delivery.objects.order_by("pk")]


@pytest.fixture
def apprise() -> None:
    if extras.list_missing("alarms"):
        missing("apprise", "pip install -r requirements-dev.txt")


@pytest.fixture
def route(actor_of, receiver):
    """Makes a route that leads to the receiver."""

    def made(name: str = "ops", **fields) -> AlarmRoute:
        fields = {"url": receiver.url, "link": "https://ops.example/alarms/"} | fields
        return routes.make(actor_of("supervisor", f"maker-of-{name}"), name=name, **fields)[0]

    return made


def test_an_episode_is_sent_once_and_its_end_once_signed_and_without_data(desk, engine, route, receiver):
    made = route()
    engine.create("desk", "R-1207", now=int(time.time() * 1000) - 3_600_000)
    recording.record_alarms()
    assert [sending.send_alarms() for _ in range(2)] == [1, 0]
    assert sender.send_due() == 1
    ((_, headers, body),) = receiver.requests
    assert signed_by(made.receiver.secret, headers, body)
    found = json.loads(body)
    assert (found["type"], found["data"]["title"]) == ("signalbox.alarm", "Warning alarm: sla of desk")
    (alarm,) = found["data"]["alarms"]
    assert (alarm["kind"], alarm["machine"], alarm["severity"], alarm["count"]) == ("sla", "desk", "warning", 2)
    assert found["data"]["text"].endswith("https://ops.example/alarms/")
    assert "R-1207" not in body.decode(), "an instance is nobody's business there"
    for id in ("old", "R-1207"):
        engine.fire("desk", id, "take")
    AlarmState.objects.update(last_seen=timezone.now() - timedelta(minutes=2))
    recording.record_alarms()
    assert [sending.send_alarms(timezone.now() + 2 * MINUTE) for _ in range(2)] == [1, 0]
    assert messages()[-1]["title"] == "Over: sla of desk"
    assert messages()[-1]["ended"][0]["episode"] == alarm["episode"]
    assert not AlarmNotice.objects.exists()


def test_a_new_episode_is_sent_again(route):
    route()
    row = stand()
    sending.send_alarms(NOW)
    row.episode = "e2"
    row.save()
    sending.send_alarms(NOW + 2 * MINUTE)
    assert [(message["begun"], message["over"]) for message in messages()] == [(1, 0), (1, 1)]


def test_a_flood_is_one_message_with_a_count_and_what_comes_within_a_minute_is_in_the_next(route):
    route()
    for number in range(300):
        stand(f"dead:m{number}/q", "critical" if number < 3 else "warning")
    assert sending.send_alarms(NOW) == 1
    for number in range(50):
        stand(f"dead:later{number}/q")
        sending.send_alarms(NOW + timedelta(seconds=number))
    sending.send_alarms(NOW + MINUTE)
    first, second = messages()
    assert (first["begun"], len(first["alarms"]), second["begun"]) == (300, sending.MOST, 50)
    assert first["title"] == "300 alarms: 3 critical, 297 warning"
    assert first["alarms"][0]["severity"] == "critical"
    assert "and 280 more: 280 warning" in first["text"]


def test_two_workers_at_once_make_one_message(route):
    made = route()
    row = stand()
    stale = AlarmRoute.objects.select_related("receiver").get(pk=made.pk)
    assert sending._make_message(made, [row], NOW)
    stale.notices.all().delete()  # what the other worker has read: nothing
    assert not sending._make_message(stale, [row], NOW)
    assert Delivery.objects.count() == 1


@for_each(
    "fields, alarm, sent",
    [
        ({}, {}, 1),
        ({"machines": ["order"]}, {}, 1),
        ({"machines": ["bill"]}, {}, 0),
        ({}, {"key": "metrics"}, 1),
        ({"machines": ["order"]}, {"key": "metrics"}, 0),
        ({"kinds": ["dead", "sla"]}, {}, 1),
        ({"kinds": ["sla"]}, {}, 0),
        ({"severity": "critical"}, {}, 0),
        ({"severity": "critical"}, {"severity": "critical"}, 1),
        ({"severity": "info"}, {"key": "approvals", "severity": "info"}, 1),
        ({}, {"key": "approvals", "severity": "info"}, 0),
        ({"hours": "mon-fri 08:00-18:00"}, {}, 1),
        ({"hours": "mon-fri 08:00-11:59"}, {}, 0),
        ({"hours": "sat-thu 00:00-24:00"}, {}, 0),
        ({"hours": "sat 00:00-24:00, fri 11:00-13:00"}, {}, 1),
        ({"hours": "13:00-13:30", "zone": "Europe/Paris"}, {}, 1),
        ({"hours": "thu 22:00-12:01"}, {}, 1),
        ({"hours": "fri 22:00-12:01"}, {}, 0),
        ({"hours": ","}, {}, 1),
        ({"after": 5}, {"first_seen": NOW - 5 * MINUTE}, 1),
        ({"after": 5}, {"first_seen": NOW - 4 * MINUTE}, 0),
        ({"after": 5}, {"first_seen": NOW - 9 * MINUTE, "owner": "ann"}, 0),
        ({}, {"snoozed_until": NOW + MINUTE}, 0),
        ({}, {"cleared_at": NOW}, 0),
        ({}, {"key": "of-another-release"}, 0),  # whose worker still runs, or ran before this one
    ],
)
def test_which_alarms_a_route_is_sent(fields, alarm, sent, route):
    Webhook.objects.all().delete()
    AlarmState.objects.all().delete()
    route(str(timezone.now().timestamp()), **fields)
    stand(**alarm)
    assert sending.send_alarms(NOW) == sent


def test_out_of_hours_it_waits_for_the_hours(route):
    route(hours="14:00-15:00")
    stand()
    assert [sending.send_alarms(NOW + timedelta(hours=hours)) for hours in (0, 2, 2)] == [0, 1, 0]


def refuse(route, field: str, word: str, **fields) -> None:
    """See that these fields are refused at this one, in these words, and that nothing is made."""
    with pytest.raises(BadRoute) as error:
        route(**{"name": f"r{timezone.now().timestamp()}"} | fields)
    assert (error.value.field, word in error.value.message) == (field, True), error.value.message
    assert not AlarmRoute.objects.exists()
    assert {entry.outcome for entry in AuditEntry.objects.filter(action="route.make")} == {"refused"}


@for_each(
    "url, word",
    [
        ("slak://a/b/c", "did you mean slack://"),
        ("json://", "json://{host}"),
        ("dbus://", "this machine itself"),
        ("json://10.0.0.1/x", "SIGNALBOX_WEBHOOK_HOSTS"),
        ("discord://1/abc?template=/etc/passwd", "no file is read"),
        ("discord://1/abc?a=b;Template=/etc/passwd", "no file is read"),
        ("discord://1/abc?%74emplate+=/etc/passwd", "no file is read"),
    ],
)
def test_an_address_of_apprise_that_does_not_fit_is_refused_with_a_word_that_helps(url, word, route, apprise):
    refuse(route, "url", word, url=url)


@for_each(
    "fields, field, word",
    [
        ({"url": "https://10.0.0.1/x"}, "url", "SIGNALBOX_WEBHOOK_HOSTS"),
        ({"url": "ops@example.com"}, "url", "slack://"),
        ({"hours": "9 to 5"}, "hours", "mon-fri 08:00-18:00"),
        ({"hours": "09:00-25:00"}, "hours", "00:00 to 24:00"),
        ({"zone": "Paris"}, "zone", "Europe/Paris"),
        ({"kinds": ["deaf"]}, "kinds", "no-worker"),
        ({"machines": ["a b"]}, "machines", "a b"),
        ({"severity": "bad"}, "severity", "critical, warning, info"),
        ({"after": -1}, "after", "minutes"),
        ({"link": "javascript:alert(1)"}, "link", "https://"),
        ({"name": " "}, "name", "1 to 80"),
        ({"colour": "red"}, "colour", "hours"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_word_that_helps(fields, field, word, route):
    refuse(route, field, word, **fields)


def test_by_apprise_a_message_arrives_and_no_secret_is_kept_beside_it(route, receiver, apprise):
    made = route(url=f"json://user:geheimnis@127.0.0.1:{receiver.server.server_address[1]}/geheim")
    stand()
    sending.send_alarms(NOW)
    receiver.answers = [500, 200]
    sender.send_due()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.tries) == ("waiting", 1)
    assert "500" in delivery.last["error"]
    assert "geheim" not in json.dumps(delivery.attempts)
    Delivery.objects.update(due=timezone.now())
    Webhook.objects.update(rest_until=None)
    sender.send_due()
    assert Delivery.objects.get().state == "sent"
    found = json.loads(receiver.requests[-1][2])
    assert (found["title"], found["type"]) == ("Warning alarm: dead of order", "warning")
    assert "geheim" not in json.dumps(list(AuditEntry.objects.values_list("detail", flat=True)))
    assert routes.show_address(made.receiver.url) == "json://•••"


def test_by_apprise_a_name_that_leads_inside_is_refused_when_it_is_sent_to(route, receiver, settings, apprise):
    route(url=f"json://localhost:{receiver.server.server_address[1]}/x")
    stand()
    sending.send_alarms(NOW)
    sender.send_due()
    assert "SIGNALBOX_WEBHOOK_HOSTS" in Delivery.objects.get().last["error"]
    assert receiver.requests == []


def test_a_service_that_hangs_is_left_and_stops_no_other(route, receiver, monkeypatch, apprise):
    route("hangs", url=f"json://127.0.0.1:{receiver.server.server_address[1]}/x")
    stand()
    sending.send_alarms(NOW)
    receiver.hang.clear()
    monkeypatch.setattr(apprise_post, "LONGEST", 0.2)
    assert sender.send_due() == 1
    assert "no response within 0.2 seconds" in Delivery.objects.get().last["error"]
    receiver.hang.set()
    route("posts")
    sending.send_alarms(NOW + 2 * MINUTE)
    sender.send_due()
    assert Delivery.objects.get(webhook__name="posts").state == "sent"


def test_it_takes_the_right_on_every_machine_and_leaves_entries(route, actor_of, db):
    made = route()
    viewer, boss = actor_of("operator"), actor_of("supervisor", "boss")
    for refused in (
        lambda: routes.list_routes(viewer),
        lambda: routes.make(viewer, name="x", url="https://example.com"),
        lambda: routes.change(viewer, made.pk, after=1),
        lambda: routes.test(viewer, made.pk),
        lambda: routes.delete(viewer, made.pk),
    ):
        with pytest.raises(Forbidden):
            refused()
    routes.change(boss, made.pk, after=30, kinds=["dead"])
    routes.pause(boss, made.pk)
    with pytest.raises(BadRoute, match="resume it first"):
        routes.test(boss, made.pk)
    routes.resume(boss, made.pk)
    old = made.receiver.secret
    assert routes.rotate(boss, made.pk)[1] != old
    routes.redeliver(boss, made.pk, routes.test(boss, made.pk).pk)
    routes.delete(boss, made.pk)
    with pytest.raises(UnknownRoute):
        routes.get(boss, made.pk)
    done = AuditEntry.objects.filter(actor="boss", outcome="done").order_by("pk")
    assert [entry.action for entry in done] == [
        "route.change", "route.change", "route.change", "route.rotate", "route.test", "route.redeliver", "route.delete",
    ]  # fmt: skip
    assert {entry.target for entry in done} == {"ops"}
    assert "hook" not in json.dumps([entry.detail for entry in done]), "no path of an address"
    assert not Webhook.objects.exists()


def test_a_change_leaves_what_workers_write_meanwhile(route, actor_of, monkeypatch):
    made, assign = route(), routes._assign
    stand()
    assert sending.send_alarms(NOW) == 1

    def assign_after_a_message(route, checked):
        stand("dead:parcel/pay")
        assert sending.send_alarms(NOW + MINUTE) == 1
        assign(route, checked)

    with monkeypatch.context() as patch:
        patch.setattr(routes, "_assign", assign_after_a_message)
        routes.change(actor_of("supervisor", "sue"), made.pk, after=5)
    row = AlarmRoute.objects.get()
    assert (row.after, row.passes, row.sent_at) == (5, 2, NOW + MINUTE)
    stand("sla:parcel", first_seen=NOW - 10 * MINUTE)
    assert sending.send_alarms(NOW + 2 * MINUTE) == 1
    assert [one["begun"] for one in messages()] == [1, 1, 1]


def test_an_address_is_checked_before_the_transaction_that_writes_it(route, actor_of, monkeypatch):
    made, boss, seen = route(), actor_of("supervisor", "boss"), []

    def check(url: str) -> str:
        seen.append(len(connection.savepoint_ids))
        return "" if url == "json://right.example" else "no such service"

    monkeypatch.setattr(apprise_post, "check", check)
    routes.change(boss, made.pk, url="json://right.example")
    with pytest.raises(BadRoute, match="no such service"):
        routes.change(boss, made.pk, url="json://wrong.example")
    assert seen == [len(connection.savepoint_ids)] * 2
    assert AlarmRoute.objects.get().receiver.url == "json://right.example"
    entries = AuditEntry.objects.filter(actor="boss").order_by("pk").values_list("target", "outcome")
    assert list(entries) == [("ops", "done"), ("ops", "refused")]


SECRET = "whsec_" + "a" * 43 + "="


def test_routes_of_the_settings_are_made_changed_and_removed(route, settings, actor_of, receiver):
    declared = {"name": "night", "url": receiver.url, "secret": SECRET, "hours": "22:00-06:00", "after": 15}
    configure(settings, ALARM_ROUTES=[declared])
    for _ in range(2):
        routes.declare()
    made = AlarmRoute.objects.get(declared=True)
    assert (made.hours, made.after, made.receiver.secret, made.receiver.name) == ("22:00-06:00", 15, SECRET, "night")
    with pytest.raises(BadRoute, match="in the settings"):
        routes.change(actor_of("supervisor"), made.pk, after=1)
    configure(settings, ALARM_ROUTES=[declared | {"after": 30}])
    routes.declare()
    assert AlarmRoute.objects.get().after == 30
    configure(settings, ALARM_ROUTES=[])
    routes.declare()
    assert not AlarmRoute.objects.exists()
    entries = AuditEntry.objects.filter(actor="settings").order_by("pk").values_list("action", "outcome")
    assert list(entries) == [("route.make", "done"), ("route.change", "done"), ("route.delete", "done")]


def test_a_route_of_the_settings_that_does_not_fit_is_an_error_of_check_and_loses_no_other(
    settings, db, receiver, caplog, apprise
):
    good = {"name": "good", "url": receiver.url, "secret": SECRET}
    bad = [
        {"name": "typo", "url": "slak://a/b/c"},
        {"name": "unsigned", "url": receiver.url},
        {"name": "never", "url": receiver.url, "secret": SECRET, "hours": "noon"},
    ]
    configure(settings, ALARM_ROUTES=[good, *bad])
    found = [error.msg for error in run_checks(tags=["signalbox_worker"]) if error.id == "signalbox.E060"]
    assert [text.split("'")[1] for text in found] == ["typo", "unsigned", "never"]
    assert ("slack://" in found[0], "secret" in found[1], "mon-fri" in found[2]) == (True, True, True)
    routes.declare()
    assert [str(route) for route in AlarmRoute.objects.all()] == ["good"]
    assert "slak" in caplog.text


def test_a_typo_in_the_settings_is_checked_and_said_once_for_each_change(settings, db, caplog, monkeypatch):
    checked = []
    monkeypatch.setattr(routes, "_refused", {})
    monkeypatch.setattr(apprise_post, "check", lambda url: checked.append(url) or "no such service" * ("slak" in url))

    def declare(url: str) -> None:
        configure(settings, ALARM_ROUTES=[{"name": "typo", "url": url}])
        for _ in range(3):
            routes.declare()

    for url in ("slak://a", "slak://b", "slak://a"):
        declare(url)
    assert checked == ["slak://a", "slak://b", "slak://a"], "each pass of the duty would start a process"
    assert caplog.text.count("no such service") == 3
    clock = routes.time.monotonic() + routes.AGAIN
    monkeypatch.setattr(routes.time, "monotonic", lambda: clock)
    declare("slak://a")
    assert (len(checked), caplog.text.count("no such service")) == (4, 3), "looked at again, and not said again"
    declare("json://chat.example")
    assert [str(route) for route in AlarmRoute.objects.all()] == ["typo"]


def test_routes_of_the_settings_without_room_are_logged_once_and_keep_no_alarm_from_being_sent(
    desk, route, receiver, settings, monkeypatch, caplog
):
    route("ops")
    monkeypatch.setattr(routes, "MOST", 2)
    monkeypatch.setattr(routes, "_refused", {})
    given = {"url": receiver.url, "secret": SECRET}
    configure(settings, ALARM_ROUTES=[{"name": name} | given for name in ("ops", "night", "day")])
    for _ in range(2):
        duties._care_for_alarms()
    assert {str(route) for route in AlarmRoute.objects.all()} == {"ops", "night"}
    assert Delivery.objects.filter(webhook__name="ops").count() == 1
    assert [caplog.text.count(f"route '{name}' of ALARM_ROUTES") for name in ("ops", "night", "day")] == [1, 0, 1]
    assert [entry.outcome for entry in AuditEntry.objects.filter(actor="settings")] == ["done"]


def test_an_address_whose_name_is_taken_is_not_checked(route, settings, db, monkeypatch, caplog):
    checked = []
    route("ops")
    monkeypatch.setattr(routes, "_refused", {})
    monkeypatch.setattr(apprise_post, "check", lambda url: checked.append(url) or "")
    configure(settings, ALARM_ROUTES=[{"name": "ops", "url": "json://chat.example"}])
    for _ in range(2):
        routes.declare()
    assert (checked, caplog.text.count("already exists")) == ([], 1), "each pass of the duty would start a process"


def test_the_first_of_them_that_fails_keeps_no_alarm_from_being_sent(desk, route, monkeypatch):
    def fail() -> None:
        raise BadRoute("name", "no room")

    route()
    monkeypatch.setattr(routes, "declare", fail)
    with pytest.raises(BadRoute):
        duties._care_for_alarms()
    assert Delivery.objects.count() == 1


def test_a_route_of_the_settings_is_the_same_however_it_is_written(receiver, settings, db, monkeypatch):
    checked = []
    monkeypatch.setattr(apprise_post, "check", lambda url: checked.append(url) or "")
    posts = {
        "name": " night ", "url": receiver.url.replace("http", "HTTP"), "secret": SECRET, "hours": " 22:00-06:00 ",
        "machines": ("order", "order"), "kinds": ("dead",),
    }  # fmt: skip
    configure(settings, ALARM_ROUTES=[posts, {"name": "chat", "url": "JSON://Chat.example"}])
    routes.declare()
    made, at_first = set(AlarmRoute.objects.values_list("pk", flat=True)), len(checked)
    routes.declare()
    assert set(AlarmRoute.objects.values_list("pk", flat=True)) == made
    assert [entry.action for entry in AuditEntry.objects.filter(actor="settings")] == ["route.make"] * 2
    assert len(checked) == at_first, "an address of apprise that is known starts no process"


def test_the_shape_of_the_setting_is_checked(settings, db):
    from machines.conf.table import resolve

    def problem(value) -> str:
        return " ".join(resolve({"ALARM_ROUTES": value})[1])

    assert "list of dicts" in problem("slack://")
    assert "'colour'" in problem([{"name": "a", "url": "b", "colour": "red"}])
    assert "no text 'url'" in problem([{"name": "a"}])
    assert "same name" in problem([{"name": "a", "url": "b"}, {"name": "a ", "url": "b"}])
