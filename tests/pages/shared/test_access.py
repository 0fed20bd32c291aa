"""The table of addresses is whole; the way to the login page and back; what is not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission
from django.urls import URLPattern, reverse

from dashboard import site_urls, urls
from dashboard.shared.permissions import require
from machines.people.permissions import RIGHTS, allows
from tests.cases import for_each
from tests.pages.table import NOT_FOR_BROWSERS, OF_INSTANCE, TABLE

MISSING = [
    ("machine", {"machine": "nothing"}),
    ("diagram", {"machine": "nothing"}),
    ("rows", {"machine": "nothing"}),
    ("create", {"machine": "nothing"}),
    ("instance", {"machine": "activation", "id": "nobody"}),
    ("instance", {"machine": "nothing", "id": "nobody"}),
    ("fire", {"machine": "activation", "id": "nobody"}),
    ("force", {"machine": "activation", "id": "nobody"}),
    ("edit", {"machine": "activation", "id": "nobody"}),
    ("skip", {"machine": "activation", "id": "nobody"}),
    ("suspend", {"machine": "activation", "id": "nobody"}),
    ("resume", {"machine": "activation", "id": "nobody"}),
    ("delete", {"machine": "activation", "id": "nobody"}),
    ("sm-key", {"key": "signalbox-test:access:nothing"}),
    ("sm-mutate", {"key": "signalbox-test:access:nothing"}),
    ("sm-force", {"key": "signalbox-test:access:nothing"}),
    ("bulk-new", {"machine": "nothing"}),
    ("bulk", {"id": "nothing"}),
    ("bulk-run", {"id": "nothing"}),
    ("bulk-results", {"id": "nothing"}),
    ("approval", {"id": "99"}),
    ("approval-approve", {"id": "99"}),
    ("direct", {"worker": "nobody"}),
    ("webhook", {"id": 99}),
    ("webhook-pause", {"id": 99}),
    ("webhook-redeliver", {"id": 7, "delivery": 99}),
    ("queue", {"machine": "new_device", "queue": "nothing"}),
    ("queue-charts", {"machine": "new_device", "queue": "nothing"}),
    ("queue-groups", {"machine": "new_device", "queue": "nothing"}),
    ("machine-charts", {"machine": "nothing"}),
    ("queue", {"machine": "nothing", "queue": "todo"}),
    ("queue-pause", {"machine": "new_device", "queue": "nothing"}),
    ("queue-purge", {"machine": "nothing", "queue": "todo"}),
    ("job", {"machine": "new_device", "id": "0-99"}),
    ("job", {"machine": "new_device", "id": "7-1"}),
    ("job", {"machine": "nothing", "id": "0-1"}),
    ("job-withdraw", {"machine": "new_device", "id": "0-99"}),
    ("patterns-act", {"section": "nothing"}),
]


def _addresses(patterns: list, namespace: str) -> Iterator[URLPattern]:
    """Every pattern below, of one namespace; "" for those without."""
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern
        elif (pattern.namespace or "") == namespace:
            yield from _addresses(pattern.url_patterns, "")


GUARDED = [(name, entry) for name, entry in TABLE.items() if entry.right and name not in NOT_FOR_BROWSERS]


def test_every_address_is_in_the_table():
    """``tests/security`` asks for each of them as every kind of people, and for the admin's, which have their own."""
    found = [*_addresses(site_urls.urlpatterns, ""), *_addresses(urls.urlpatterns, "")]
    assert {pattern.name for pattern in found} == set(TABLE)


def test_who_is_not_logged_in_goes_to_the_login_page_and_comes_back(filled, as_):
    client = as_("anonymous")
    for name, entry in GUARDED:
        address = entry.url(name)
        answer = client.get(address)
        assert (answer.status_code, answer.url.partition("?")[0]) == (302, "/accounts/login/"), name
        assert answer.url.endswith(address) or "next=" in answer.url


def test_a_form_sent_without_a_login_does_not_come_back_to_where_only_a_form_goes(filled, as_):
    answer = as_("anonymous").post(reverse("signalbox:fire", kwargs=OF_INSTANCE))
    assert answer.url == "/accounts/login/?next=/"


def test_what_is_not_there_is_a_404_for_those_who_may_look(filled, as_):
    client = as_("supervisor")

    @for_each("name, arguments", MISSING)
    def check(name, arguments):
        address = reverse(f"signalbox:{name}", kwargs=arguments)
        answer = client.post(address) if TABLE[name].get == 302 else client.get(address)
        assert answer.status_code == 404
        assert b"SB4" in answer.content or b"SB704" in answer.content

    check()


def test_a_right_without_view_is_no_right(user_of):
    user = user_of("nobody")
    user.user_permissions.set(Permission.objects.filter(codename="fire_machine"))
    assert not allows(user, "fire")


def test_who_was_deactivated_has_no_right(user_of):
    user = user_of("supervisor")
    user.is_active = False
    assert not any(allows(user, right) for right in RIGHTS)


def test_a_right_nobody_knows_is_a_mistake_in_the_code():
    with pytest.raises(ValueError, match="view, fire, operate, reveal, publish"):
        require("drive")


def test_a_viewer_sees_no_action(filled, as_):
    page = as_("viewer").get(reverse("signalbox:instance", kwargs=OF_INSTANCE)).content.decode()
    assert "/fire/" not in page
    assert "/force/" not in page
    assert "read-only access" in page


def test_an_operator_sees_actions_and_no_repairs(filled, as_):
    page = as_("operator").get(reverse("signalbox:instance", kwargs=OF_INSTANCE)).content.decode()
    assert "/fire/" in page
    assert "/force/" not in page
