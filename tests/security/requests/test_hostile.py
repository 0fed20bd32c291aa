"""Whatever people and programs write is text on every page, in every export and drawing, and in the log."""

import json
import logging
import re
from urllib.parse import quote

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.urls.converters import get_converters
from prometheus_client.parser import text_string_to_metric_families

from dashboard.api.framework.operation import OPERATIONS
from dashboard.site.log_format import Line
from machines.catalog.admin import instance_url, instances_url
from machines.catalog.publishing import adopt
from machines.models import AuditEntry
from tests.cases import for_each
from tests.security.hostile import CRUDE, MACHINE, QUEUE, TEXTS, furnish
from tests.security.reading import wrong_in_drawing, wrong_in_page, wrong_in_table

TERMS = ("state", "id", "open", "mode", "view", "where", "by", "is", "older", "cursor", "tag", "actor", "order")


@pytest.fixture
def world(engine, db) -> list[str]:
    return furnish(engine)


@pytest.fixture
def client(user_of, prefix, world) -> Client:
    """Somebody whose own name is one of the texts, with every right."""
    user = user_of("supervisor", TEXTS[0])
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="machines"))
    client = Client()
    client.force_login(user)
    return client


def addresses(client, ids) -> list[str]:
    found = [
        reverse(f"signalbox:{name}")
        for name in (
            "overview",
            "wall",
            "queues",
            "workers",
            "audit",
            "webhooks",
            "sm",
            "approvals",
            "account",
            "alarms",
            "alarm-history",
            "bulk-list",
            "schedules",
        )
    ]
    machine, queue = reverse("signalbox:machine", args=[MACHINE]), reverse("signalbox:queue", args=[MACHINE, QUEUE])
    found += [
        machine,
        queue,
        f"{machine}bulk/",
        reverse("signalbox:bulk", args=["3f2a"]),
        reverse("signalbox:webhook", args=[7]),
    ]
    found += [f"{machine}?mode={mode}" for mode in ("age", "flow", "failures", "time")]
    found += [f"{queue}?place={place}" for place in ("ready", "leased", "delayed", "dead")]
    found += [reverse("signalbox:instance", args=[MACHINE, id]) for id in ids]
    found += [
        reverse(f"signalbox:{name}", args=[MACHINE, ids[0]]) for name in ("force", "edit", "delete", "reset", "skip")
    ]
    found += [reverse("signalbox:job", args=[MACHINE, f"0-{n}"]) for n in (1, 2)]
    return found


def test_no_page_takes_a_text_for_more_than_that(client, world):
    assert len(world) > 15
    for address in addresses(client, world):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert wrong_in_page(answer.content.decode()) == [], address


def test_no_term_in_an_address_and_no_field_of_a_form_is_taken_for_more_either(client, world):
    machine = reverse("signalbox:machine", args=[MACHINE])
    places = [
        (machine, TERMS),
        (reverse("signalbox:audit"), ("actor", "target", "since", "machine")),
        (reverse("signalbox:queue", args=[MACHINE, QUEUE]), ("place", "page")),
        (reverse("signalbox:sm"), ("key",)), (reverse("signalbox:login"), ("next",)),
        (reverse("signalbox:webhook", args=[7]), ("state", "before")),
        (reverse("signalbox:alarms"), ("severity", "machine")),
        (reverse("signalbox:alarm-history"), ("event", "kind", "machine", "key", "before")),
    ]  # fmt: skip
    for place, (address, terms) in enumerate(places):
        for number, text in enumerate([*TEXTS, *CRUDE][place % 2 :: 2]):
            answer = client.get(address, {term: text.encode("utf-8", "replace") for term in terms[number % 3 :: 3]})
            assert answer.status_code < 500, (address, text[:40])
            assert "Set-Cookie: zq" not in str(answer.headers)
            if answer.headers.get("Content-Type", "").startswith("text/html"):
                assert wrong_in_page(answer.content.decode()) == [], (address, text[:40])
    forms = [reverse(f"signalbox:{name}", args=[MACHINE, world[0]]) for name in ("fire", "force", "edit", "delete")]
    forms += [
        reverse("signalbox:create", args=[MACHINE]),
        reverse("signalbox:webhook-make"),
        reverse("signalbox:alarm-snooze"),
        reverse("signalbox:alarm-assign"),
        reverse("signalbox:queue-pause", args=[MACHINE, QUEUE]),
    ]
    fields = (
        "event",
        "reason",
        "id",
        "state",
        "data",
        "name",
        "url",
        "types",
        "payload-x",
        "json",
        "key",
        "owner",
        "minutes",
    )
    for number, text in enumerate([*TEXTS, *CRUDE]):
        address = forms[number % len(forms)]
        answer = client.post(address, dict.fromkeys(fields, text.encode("utf-8", "replace")), follow=True)
        assert answer.status_code < 500, (address, text[:40])
        assert wrong_in_page(answer.content.decode()) == [], (address, text[:40])


def test_exports_run_no_formula_and_drawings_no_script(client, world):
    for address in (reverse("signalbox:audit-export"), reverse("signalbox:bulk-results", args=["3f2a"])):
        rows = b"".join(client.get(address).streaming_content).decode()
        assert wrong_in_table(rows) == [], address
    assert "HYPERLINK" in b"".join(client.get(reverse("signalbox:audit-export")).streaming_content).decode()
    assert wrong_in_drawing(client.get(reverse("signalbox:diagram", args=[MACHINE])).content) == []


