"""A person's own page, and the times that all pages tell in the zone and on the clock that are chosen there."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from guardian.shortcuts import assign_perm

from dashboard.models import Preferences
from dashboard.shared import times
from machines.catalog import publishing
from machines.models import AuditEntry, Machine
from tests.cases import for_each

NOON = int(datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp() * 1000)
CHOSEN = {"time_zone": "Asia/Kolkata", "clock": "24", "keys": "on"}


def text_of(answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@for_each(
    "zone, clock, said",
    [
        ("UTC", 24, "1 Jul 2026, 12:00:00 UTC"),
        ("Europe/Paris", 24, "1 Jul 2026, 14:00:00 UTC+2"),
        ("Asia/Kolkata", 24, "1 Jul 2026, 17:30:00 UTC+5:30"),
        ("America/St_Johns", 12, "1 Jul 2026, 9:30:00 am UTC-2:30"),
        ("Pacific/Auckland", 12, "2 Jul 2026, 12:00:00 am UTC+12"),
    ],
)
def test_a_moment_is_told_with_the_offset_of_its_zone(zone, clock, said):
    token = times.clock.set(clock)
    try:
        with timezone.override(zone):
            assert times.format_local(NOON) == said
            assert times.format_utc(NOON) == "2026-07-01 12:00:00 UTC"
            assert str(times.format_element(NOON)).startswith(
                '<time datetime="2026-07-01T12:00:00.000+00:00" title="2026-07-01'
            )
    finally:
        times.clock.reset(token)


@pytest.mark.parametrize("ms", [10**18, -(10**18), -62135596800000])
def test_a_moment_that_no_calendar_has_breaks_nothing(ms):
    with timezone.override("America/New_York"):
        assert times.format_local(ms)
        assert times.format_time_of_day(ms)


def test_who_chose_a_zone_sees_every_moment_in_it_and_nobody_else_does(as_, waiting):
    chooser, other = as_("supervisor", "sue"), as_("supervisor", "otto")
    assert chooser.post(reverse("signalbox:account"), CHOSEN).url == reverse("signalbox:account")
    AuditEntry.objects.create(at=datetime(2026, 7, 1, 12, tzinfo=UTC), actor="sue", action="fire", outcome="done")
    assert "1 Jul 2026, 17:30:00 UTC+5:30" in text_of(chooser.get(reverse("signalbox:audit")))
    assert "1 Jul 2026, 12:00:00 UTC" in text_of(other.get(reverse("signalbox:audit")))
    assert "UTC+5:30" in text_of(chooser.get(reverse("signalbox:overview")))
    assert timezone.get_current_timezone_name() == "UTC"


def test_a_time_typed_into_a_form_is_in_the_zone_of_whoever_typed_it_and_the_link_says_which(as_, prefix):
    client = as_("supervisor", "sue")
    client.post(reverse("signalbox:account"), CHOSEN)
    for minute in range(60):
        AuditEntry.objects.create(
            at=datetime(2026, 7, 1, 12, minute, tzinfo=UTC), actor="sue", action="fire", outcome="done"
        )
    answer = client.get(reverse("signalbox:audit"), {"since": "2026-07-01T17:32", "until": "2026-07-01T18:25:00"})
    page = answer.content.decode()
    assert page.count("data-entry=") == 50
    assert 'value="2026-07-01T17:32:00"' in page
    assert "since=2026-07-01T12%3A02%3A00Z" in page
    assert "1 Jul 2026, 18:24:00 UTC+5:30" in text_of(answer)
    assert "18:25:00 UTC+5:30" not in text_of(answer)


def test_the_admin_tells_the_same_times(as_, user_of, prefix):
    client = as_("supervisor", "sue")
    client.post(reverse("signalbox:account"), CHOSEN)
    user = Preferences.objects.get().user
    user.is_staff = True
    user.save()
    AuditEntry.objects.create(at=datetime(2026, 7, 1, 12, tzinfo=UTC), actor="sue", action="fire", outcome="done")
    assert "2026-07-01 17:30:00 IST" in text_of(client.get("/admin/machines/auditentry/"))


def test_what_is_wrong_is_said_and_nothing_is_kept(as_, prefix):
    client = as_("viewer")
    answer = client.post(reverse("signalbox:account"), CHOSEN | {"time_zone": "Mars/Olympus"})
    assert answer.status_code == 400
    assert "Mars/Olympus is not one of the available choices" in text_of(answer)
    assert not Preferences.objects.exists()


def test_the_offered_zone_is_taken_once_and_leads_back(as_, prefix):
    client, address = as_("viewer"), reverse("signalbox:account-zone")
    assert "data-zone-offer" in client.get("/queues/").content.decode()
    assert client.post(address, {"time_zone": "Europe/Paris", "next": "/queues/"}).url == "/queues/"
    assert "data-zone-offer" not in client.get("/queues/").content.decode()
    assert client.post(address, {"time_zone": "nowhere", "next": "https://elsewhere.example/"}).url == reverse(
        "signalbox:account"
    )
    assert Preferences.objects.get().time_zone == "Europe/Paris"


def test_a_zone_that_is_known_no_more_is_the_sites(settings):
    settings.TIME_ZONE = "Europe/Paris"
    assert times.zone_of("Gone/Away").key == times.zone_of("").key


def test_the_page_says_which_rights_one_holds_and_where(user_of, as_, waiting, devices):
    client = as_("nobody", "ann")
    user = client.get(reverse("signalbox:account")).wsgi_request.user
    user.groups.add(Group.objects.create(name="night shift"))
    publishing.adopt("activation")
    machine = Machine.objects.get(name="activation")
    for right in ("view_machine", "fire_machine"):
        assign_perm(f"machines.{right}", user, machine)
    said = text_of(client.get(reverse("signalbox:account")))
    assert "ann, in night shift" in said
    assert "fire create instances and fire events activation" in said
    assert "operate" not in said
    assert as_("anonymous").get(reverse("signalbox:account")).url == "/accounts/login/?next=/account/"


def test_programs_cost_no_look_at_preferences(as_, waiting):
    client = as_("viewer")
    for address in ("/healthz", "/api/v1/live/?topic=overview", "/metrics"):
        with CaptureQueriesContext(connection) as asked:
            assert client.get(address).status_code == 200
        assert not [one for one in asked if "preferences" in one["sql"]], address


async def test_it_is_the_same_when_the_site_runs_asynchronously_as_it_does(user_of, prefix, transactional_db):
    user = await sync_to_async(user_of)("viewer")
    await Preferences.objects.acreate(user=user, time_zone="Asia/Kolkata", clock=24)
    client = AsyncClient()
    await client.aforce_login(user)
    page = text_of(await client.get("/queues/"))
    assert "UTC+5:30" in page
    assert timezone.get_current_timezone_name() == "UTC"


def test_the_theme_is_kept_with_the_person_and_known_before_the_login(as_, prefix):
    client = as_("viewer", "vera")
    assert 'data-theme="' not in client.get(reverse("signalbox:account")).content.decode()
    answer = client.post(reverse("signalbox:account-theme"), {"theme": "dark", "next": "/queues/"})
    assert answer.url == "/queues/"
    assert '<html lang="en" data-theme="dark">' in client.get(reverse("signalbox:account")).content.decode()
    client.post(reverse("signalbox:logout"))
    assert 'data-theme="dark"' in client.get(reverse("signalbox:login")).content.decode()
    cookie = client.cookies["signalbox_theme"]
    assert (cookie["samesite"], cookie["httponly"]) == ("Lax", True)
    other = as_("viewer", "otto")
    other.cookies["signalbox_theme"] = "dark"  # of whoever used the browser before
    assert 'data-theme="' not in other.get(reverse("signalbox:account")).content.decode()


def test_the_form_of_the_account_sets_the_theme_too(as_, prefix):
    client = as_("viewer", "vera")
    client.post(reverse("signalbox:account"), CHOSEN | {"theme": "light"})
    assert Preferences.objects.get(user__username="vera").theme == "light"
    assert client.cookies["signalbox_theme"].value == "light"


@pytest.mark.parametrize("theme", ["pink", '"><script>', "\0", "x" * 9000])
def test_a_theme_that_there_is_not_changes_nothing(as_, prefix, theme):
    client = as_("viewer", "vera")
    answer = client.post(reverse("signalbox:account-theme"), {"theme": theme, "next": "https://example.org/"})
    assert answer.url == reverse("signalbox:account")
    client.cookies["signalbox_theme"] = "pink"
    assert not Preferences.objects.filter(user__username="vera").exclude(theme="").exists()
    assert 'data-theme="' not in client.get(reverse("signalbox:account")).content.decode()
