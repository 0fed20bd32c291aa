"""Who may open which address of the site, by role: what ``table`` says, held against all addresses there are."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import URLPattern, reverse

from dashboard import urls
from dashboard.access import RIGHTS, ROLES, allows, require

from .table import NOT_FOR_BROWSERS, OF_INSTANCE, TABLE

ROLE_NAMES = ["nobody", *ROLES]

MISSING = [
    ("machine", {"machine": "nothing"}),
    ("diagram", {"machine": "nothing"}),
    ("instances", {"machine": "nothing"}),
    ("counts", {"machine": "nothing"}),
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
    ("machine-charts", {"machine": "nothing"}),
    ("queue", {"machine": "nothing", "queue": "todo"}),
    ("queue-pause", {"machine": "new_device", "queue": "nothing"}),
    ("queue-purge", {"machine": "nothing", "queue": "todo"}),
    ("job", {"machine": "new_device", "id": "0-99"}),
    ("job", {"machine": "new_device", "id": "7-1"}),
    ("job", {"machine": "nothing", "id": "0-1"}),
    ("job-withdraw", {"machine": "new_device", "id": "0-99"}),
    ("patterns-section", {"section": "nothing"}),
    ("patterns-act", {"section": "nothing", "act": "hit"}),
    ("patterns-act", {"section": "throttle", "act": "nothing"}),
]


def _addresses(patterns: list, namespace: str) -> Iterator[URLPattern]:
    """Every pattern below, of one namespace; "" for those without."""
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern
        elif (pattern.namespace or "") == namespace:
            yield from _addresses(pattern.url_patterns, "")


def _admin() -> list[URLPattern]:
    admin = next(pattern for pattern in urls.urlpatterns if getattr(pattern, "namespace", "") == "admin")
    return [pattern for pattern in _addresses(admin.url_patterns, "") if pattern.name not in ("login", "logout")]


GUARDED = [(name, entry) for name, entry in TABLE.items() if entry.right and name not in NOT_FOR_BROWSERS]


def test_every_address_is_in_the_table():
    """The admin's are Django's own and have a test of their own below."""
    assert {pattern.name for pattern in _addresses(urls.urlpatterns, "")} == set(TABLE)


@pytest.mark.parametrize("role", ["anonymous", "nobody", "publisher"])
def test_the_admin_is_for_staff(filled, as_, role):
    client = as_(role)
    patterns = _admin()
    assert len(patterns) > 10
    for pattern in patterns:
        path = "/admin/" + re.sub(r"<[^>]+>", "1", str(pattern.pattern)).lstrip("^").rstrip("$")
        answer = client.get(path)
        assert answer.status_code in (302, 404), path
        assert answer.status_code == 404 or "/admin/" in answer.url, path


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize(("name", "entry"), TABLE.items(), ids=TABLE)
@pytest.mark.parametrize("role", ROLE_NAMES)
def test_each_role_gets_what_the_table_says(filled, as_, role, name, entry, method):
    answer = getattr(as_(role), method)(entry.url(name))
    allowed = entry.right is None or entry.right in ROLES.get(role, ())
    logged_in = {("login", "get"): 302, ("login", "post"): 302}  # straight on to the start page
    expected = logged_in.get((name, method), getattr(entry, method)) if allowed else 403
    if name in NOT_FOR_BROWSERS and method == "post":
        expected = 405
    assert answer.status_code == expected


@pytest.mark.parametrize(("name", "entry"), GUARDED, ids=[name for name, _ in GUARDED])
def test_who_is_not_logged_in_goes_to_the_login_page_and_comes_back(filled, as_, name, entry):
    address = entry.url(name)
    answer = as_("anonymous").get(address)
    assert (answer.status_code, answer.url.partition("?")[0]) == (302, "/accounts/login/")
    assert answer.url.endswith(address) or "next=" in answer.url


def test_a_form_sent_without_a_login_does_not_come_back_to_where_only_a_form_goes(filled, as_):
    answer = as_("anonymous").post(reverse("fire", kwargs=OF_INSTANCE))
    assert answer.url == "/accounts/login/?next=/"


@pytest.mark.parametrize(("name", "arguments"), MISSING)
def test_what_is_not_there_is_a_404_for_those_who_may_look(filled, as_, name, arguments):
    client = as_("supervisor")
    address = reverse(name, kwargs=arguments)
    answer = client.post(address) if TABLE[name].get == 302 else client.get(address)
    assert answer.status_code == 404
    assert b"SB4" in answer.content or b"SB704" in answer.content


@pytest.mark.parametrize(("name", "arguments"), MISSING)
def test_who_may_not_look_does_not_learn_what_is_there(filled, as_, name, arguments):
    assert as_("nobody").get(reverse(name, kwargs=arguments)).status_code == 403


@pytest.mark.parametrize(
    "name",
    [
        *("create", "fire", "force", "delete", "sm-mutate", "sm-force", "direct", "queue-purge", "job-withdraw"),
        "patterns-act",
    ],
)
def test_a_form_without_its_csrf_token_is_not_taken(filled, user_of, prefix, name):
    client = Client(enforce_csrf_checks=True)
    client.force_login(user_of("supervisor"))
    answer = client.post(reverse(name, kwargs=TABLE[name].arguments), {"event": "entitle"})
    assert answer.status_code == 403
    assert b"SB708" in answer.content


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


def test_a_viewer_sees_no_lever(filled, as_):
    page = as_("viewer").get(reverse("instance", kwargs=OF_INSTANCE)).content.decode()
    assert "/fire/" not in page
    assert "/force/" not in page
    assert "you may look, not fire" in page


def test_an_operator_sees_levers_and_no_repairs(filled, as_):
    page = as_("operator").get(reverse("instance", kwargs=OF_INSTANCE)).content.decode()
    assert "/fire/" in page
    assert "/force/" not in page
