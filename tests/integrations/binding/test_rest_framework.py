"""Rows with a machine field in Django REST framework: refusals are answers, and the state is a field."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction

from machines.engine import EngineFault, UnknownInstance
from machines.people.errors import TooFast
from tests.conftest import NOWHERE, configure

pytest.importorskip("rest_framework", reason="djangorestframework is missing here")

from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from machines.integrations.rest_framework import MachineStateField, exception_handler

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def row(machines_there):
    from .shop.models import Order

    return Order.objects.create(total=20)


@pytest.fixture
def clerk() -> User:
    user = User.objects.create_user("clerk")
    user.user_permissions.add(*Permission.objects.filter(codename__in=["fire_machine", "view_machine"]))
    return User.objects.get(pk=user.pk)


def post(perform, user=None):
    class View(APIView):
        authentication_classes = ()
        permission_classes = ()

        def get_exception_handler(self):
            return exception_handler

        def post(self, request):
            request.user = user
            return Response(perform(request))

    return View.as_view()(APIRequestFactory().post("/", {"amount": 1}, format="json"))


def test_a_refusal_is_409_and_says_why(row):
    answer = post(lambda request: row.status.fire("pay", request.data).state)
    assert (answer.status_code, answer.data["code"]) == (409, "SB430")
    assert "event.amount >= total is false: event.amount = 1, total = 20" in answer.data["detail"]


def test_a_refusal_in_a_transaction_is_409_and_rolls_it_back(row):
    def perform(request):
        with transaction.atomic():
            type(row).objects.update(number="changed")
            row.status.fire("pay", request.data, check=True)

    assert post(perform).status_code == 409
    row.refresh_from_db()
    assert row.number == ""


def test_sensitive_values_stay_out_of_a_refusal(row, machines_there):
    from . import machines

    context = {"type": "object", "properties": {"total": {"type": "integer", "sensitive": True}, "paid": {}}}
    machines_there.publish({**machines.ORDER, "context": context})
    other = type(row).objects.create(total=31337)
    answer = post(lambda request: other.status.fire("pay", request.data))
    assert (answer.status_code, "31337" in answer.data["detail"]) == (409, False)


def test_a_sensitive_column_that_does_not_fit_is_not_repeated(machines_there, monkeypatch):
    from . import machines
    from .shop.models import Bill

    total, off = {"type": "integer", "sensitive": True}, {"type": "number"}
    context = {"type": "object", "properties": {"total": total, "off": off, "paid": {}}}
    machines_there.publish({**machines.BILL, "context": context, "index": []})
    bill = Bill.objects.create(note="31337")
    monkeypatch.setattr(Bill._meta.get_field("state"), "follows", {"total": "note"})
    answer = post(lambda request: bill.state.fire("ask"))
    assert (answer.status_code, answer.data["code"], "31337" in answer.data["detail"]) == (400, "SB410", False)


def test_each_error_has_its_status(row, clerk, settings):
    def status(perform, user=None) -> tuple[int, str]:
        answer = post(perform, user)
        return answer.status_code, answer.data.get("code", "")

    assert status(lambda _: row.status.fire("pay", {"amount": "x"})) == (400, "SB410")
    assert status(lambda _: row.status.fire("cancel", expect=9)) == (409, "SB440")
    assert status(lambda _: row.status.fire("cancel", user=User.objects.create_user("stranger")))[0] == 403
    assert status(lambda request: row.status.fire("waive", user=request.user), clerk) == (403, "SB433")
    assert status(lambda _: raise_error(UnknownInstance("order", "9")))[0] == 404
    configure(settings, REDIS_URL=NOWHERE)
    assert status(lambda _: row.status.fire("cancel"))[0] == 503


def raise_error(error: Exception):
    raise error


def test_who_is_too_fast_learns_when_to_come_back():
    answer = post(lambda _: raise_error(TooFast("5/m", "ann", 2.1)))
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "3")


def test_all_other_errors_are_the_frameworks_own():
    assert post(lambda _: raise_error(NotFound())).status_code == 404
    with pytest.raises(EngineFault):
        post(lambda _: raise_error(EngineFault("broken")))


def test_the_field_shows_state_revision_and_events(row, clerk):
    class Orders(serializers.ModelSerializer):
        status = MachineStateField(events=True)

        class Meta:
            model = type(row)
            fields = ["total", "status"]

    def read(user):
        return Orders(row, context={"request": SimpleNamespace(user=user)}).data

    assert read(clerk) == {
        "total": 20,
        "status": {"state": "new", "revision": 1, "events": ["pay", "cancel", "note", "waive"]},
    }
    assert read(User.objects.create_user("stranger"))["status"]["events"] == []
    given = Orders(row, data={"total": 3, "status": "paid"})
    assert given.is_valid()
    assert given.validated_data == {"total": 3}


def test_a_model_serializer_shows_the_state_as_text(row):
    class Orders(serializers.ModelSerializer):
        class Meta:
            model = type(row)
            fields = ["status"]

    assert Orders(row).data == {"status": "new"}
    assert Orders().fields["status"].read_only
