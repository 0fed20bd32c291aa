"""Tokens on the account's page and in the admin: made, shown once, revoked; and all of it in the audit."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission
from django.core.exceptions import PermissionDenied
from django.test import Client

from machines.models import AuditEntry, Token
from machines.people import actions as services
from machines.people import tokens
from machines.people.actor import Actor
from machines.people.errors import Forbidden

from .conftest import Caller

FORM = {"name": "night shift", "rights": ["view", "fire"], "days": "30", "key": "k-1"}


@pytest.fixture
def ann(door, user_of):
    return user_of("ann", "view", "fire")


@pytest.fixture
def page(ann) -> Client:
    client = Client()
    client.force_login(ann)
    return client


def test_a_token_is_shown_once_and_works(page, ann):
    made = page.post("/account/tokens/", FORM)
    text = re.search(r"sb_[0-9a-f]{12}_[0-9a-f]{64}", made.content.decode())[0]
    assert "no-store" in made["Cache-Control"]
    me = Caller(text).get("/me").json()
    assert (me["name"], sorted(me["rights"]), me["token"]["name"]) == ("ann", ["fire", "view"], "night shift")
    again = page.post("/account/tokens/", FORM, follow=True)
    assert text not in again.content.decode()
    token = Token.objects.get()
    assert text.rpartition("_")[2] not in str(vars(token))
    entry = AuditEntry.objects.get(action="token.make")
    assert (entry.actor, entry.target, entry.outcome) == ("ann", token.handle, "done")
    assert text.rpartition("_")[2] not in str(entry.detail)


def test_what_cannot_be_is_said_and_nothing_is_made(page):
    wrong = {"name": [""], "days": ["366", "0", ""], "rights": [["operate"]], "machines": [["no"]]}
    for field, values in wrong.items():
        for value in values:
            answer = page.post("/account/tokens/", FORM | {field: value})
            assert answer.status_code == 400
            assert b'class="error"' in answer.content
    assert not Token.objects.exists()


def test_one_revokes_ones_own_and_nobody_elses(page, ann, user_of):
    own, text = tokens.make(ann, "own", ["view"])
    other, _ = tokens.make(user_of("bob", "view"), "bobs", ["view"])
    assert page.post(f"/account/tokens/{own.handle}/revoke/").status_code == 302
    assert Caller(text).get("/me").status_code == 401
    assert page.post(f"/account/tokens/{other.handle}/revoke/").status_code == 404
    assert Token.objects.get(pk=other.pk).revoked is None
    assert AuditEntry.objects.get(action="token.revoke").target == own.handle


def test_a_token_is_revoked_once_and_keeps_the_time(ann):
    token, _ = tokens.make(ann, "own", ["view"])
    assert tokens.revoke(token)
    first = Token.objects.get(pk=token.pk).revoked
    assert not tokens.revoke(token)
    assert Token.objects.get(pk=token.pk).revoked == first


def test_the_admin_shows_them_without_their_digest_and_revokes(ann, user_of):
    token, text = tokens.make(ann, "own", ["view"])
    staff = user_of("staff", "view")
    type(staff).objects.filter(pk=staff.pk).update(is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_token"))
    client = Client()
    client.force_login(staff)
    shown = client.get(f"/admin/machines/token/{token.pk}/change/").content.decode()
    assert token.handle in shown
    assert token.digest not in shown
    action = {"action": "revoke", "_selected_action": [token.pk]}
    client.post("/admin/machines/token/", action)
    assert Token.objects.get().revoked is None
    staff.user_permissions.add(Permission.objects.get(codename="revoke_token"))
    client.post("/admin/machines/token/", action)
    assert Caller(text).get("/me").status_code == 401
    assert AuditEntry.objects.get(action="token.revoke").actor == "staff"


def test_a_service_makes_ones_own_within_ones_rights_and_revokes_no_other(ann, user_of):
    actor, other = Actor(ann, "test"), tokens.make(user_of("bob", "view"), "bobs", ["view"])[0]
    with pytest.raises(Forbidden):
        services.make(actor, "more", ["operate"])
    with pytest.raises(tokens.Unmakeable, match="logged in"):
        services.make(Actor(ann, "api", tokens.reach_of(other)), "longer", ["view"])
    with pytest.raises(PermissionDenied):
        services.revoke(actor, other)
    assert list(Token.objects.filter(revoked=None)) == [other]
    assert [entry.outcome for entry in AuditEntry.objects.filter(actor="ann")] == ["refused"] * 3


def test_a_person_has_a_bounded_number_of_them(ann, monkeypatch):
    monkeypatch.setattr(tokens, "MAX_EACH", 1)
    tokens.make(ann, "one", ["view"])
    with pytest.raises(tokens.Unmakeable, match="revoke one first"):
        tokens.make(ann, "two", ["view"])


def test_the_page_of_the_api_shows_every_operation_and_every_code(page):
    from dashboard.api.framework.operation import OPERATIONS
    from dashboard.shared.errors import problems

    shown = page.get("/api/v1/docs").content.decode()
    for id, operation in OPERATIONS.items():
        assert f'id="{id}"' in shown
        assert operation.right in shown
    assert all(f'id="{code.code}"' in shown for code in problems.list_codes())
