"""Accounts in the audit: every change of a user, a group, a right or a token, by whichever door, and no secret."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission
from django.core import serializers
from django.core.management import call_command
from django.db import transaction
from django.db.models.signals import post_save
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from guardian.shortcuts import assign_perm, remove_perm

from machines.audit.entries import ACTIONS
from machines.audit.request_context import current_request
from machines.catalog import publishing
from machines.models import AuditEntry, Machine, MachineUserGrant, Token
from machines.people import actions as token_service
from machines.people import tokens
from machines.people.actor import Actor
from tests.catalog.samples import door
from tests.security.requests.test_login import attempt

pytestmark = [pytest.mark.django_db, pytest.mark.account_audit]
SECRET = "correct horse battery"


def entries(*nouns: str) -> list[AuditEntry]:
    """Oldest first; those of ``nouns`` alone."""
    found = AuditEntry.objects.order_by("id")
    return [entry for entry in found if not nouns or entry.action.partition(".")[0] in nouns]


def told(*nouns: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [(entry.action, entry.target, entry.detail) for entry in entries(*nouns)]


def permission(codename: str) -> Permission:
    return Permission.objects.get(codename=codename, content_type__app_label="machines")


@pytest.fixture
def boss(prefix: str) -> Any:
    return get_user_model().objects.create_superuser("boss", password=SECRET)


@pytest.fixture
def desk(boss: Any) -> Client:
    """The boss in the admin; what it took to get there is forgotten."""
    client = Client(REMOTE_ADDR="192.0.2.7")
    client.force_login(boss)
    forget()
    return client


@pytest.fixture
def mallory() -> Any:
    user = get_user_model().objects.create_user("mallory", "m@example.com", SECRET)
    forget()
    return user


@pytest.fixture
def machine(engine) -> Machine:
    row = publishing.publish(door()).machine
    forget()
    return row


def forget() -> None:
    AuditEntry.objects.all()._raw_delete("default")


# From a shell and from commands


def test_an_account_that_comes_and_goes_leaves_two_entries():
    group = Group.objects.create(name="night shift")
    forget()
    user = get_user_model().objects.create_user("ann", "ann@example.com", SECRET, is_staff=True)
    user.groups.add(group)
    user.user_permissions.add(permission("fire_machine"))
    user.delete()
    facts = {"email": "ann@example.com", "is_active": True, "is_staff": True}
    assert told() == [
        ("user.make", "ann", facts),
        ("user.groups", "ann", {"added": ["night shift"]}),
        ("user.rights", "ann", {"added": ["machines.fire_machine"]}),
        ("user.delete", "ann", facts | {"groups": ["night shift"], "rights": ["machines.fire_machine"]}),
    ]
    assert {(entry.source, entry.outcome) for entry in entries()} == {("command line", "done")}
    assert {entry.actor for entry in entries()} == {Actor.console().name}


@pytest.mark.parametrize(
    ("field", "value", "before"),
    [("is_superuser", True, False), ("is_staff", True, False), ("is_active", False, True),
     ("email", "other@example.com", "m@example.com"), ("first_name", "M", ""), ("username", "alice", "mallory")],
)  # fmt: skip
def test_a_change_says_what_it_was_before(mallory, field, value, before):
    setattr(mallory, field, value)
    mallory.save()
    assert told() == [("user.change", "mallory", {"changed": {field: {"before": before, "after": value}}})]


def test_saving_what_is_there_already_leaves_none(mallory):
    mallory.save()
    mallory.last_login = timezone.now()
    mallory.save(update_fields=["last_login"])
    mallory.save()
    assert entries() == []


def test_a_field_that_is_not_saved_is_not_told(mallory):
    mallory.is_superuser, mallory.email = True, "x@example.com"
    mallory.save(update_fields=["email"])
    changes = {"email": {"before": "m@example.com", "after": "x@example.com"}}
    assert told() == [("user.change", "mallory", {"changed": changes})]


def test_a_password_is_told_and_nothing_of_it(mallory):
    mallory.set_password("another one of hers")
    mallory.save()
    mallory.set_unusable_password()
    mallory.save()
    mallory.password = make_password("behind the back of Django")
    mallory.save(update_fields=["password"])
    assert [(action, target) for action, target, _ in told()] == [("user.password", "mallory")] * 3
    assert [detail["password"] for *_, detail in told()] == ["set", "none: nobody can log in with one", "set"]
    _holds_no_secret(mallory.password)


def test_a_hash_that_a_login_renews_is_no_new_password(mallory, settings, prefix):
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.PBKDF2PasswordHasher", "django.contrib.auth.hashers.MD5PasswordHasher",
    ]  # fmt: skip
    assert attempt(name="mallory", password=SECRET).status_code == 302
    assert [(entry.action, entry.actor, entry.source) for entry in entries()] == [
        ("user.password", "(unknown)", "page 192.0.2.1"), ("login", "mallory", "page 192.0.2.1"),
    ]  # fmt: skip
    assert entries()[0].detail == {"password": "its hash written anew"}


def test_the_commands_of_django_leave_entries(monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", SECRET)
    call_command("createsuperuser", "--noinput", username="root", email="r@example.com", stdout=io.StringIO())
    monkeypatch.setattr("getpass.getpass", lambda prompt: f"{SECRET} 2")
    call_command("changepassword", "root", stdout=io.StringIO())
    facts = {"email": "r@example.com", "is_active": True, "is_staff": True, "is_superuser": True}
    assert told() == [("user.make", "root", facts), ("user.password", "root", {"password": "set"})]
    assert {entry.source for entry in entries()} == {"command line"}
    _holds_no_secret(SECRET)


def test_a_fixture_is_loaded_with_entries(tmp_path, mallory):
    text = serializers.serialize("json", [mallory])
    mallory.delete()
    forget()
    file = tmp_path / "people.json"
    file.write_text(text, encoding="utf-8")
    call_command("loaddata", str(file), stdout=io.StringIO())
    assert [(action, target) for action, target, _ in told()] == [("user.make", "mallory")]
    _holds_no_secret(json.loads(text)[0]["fields"]["password"])


def test_a_group_is_told_with_its_rights_and_members(mallory):
    group = Group.objects.create(name="night")
    group.permissions.set([permission("fire_machine"), permission("view_machine")])
    group.user_set.add(mallory)
    group.name = "night shift"
    group.save()
    group.permissions.remove(permission("view_machine"))
    group.delete()
    assert told() == [
        ("group.make", "night", {}),
        ("group.rights", "night", {"added": ["machines.fire_machine", "machines.view_machine"]}),
        ("user.groups", "mallory", {"added": ["night"]}),
        ("group.change", "night", {"changed": {"name": {"before": "night", "after": "night shift"}}}),
        ("group.rights", "night shift", {"removed": ["machines.view_machine"]}),
        ("group.delete", "night shift", {"members": ["mallory"], "rights": ["machines.fire_machine"]}),
    ]


def test_whatever_side_a_membership_is_taken_from_and_however_it_is_told(mallory):
    one, two = (Group.objects.create(name=name) for name in ("one", "two"))
    right = permission("fire_machine")
    forget()
    mallory.groups.set([one, two])
    mallory.groups.set([two])
    mallory.groups.clear()
    two.user_set.add(mallory)
    two.user_set.clear()
    right.user_set.add(mallory)
    right.user_set.clear()
    one.permissions.add(right)
    right.group_set.remove(one)
    mallory.groups.clear()  # there is none left
    named = {"added": ["machines.fire_machine"]}, {"removed": ["machines.fire_machine"]}
    assert told() == [
        ("user.groups", "mallory", {"added": ["one", "two"]}),
        ("user.groups", "mallory", {"removed": ["one"]}),
        ("user.groups", "mallory", {"removed": ["two"]}),
        ("user.groups", "mallory", {"added": ["two"]}),
        ("user.groups", "mallory", {"removed": ["two"]}),
        ("user.rights", "mallory", named[0]),
        ("user.rights", "mallory", named[1]),
        ("group.rights", "one", named[0]),
        ("group.rights", "one", named[1]),
    ]


def test_a_right_on_one_machine_is_told_on_that_machine(mallory, machine):
    group = Group.objects.create(name="night")
    forget()
    assign_perm("machines.fire_machine", mallory, machine)
    assign_perm("machines.fire_machine", mallory, machine)  # has it already
    assign_perm("machines.view_machine", group, machine)
    grant = MachineUserGrant.objects.get()
    grant.permission = permission("publish_machine")
    grant.save()
    remove_perm("machines.publish_machine", mallory, machine)
    group.delete()
    changed = {"permission": {"before": "machines.fire_machine", "after": "machines.publish_machine"}}
    of_her, of_them = {"holder": "user mallory"}, {"holder": "group night"}
    assert told("grant") == [
        ("grant.make", "user mallory", of_her | {"right": "machines.fire_machine"}),
        ("grant.make", "group night", of_them | {"right": "machines.view_machine"}),
        ("grant.change", "user mallory", {"changed": changed}),
        ("grant.delete", "user mallory", of_her | {"right": "machines.publish_machine"}),
        ("grant.delete", "group night", of_them | {"right": "machines.view_machine"}),
    ]
    assert {entry.machine for entry in entries("grant")} == {"door"}


def test_a_token_is_told_once_whoever_makes_it(mallory, machine):
    assign_perm("machines.view_machine", mallory, machine)
    mallory = get_user_model().objects.get(pk=mallory.pk)
    forget()
    made, text = token_service.make(Actor(mallory, "page 192.0.2.7"), "ci", ["view"])
    by_hand, other = tokens.make(mallory, "ci", ["view", "fire"])
    by_hand.expires += timedelta(days=300)
    by_hand.machines = ["door"]
    by_hand.uses += 1
    by_hand.save()
    token_service.revoke(Actor(mallory, "page 192.0.2.7"), made)
    by_hand.delete()
    assert [(entry.action, entry.target, entry.source) for entry in entries()] == [
        ("token.make", made.handle, "page 192.0.2.7"),
        ("token.make", by_hand.handle, "command line"),
        ("token.change", by_hand.handle, "command line"),
        ("token.revoke", made.handle, "page 192.0.2.7"),
        ("token.delete", by_hand.handle, "command line"),
    ]
    assert sorted(entries()[2].detail["changed"]) == ["expires", "machines"]
    assert entries()[1].detail["owner"] == "mallory"
    _holds_no_secret(text.rpartition("_")[2], other.rpartition("_")[2], by_hand.digest, made.digest)


def test_what_goes_with_an_account_is_told_and_its_name_stays(mallory, machine):
    assign_perm("machines.view_machine", mallory, machine)
    made, _ = tokens.make(mallory, "ci", ["view"])
    token_service.revoke(Actor(mallory, "page 192.0.2.7"), made)
    pk = str(mallory.pk)
    mallory.delete()
    assert {(action, target) for action, target, _ in told()} >= {
        ("grant.delete", "user mallory"), ("token.delete", made.handle), ("user.delete", "mallory"),
    }  # fmt: skip
    (revoked,) = [entry for entry in entries() if entry.action == "token.revoke"]
    assert (revoked.actor, revoked.actor_id) == ("mallory", pk)


def test_what_is_rolled_back_leaves_no_entry(mallory):
    mallory.is_superuser = True
    with transaction.atomic():
        mallory.save()
        assert len(entries()) == 1
        transaction.set_rollback(True)
    assert entries() == []


def test_a_subclass_without_a_table_is_heard(mallory):
    """A proxy sends signals of its own."""
    for model in apps.get_models():
        if issubclass(model, (get_user_model(), Group, Token)):
            assert post_save.has_listeners(model)


def test_what_sends_no_signal_leaves_no_entry_as_the_docs_say(mallory):
    get_user_model().objects.filter(pk=mallory.pk).update(is_superuser=True)
    Group.objects.bulk_create([Group(name="night")])
    assert entries() == []


def test_the_groups_that_come_with_the_product_are_nobodys_doing():
    Group.objects.all().delete()
    forget()
    call_command("migrate", verbosity=0)
    assert Group.objects.filter(name="viewer").exists()
    assert entries() == []


# From the admin


def test_the_admin_leaves_who_made_whom_and_from_where(desk):
    add = reverse("admin:auth_user_add")
    sent = {"username": "mallory", "usable_password": "true", "password1": SECRET, "password2": SECRET}
    assert desk.post(add, sent).status_code == 302
    assert told() == [("user.make", "mallory", {"is_active": True})]
    entry = entries()[0]
    assert (entry.actor, entry.source, entry.outcome) == ("boss", "admin 192.0.2.7", "done")
    assert entry.request
    _holds_no_secret(SECRET, get_user_model().objects.get(username="mallory").password)


def test_the_admin_promotes_and_every_part_is_told(desk, mallory):
    group = Group.objects.get(name="supervisor")
    address = reverse("admin:auth_user_change", args=[mallory.pk])
    joined = timezone.localtime(mallory.date_joined)
    sent = {
        "username": "mallory", "email": "m@example.com", "is_active": "on", "is_superuser": "on", "is_staff": "on",
        "groups": [group.pk], "user_permissions": [permission("publish_machine").pk],
        "date_joined_0": f"{joined:%Y-%m-%d}", "date_joined_1": f"{joined:%H:%M:%S}",
    }  # fmt: skip
    assert desk.post(address, sent).status_code == 302
    changes = entries()[0].detail["changed"]
    changes.pop("date_joined", None)  # the form rounds it
    assert changes == {name: {"before": False, "after": True} for name in ("is_staff", "is_superuser")}
    assert told()[1:] == [
        ("user.groups", "mallory", {"added": ["supervisor"]}),
        ("user.rights", "mallory", {"added": ["machines.publish_machine"]}),
    ]
    assert {entry.actor for entry in entries()} == {"boss"}
    assert len({entry.request for entry in entries()}) == 1


def test_the_admin_sets_a_password(desk, mallory):
    address = reverse("admin:auth_user_password_change", args=[mallory.pk])
    sent = {
        "usable_password": "true",
        "password1": "a new one of 2",
        "password2": "a new one of 2",
        "set-password": "1",
    }
    assert desk.post(address, sent).status_code == 302
    assert told() == [("user.password", "mallory", {"password": "set"})]
    assert entries()[0].actor == "boss"
    _holds_no_secret("a new one of 2")


def test_the_admin_deletes_one_and_many(desk, mallory):
    get_user_model().objects.create_user("ann")
    forget()
    assert desk.post(reverse("admin:auth_user_delete", args=[mallory.pk]), {"post": "yes"}).status_code == 302
    chosen = list(get_user_model().objects.filter(username="ann").values_list("pk", flat=True))
    sent = {"action": "delete_selected", "_selected_action": chosen, "post": "yes"}
    assert desk.post(reverse("admin:auth_user_changelist"), sent).status_code == 302
    assert [(entry.action, entry.target, entry.actor) for entry in entries()] == [
        ("user.delete", "mallory", "boss"), ("user.delete", "ann", "boss"),
    ]  # fmt: skip


def test_the_admin_gives_a_right_on_one_machine(desk, mallory, machine):
    address = reverse("admin:machines_machine_change", args=[machine.pk])
    sent = {
        "user_grants-TOTAL_FORMS": "1", "user_grants-INITIAL_FORMS": "0",
        "user_grants-0-user": mallory.pk, "user_grants-0-permission": permission("publish_machine").pk,
        "user_grants-0-content_object": machine.pk,
        "group_grants-TOTAL_FORMS": "0", "group_grants-INITIAL_FORMS": "0",
    }  # fmt: skip
    assert desk.post(address, sent).status_code == 302
    (entry,) = entries()
    assert (entry.action, entry.actor, entry.machine, entry.target) == ("grant.make", "boss", "door", "user mallory")


def test_a_group_in_the_admin(desk):
    sent = {"name": "night", "permissions": [permission("fire_machine").pk]}
    assert desk.post(reverse("admin:auth_group_add"), sent).status_code == 302
    assert [(entry.action, entry.target, entry.actor) for entry in entries()] == [
        ("group.make", "night", "boss"), ("group.rights", "night", "boss"),
    ]  # fmt: skip


def test_a_request_by_a_token_is_put_down_to_the_token_too(boss, rf):
    """As the API marks each request it has admitted."""
    request = rf.post("/api/v1/machines")
    request.acting = Actor(boss, "api 192.0.2.7 token 0123456789ab")
    outer = current_request.set(request)
    try:
        Group.objects.create(name="night")
    finally:
        current_request.reset(outer)
    Group.objects.create(name="day")
    assert [(entry.target, entry.actor, entry.source) for entry in entries("group")] == [
        ("night", "boss", "api 192.0.2.7 token 0123456789ab"), ("day", Actor.console().name, "command line"),
    ]  # fmt: skip


# How it is shown


def test_the_page_the_api_and_the_csv_show_it(desk, mallory):
    mallory.is_superuser = True
    mallory.save()
    page = desk.get(reverse("signalbox:audit"), {"action": "user.change"}).content.decode()
    assert "is_superuser: no → yes" in page
    assert "mallory" in page
    assert "is_superuser" in b"".join(desk.get(reverse("signalbox:audit-export"), {"action": "user.change"})).decode()
    (item,) = desk.get("/api/v1/audit?action=user.change").json()["items"]
    assert item["detail"] == {"changed": {"is_superuser": {"before": False, "after": True}}}


def test_only_who_sees_every_machine_sees_entries_of_accounts(machine, mallory, prefix):
    ann = get_user_model().objects.create_user("ann")
    ann.user_permissions.set([permission("view_auditentry")])
    assign_perm("machines.view_machine", ann, machine)
    client = Client()
    client.force_login(ann)
    page = client.get(reverse("signalbox:audit")).content.decode()
    assert ('data-action="grant.make"' in page, 'data-action="user.make"' in page) == (True, False)


def test_every_action_has_its_place_in_the_docs():
    text = (Path(__file__).parents[3] / "docs" / "operate.md").read_text(encoding="utf-8")
    section = text.partition("## The audit")[2].partition("\n## ")[0]
    for action in ACTIONS:
        noun, _, verb = action.partition(".")
        assert f"`{action}`" in section or (f"`{noun}." in section and f"`.{verb}`" in section), action


def _holds_no_secret(*secrets: str) -> None:
    text = json.dumps(list(AuditEntry.objects.values()), default=str)
    for secret in secrets:
        assert secret not in text
    assert "pbkdf2" not in text
    assert "md5$" not in text
