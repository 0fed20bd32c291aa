"""What is marked sensitive is nowhere to be read without the right to see it, and where it belongs with it."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from machines.catalog.publishing import adopt
from machines.models import AuditEntry, Machine
from machines.people.permissions import RIGHTS
from tests.pages.table import TABLE
from tests.vault import NAME, PIN, SECRET, Filled, fill

SECRETS = (SECRET, PIN, "9021077")
MASKED = "•••"


@pytest.fixture
def vault(engine, db) -> Filled:
    found = fill(engine)
    adopt(NAME)
    return found


@pytest.fixture
def having(db, prefix):
    """A client of staff with every right there is, or all but the one to see what is sensitive."""

    def made(*, reveal: bool) -> Client:
        user = get_user_model().objects.create_user(f"reveal-{reveal}", password="let me in", is_staff=True)
        rights = [permission.partition(".")[2] for right, permission in RIGHTS.items() if reveal or right != "reveal"]
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
        client = Client()
        client.force_login(user)
        return client

    return made


def body(answer) -> str:
    return b"".join(answer.streaming_content if answer.streaming else [answer.content]).decode()


def addresses(vault: Filled) -> list[str]:
    """Every address of the table, with what there is in the vault in the place of its arguments."""
    found = []
    for name, entry in TABLE.items():
        if entry.right is None:
            continue
        given = dict(entry.arguments)
        if "machine" in given:
            given["machine"] = NAME
        if "queue" in given:
            given["queue"] = "charge"
        bulk, job = name.startswith("bulk"), name.startswith("job")
        if isinstance(given.get("id"), str) and ("machine" in given or bulk):
            ids = [vault.bulk] if bulk else [vault.dead, vault.leased] if job else [vault.shut, vault.charging]
            found += [reverse(f"signalbox:{name}", kwargs=given | {"id": id}) for id in ids]
        else:
            found.append(reverse(f"signalbox:{name}", kwargs=given) + entry.query)
    return [*found, *further(vault)]


def further(vault: Filled) -> list[str]:
    """With the terms in the address that show more, and topics of sockets."""
    page, queue = (
        reverse("signalbox:instance", args=[NAME, vault.shut]),
        reverse("signalbox:queue", args=[NAME, "charge"]),
    )
    topics = [
        "overview", "queues", "workers", f"machine:{NAME}", f"queue:{NAME}/charge",
        f"instance:{NAME}/{vault.shut}", f"instance:{NAME}/{vault.charging}",
        f"job:{NAME}/{vault.dead}", f"job:{NAME}/{vault.leased}",
    ]  # fmt: skip
    machine = Machine.objects.get(name=NAME)
    instances = reverse("admin:machines_machine_instances", args=[machine.pk])
    return [
        f"{page}?at=1", f"{page}?at=1&with=2", f"{page}?before=2",
        *(f"{queue}?place={place}" for place in ("dead", "leased", "ready", "delayed")),
        f"{reverse('signalbox:bulk-new', args=[NAME])}?state=Shut&do=fire&event=open",
        *(f"{reverse('signalbox:api-live')}?topic={topic}" for topic in topics),
        reverse("signalbox:instance", args=["bulk", vault.bulk]),
        instances, f"{instances}?state=Shut",
        f"{reverse('admin:machines_machine_instance', args=[machine.pk])}?id={vault.shut}",
        f"{reverse('admin:machines_machine_instance', args=[machine.pk])}?id={vault.charging}",
        *(f"/api/v1/machines/{NAME}{path}" for path in API.format(v=vault).split()),
    ]  # fmt: skip


API = (
    "/instances /instances/{v.shut} /instances/{v.charging} /instances/{v.shut}/history /instances/{v.charging}/waits"
    " /jobs/{v.dead} /jobs/{v.leased} /queues/charge/jobs?place=dead /queues/charge/jobs?place=leased"
)


def test_with_the_right_it_is_shown_where_it_belongs(vault, having):
    client = having(reveal=True)
    for address in (
        reverse("signalbox:instance", args=[NAME, vault.shut]),
        reverse("signalbox:job", args=[NAME, vault.dead]),
        reverse("signalbox:job", args=[NAME, vault.leased]),
        f"{reverse('signalbox:queue', args=[NAME, 'charge'])}?place=dead",
        f"{reverse('signalbox:api-live')}?topic=instance:{NAME}/{vault.shut}",
        f"{reverse('signalbox:api-live')}?topic=job:{NAME}/{vault.dead}",
        f"/api/v1/machines/{NAME}/instances/{vault.shut}",
    ):
        assert SECRET in body(client.get(address)), address


def test_masked_data_keeps_its_shape_and_what_is_not_sensitive(vault, having):
    answer = having(reveal=False).get(f"{reverse('signalbox:api-live')}?topic=instance:{NAME}/{vault.charging}").json()
    assert answer["data"]["data"] == {"card": MASKED, "code": MASKED, "owner": "bob", "label": f"of {MASKED}"}


def test_an_edit_keeps_what_is_left_blank_and_shows_no_value(vault, having, engine):
    client = having(reveal=False)
    address = reverse("signalbox:edit", args=[NAME, vault.shut])
    version = engine.get(NAME, vault.shut).revision
    form = {"expect": version, "reason": "a name", "data-owner": "eve"}
    looked = client.post(address, form | {"preview": "1"})
    assert not any(secret in body(looked) for secret in SECRETS)
    done = client.post(address, form)
    assert done.status_code == 302, body(done)
    assert engine.get(NAME, vault.shut).data["owner"] == "eve"
    assert engine.get(NAME, vault.shut).data["card"] == SECRET


@pytest.mark.parametrize("event", ["open", "wrap"])
def test_a_refusal_says_why_without_the_values(vault, having, engine, event):
    """The one compares two of them, the other cannot work with one."""
    client = having(reveal=False)
    now = engine.get(NAME, vault.shut)
    form = {"event": event, "expect": now.revision, "reason": "", "payload-pin": "wrong-pin-1"}
    for further in ({}, {"check": "1"}):
        answer = client.post(reverse("signalbox:fire", args=[NAME, vault.shut]), form | further)
        assert answer.status_code in (200, 422)
        assert "refused" in body(answer).lower()
        assert SECRET not in body(answer)
    assert event == "wrap" or MASKED in body(answer)


def test_what_waits_for_a_second_person_is_masked_too(vault, having, engine):
    asker, other = having(reveal=True), having(reveal=False)
    form = {"event": "settle", "expect": engine.get(NAME, vault.shut).revision, "reason": "it is late"}
    asked = asker.post(reverse("signalbox:fire", args=[NAME, vault.shut]), form | {"payload-pin": PIN})
    address = asked.url
    assert PIN in body(asker.get(address))
    seen = body(other.get(address))
    assert MASKED in seen
    for page in (
        address,
        reverse("signalbox:approvals"),
        "/api/v1/approvals",
        reverse("signalbox:audit"),
        reverse("signalbox:instance", args=[NAME, "v-1"]),
    ):
        assert not any(secret in body(other.get(page)) for secret in SECRETS), page


def test_the_log_of_the_admin_holds_it_masked(vault, having, engine):
    client = having(reveal=True)
    machine = Machine.objects.get(name=NAME)
    address = f"{reverse('admin:machines_machine_instance', args=[machine.pk])}?id={vault.shut}"
    form = {"event": "open", "expect": engine.get(NAME, vault.shut).revision, "reason": "", "payload-pin": PIN}
    assert client.post(address, form).status_code == 409
    (entry,) = LogEntry.objects.all()
    assert MASKED in entry.change_message
    assert not any(secret in entry.change_message for secret in SECRETS)


def test_the_audit_holds_it_masked_for_everyone(vault, having, engine):
    client = having(reveal=True)
    now = engine.get(NAME, vault.shut)
    for form in ({"event": "open", "payload-pin": PIN}, {"event": "wrap"}):
        client.post(reverse("signalbox:fire", args=[NAME, vault.shut]), form | {"expect": now.revision, "reason": ""})
    edit = {"expect": now.revision, "reason": "another card", "data-card": f"{SECRET}-2"}
    client.post(reverse("signalbox:edit", args=[NAME, vault.shut]), edit)
    assert engine.get(NAME, vault.shut).data["card"] == f"{SECRET}-2"
    entries = AuditEntry.objects.filter(machine=NAME, instance=vault.shut).exclude(action="reveal")
    assert {(entry.action, entry.outcome) for entry in entries} == {("fire", "refused"), ("edit", "done")}
    kept = json.dumps([entry.detail for entry in entries], ensure_ascii=False)
    assert not any(secret in kept for secret in SECRETS)
    assert MASKED in kept


@pytest.mark.parametrize("term", ["by=card&is=4111*", "by=card&is=4111-7777-0042"])
def test_finding_by_it_is_refused_with_a_word_on_why(vault, having, term):
    address = f"{reverse('signalbox:machine', args=[NAME])}?{term}"
    refused = having(reveal=False).get(address)
    assert refused.status_code == 400
    assert "SB439" in body(refused)
    assert "v-1" in body(having(reveal=True).get(address))


def test_nor_do_the_rows_of_a_list_tell_by_it(vault, having):
    answer = having(reveal=False).get(reverse("signalbox:rows", args=[NAME]), {"by": "card", "is": SECRET})
    assert "v-1" not in body(answer)
    assert answer.status_code == 400


@pytest.mark.parametrize(("given", "status"), [({}, 302), ({"shared": "on"}, 400)])
def test_a_view_that_finds_by_it_is_kept_for_oneself_and_not_shared(vault, having, given, status):
    page = reverse("signalbox:machine", args=[NAME])
    form = {"name": "that card", "page": page, "query": f"by=card&is={SECRET}"} | given
    assert having(reveal=True).post(reverse("signalbox:view-save"), form).status_code == status
    assert SECRET not in body(having(reveal=False).get(page))


def test_a_bulk_selects_by_it_for_nobody(vault, having, engine):
    address = f"{reverse('signalbox:bulk-new', args=[NAME])}?by=card&is={SECRET}&do=suspend"
    answer = having(reveal=True).post(address, {"reason": "these", "key": "k"})
    assert answer.status_code == 400
    assert "SB439" in body(answer)


def test_the_csv_of_a_bulk_masks_what_its_texts_would_repeat(vault, having):
    rows = list(
        csv.DictReader(
            io.StringIO(body(having(reveal=False).get(reverse("signalbox:bulk-results", args=[vault.bulk]))))
        )
    )
    assert [row["instance"] for row in rows] == [vault.shut]
    assert rows[0]["verdict"] == "refused"
    assert rows[0]["verdict_why"]
