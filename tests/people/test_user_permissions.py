"""What is read ahead of an account's permissions is what Django reads."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Group, Permission
from django.db import connection
from django.db.models import QuerySet
from guardian.shortcuts import assign_perm

from dashboard.models import Preferences
from dashboard.shared.times import preferences_of
from machines.conf.database import PreparedQuery
from machines.models import Machine
from machines.people import permissions
from machines.people.permissions import RIGHTS, anywhere, rights_of, scope_of

pytestmark = pytest.mark.django_db


class Careful(ModelBackend):
    """A backend of a project: nobody may publish."""

    def _get_group_permissions(self, user_obj):
        return super()._get_group_permissions(user_obj).exclude(codename="publish_machine")


def permission(right: str) -> Permission:
    return Permission.objects.get(codename=RIGHTS[right].partition(".")[2], content_type__app_label="machines")


@pytest.fixture
def pat():
    """Views by herself, fires and publishes by a group, operates one machine by herself and another by the group."""
    user, group = get_user_model().objects.create_user("pat"), Group.objects.create(name="night")
    user.groups.add(group, Group.objects.create(name="empty"))
    user.user_permissions.add(permission("view"))
    group.permissions.add(permission("fire"), permission("publish"), Permission.objects.get(codename="add_user"))
    for name, holder in (("lamp", user), ("door", group)):
        assign_perm(RIGHTS["operate"], holder, Machine.objects.create(name=name, current=1))
    return user


def fresh(user):
    """The account as a request reads it."""
    return get_user_model().objects.get(pk=user.pk)


def test_permissions_are_those_that_the_backend_reads(pat):
    ours, theirs = fresh(pat), fresh(pat)
    permissions.read_ahead(ours)
    for method in ("get_user_permissions", "get_group_permissions", "get_all_permissions"):
        assert getattr(ours, method)() == getattr(theirs, method)(), method
    assert ours.has_perm("auth.add_user")


def test_rights_and_grants_are_found(pat):
    user = fresh(pat)
    assert rights_of(user) == {"view", "fire", "publish"}
    assert scope_of(user, "operate").names == {"lamp", "door"}
    assert not anywhere(user, "audit")


def test_a_change_holds_from_the_next_request(pat):
    assert anywhere(fresh(pat), "fire")
    Group.objects.get(name="night").permissions.clear()
    assert not anywhere(fresh(pat), "fire")
    pat.user_permissions.clear()
    assert not anywhere(fresh(pat), "operate")


def test_an_account_that_is_off_holds_nothing(pat):
    get_user_model().objects.filter(pk=pat.pk).update(is_active=False)
    assert rights_of(fresh(pat)) == frozenset()
    assert rights_of(AnonymousUser()) == frozenset()


def test_a_superuser_holds_everything_without_a_query(pat, django_assert_num_queries):
    get_user_model().objects.filter(pk=pat.pk).update(is_superuser=True)
    user = fresh(pat)
    with django_assert_num_queries(0):
        assert rights_of(user) == set(RIGHTS)


def test_rights_take_three_queries_however_often_they_are_asked_for(pat, django_assert_num_queries):
    user = fresh(pat)
    with django_assert_num_queries(3):
        for _ in range(3):
            assert rights_of(user, "lamp")
            assert not anywhere(user, "audit")


def test_the_backend_of_a_project_decides(pat, settings):
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Careful"]
    assert rights_of(fresh(pat)) == {"view", "fire"}


def test_a_query_is_built_once_and_run_each_time(pat, monkeypatch):
    other = get_user_model().objects.create_user("kim")
    built = []

    def make(pk: int) -> QuerySet:
        built.append(pk)
        return get_user_model().objects.filter(pk=pk, pk__lte=1_000_000_008).values_list("pk", "username")

    query = PreparedQuery(get_user_model(), make)
    assert [query.rows(user.pk) for user in (pat, other, pat)] == [
        [(pat.pk, "pat")], [(other.pk, "kim")], [(pat.pk, "pat")],
    ]  # fmt: skip
    assert len(built) == 2
    get_user_model().objects.filter(pk=pat.pk).update(username="patricia")
    assert query.rows(pat.pk) == [(pat.pk, "patricia")]
    assert query.rows(-1) == []
    assert query.rows(str(pat.pk)) == [(pat.pk, "patricia")]
    assert connection.vendor in {vendor for _, vendor in query._kept}


def test_preferences_are_those_that_are_kept(pat):
    assert (preferences_of(pat).user_id, preferences_of(pat)._state.adding) == (pat.pk, True)
    Preferences.objects.create(user=pat, time_zone="Europe/Paris", clock=12, calm=True, theme="dark", keys=False)
    found, kept = preferences_of(fresh(pat)), Preferences.objects.get(user=pat)
    for field in Preferences._meta.concrete_fields:
        value = getattr(found, field.attname)
        assert (value, type(value)) == (getattr(kept, field.attname), type(getattr(kept, field.attname)))
    found.theme = "light"
    found.save()
    assert Preferences.objects.get(user=pat).theme == "light"
