"""The machine of a row in the project's own admin, and the diagram in its templates."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.template import Context, Template
from django.test import Client

from machines.models import Approval, AuditEntry
from tests.conftest import NOWHERE, configure

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls("tests.integrations.binding.urls")]


@pytest.fixture
def log_in(prefix):
    """``log_in("view", "fire")``: staff who may change orders, with these rights on machines."""

    def make(*rights: str) -> Client:
        user = User.objects.create_user("sam", is_staff=True)
        names = [*(f"{right}_machine" for right in rights), "change_order"]
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
        client = Client()
        client.force_login(user)
        return client

    return make


@pytest.fixture(autouse=True)
def _permissions(shop) -> None:
    from django.apps import apps
    from django.contrib.auth.management import create_permissions

    create_permissions(apps.get_app_config("shop"), verbosity=0)


@pytest.fixture
def row(machines_there):
    from .shop.models import Order

    return Order.objects.create(number="A-1", total=5)


def events(page: str) -> list[str]:
    return re.findall(r'<input type="hidden" name="event" value="([^"]+)">', page)


def address(row, what: str = "change") -> str:
    return f"/office/shop/order/{row.pk}/{what}/"


def fire(client: Client, row, event: str, **fields: str):
    sent = {"event": event, "expect": str(row.status_revision), **fields}
    return client.post(address(row, "machine"), sent)


def stored(row) -> str:
    row.refresh_from_db()
    return str(row.status)


def test_the_list_shows_the_state_and_filters_by_it(row, log_in, django_assert_max_num_queries):
    client = log_in("view")
    page = client.get("/office/shop/order/").content.decode()
    assert 'class="field-status">new<' in page
    assert "?status=new" in page
    assert "A-1" not in client.get("/office/shop/order/?status=paid").content.decode()


def test_the_page_of_a_row_shows_diagram_history_and_the_events_of_this_user(row, log_in):
    page = log_in("view", "fire").get(address(row)).content.decode()
    assert events(page) == ["pay", "cancel", "note"]  # "waive" is for managers
    assert 'data-state="new"' in page
    assert "(create)" in page
    assert "<script" not in page[page.index("sb-bound") :].replace("</script>", "")
    assert " style=" not in page[page.index("sb-bound") :]


def test_without_the_right_to_fire_there_are_no_events(row, log_in):
    page = log_in("view").get(address(row)).content.decode()
    assert events(page) == []
    assert "(create)" in page


def test_without_the_right_to_see_machines_there_is_the_state_alone(row, log_in):
    page = log_in().get(address(row)).content.decode()
    assert "order: new" in page
    assert "(create)" not in page


def test_an_event_is_fired_recorded_and_seen_in_the_row(row, log_in):
    answer = fire(log_in("view", "fire"), row, "pay", **{"payload-amount": "7", "reason": "by phone"})
    assert (answer.status_code, answer.url) == (302, address(row))
    assert stored(row) == "paid"
    found = AuditEntry.objects.get(action="fire")
    assert (found.actor, found.target, found.reason) == ("sam", "pay", "by phone")


def test_a_refusal_keeps_what_was_entered_and_says_why(row, log_in):
    answer = fire(log_in("view", "fire"), row, "pay", **{"payload-amount": "3"})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "SB430" in page
    assert 'value="3"' in page
    assert stored(row) == "new"


def test_who_may_not_fire_is_refused(row, log_in):
    assert fire(log_in("view"), row, "cancel").status_code == 403
    assert stored(row) == "new"


def test_the_groups_of_a_transition_and_approvals_hold(row, log_in):
    client = log_in("view", "fire")
    assert fire(client, row, "waive").status_code == 403
    User.objects.get(username="sam").groups.add(Group.objects.create(name="managers"))
    assert fire(client, row, "waive").status_code == 302
    assert stored(row) == "paid"
    assert fire(client, row, "refund", reason="unhappy").status_code == 302
    assert Approval.objects.get().action == "fire:refund"
    assert stored(row) == "paid"


def test_without_redis_the_page_of_the_row_still_opens(row, log_in, settings):
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.db"
    client = log_in("view", "fire")
    configure(settings, REDIS_URL=NOWHERE)
    answer = client.get(address(row))
    assert answer.status_code == 200
    assert "SB500" in answer.content.decode()
    assert fire(client, row, "cancel").status_code == 503


def test_a_template_shows_the_diagram_with_the_state_highlighted(row):
    page = Template("{% load signalbox %}{{ order.status|diagram }}").render(Context({"order": row}))
    lit = re.findall(r'<g id="[^"]+" class="([^"]+)" data-state="([^"]+)"', page)
    assert [name for classes, name in lit if "current" in classes] == ["new"]
    assert Template("{% load signalbox %}{{ text|diagram }}").render(Context({"text": "new"})) == ""


def test_the_id_of_a_saved_row_is_not_edited_in_its_form(machines_there):
    from .shop.models import Parcel

    saved, client = Parcel.objects.create(number="P-1"), Client()
    client.force_login(User.objects.create_superuser("root"))
    assert 'name="number"' in client.get("/office/shop/parcel/add/").content.decode()
    assert 'name="number"' not in client.get(f"/office/shop/parcel/{saved.pk}/change/").content.decode()
    client.post(f"/office/shop/parcel/{saved.pk}/change/", {"number": "P-2", "made": "4"})
    assert Parcel.objects.values_list("number", "made").get() == ("P-1", 4)


def test_the_list_of_rows_names_the_environment(log_in, row, settings):
    configure(settings, ENVIRONMENT={"name": "staging", "colour": "green"})
    foreign = [each for each in settings.TEMPLATES[0]["DIRS"] if "own_site" not in str(each)]
    settings.TEMPLATES = [settings.TEMPLATES[0] | {"DIRS": foreign}]
    page = log_in("view").get("/office/shop/order/").content.decode()
    assert re.search(r'<p class="sb-environment"\s+data-colour="green">staging</p>', page)
    assert "signalbox/admin/admin.css" in page