ARGUMENT = re.compile(r"\{(\w+):(\w+)\}")
QUERIES = {
    "search": "?q=zq",
    "search-suggestions": "?q=zq",
    "getStatistics": "?what=work&span=day",
}
QUERIES |= {"getMachineStatistics": "?what=edges", "listJobs": "?place=dead", "compareVersions": "?a=1&b=1"}
QUERIES |= {"getInsightFunnel": "?stage=zq&stage=zr"}


def test_the_api_gives_texts_as_texts(client, world):
    """Every operation that only looks, of a world that is full of them."""
    held = {"machine": MACHINE, "queue": QUEUE, "job": "0-1", "webhook": "7"}
    asked = 0
    reverse("signalbox:metrics")  # which loads the operations
    for name, operation in OPERATIONS.items():
        arguments = held | {"id": "3f2a" if operation.path.startswith("/bulks/") else world[0]}
        named = {argument for _, argument in ARGUMENT.findall(operation.path)}
        if operation.method != "GET" or not named <= arguments.keys():
            continue

        def written(found: re.Match[str], arguments: dict[str, str] = arguments) -> str:
            return quote(get_converters()[found[1]].to_url(arguments[found[2]]), safe="")

        answer = client.get(f"/api/v1{ARGUMENT.sub(written, operation.path)}{QUERIES.get(name, '')}")
        expected = 404 if name == "getSession" else 409 if "Insight" in name else 200  # insight is off here
        assert answer.status_code == expected, (name, answer.content[:300])
        assert answer["X-Content-Type-Options"] == "nosniff"
        if answer["Content-Type"].startswith("image/svg+xml"):
            assert wrong_in_drawing(answer.content) == []
        else:
            json.loads(answer.content)
        asked += 1
    assert asked > 25


def test_metrics_have_the_names_that_we_gave_and_no_others(client, world):
    text = client.get(reverse("signalbox:metrics")).content.decode()
    families = list(text_string_to_metric_families(text))
    assert all(family.name.startswith("signalbox_") for family in families)
    labels = {value for family in families for sample in family.samples for value in sample.labels.values()}
    assert any("zq" in value for value in labels)
    assert len(text.splitlines()) == sum(line.startswith(("#", "signalbox_")) for line in text.splitlines())


def test_the_admin_takes_a_text_for_no_more_than_that(client, world, django_user_model):
    django_user_model.objects.update(is_staff=True, is_superuser=True)
    machine = adopt(MACHINE)
    entries = AuditEntry.objects.order_by("pk").values_list("pk", flat=True)
    addresses = [reverse(f"admin:machines_{model}_changelist") for model in ("machine", "machineversion", "auditentry")]
    addresses += [reverse("admin:machines_machine_change", args=[machine.pk]), instances_url(machine)]
    addresses += [reverse("admin:machines_machineversion_change", args=[machine.version().pk])]
    addresses += [reverse("admin:auth_user_changelist")]
    addresses += [instance_url(machine, id) for id in world]
    addresses += [reverse("admin:machines_auditentry_change", args=[pk]) for pk in list(entries)[::8]]
    addresses += [f"{addresses[2]}?{term}={quote(text)}" for term in ("q", "action", "zq") for text in TEXTS[::4]]
    for address in addresses:
        answer = client.get(address, follow=True)
        assert answer.status_code == 200, address
        assert wrong_in_page(answer.content.decode()) == [], address


@pytest.mark.parametrize("path", [
    "/static/../dashboard/settings.py", "/static/%2e%2e/%2e%2e/manage.py", "/static/..%2fmanage.py",
    "/static//etc/passwd",
    "/static/signalbox/css/..%5c..%5cmanage.py", "/machines/..%2f..%2fetc/", "/machines/a%0d%0aSet-Cookie:zq=1/",
    "/%00", "/static/%00",
    "/accounts/login/?next=//zq.example/", "/accounts/login/?next=%0d%0aSet-Cookie:zq=1",
])  # fmt: skip
def test_no_path_leads_out_and_none_writes_a_header(client, path):
    client.logout()
    answer = client.get(path)
    assert answer.status_code in (200, 301, 302, 400, 404)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    assert b"DJANGO_SETTINGS_MODULE" not in body
    assert b"root:" not in body
    assert "zq=1" not in str(answer.headers)


def test_after_login_nobody_is_sent_to_another_site(client, django_user_model):
    django_user_model.objects.create_user("sue", password="right")
    for target in ("//zq.example/", "https://zq.example/", "javascript:window.zq=1", "/\\zq.example", "\t//zq.example"):
        form = {"username": "sue", "password": "right", "next": target}
        assert Client().post(reverse("signalbox:login"), form).headers["Location"] == "/"


@for_each("text", [*CRUDE[:3], CRUDE[7], "\u2028x", "\u202eabc", "\x85y", "a\u00adb\u061c\ufffa\U000e0041\u3164"])
def test_a_line_of_the_log_stays_one_line_and_shows_what_was_in_it(text):
    assert configured.LOGGING["formatters"]["line"]["()"] == "dashboard.site.log_format.Line"
    written = Line("{levelname} {message}", style="{").format(
        logging.LogRecord("x", logging.WARNING, "", 0, "asked for %s", (text,), None)
    )
    assert written.encode("utf-8", "strict")
    assert written.isprintable()
    assert len(written.splitlines()) == 1
