"""Whatever people and programs write is text on every page, in every export and drawing, and in the log."""

import csv
import io
import logging
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from dashboard.logs import Line

from .hostile import CRUDE, MACHINE, QUEUE, TEXTS, furnish

ADDRESSES = {"href", "src", "action", "formaction", "xlink:href"}
RUNS = re.compile(r"[\s\x00-\x1f]*(javascript|data|vbscript|//)", re.IGNORECASE)
ELEMENTS = {"svg", "g", "title", "desc", "path", "polygon", "polyline", "ellipse", "text", "tspan", "rect", "line", "a"}
ELEMENTS |= {"style", "defs", "marker", "circle", "use"}
PAGES = ("overview", "queues", "workers", "audit", "webhooks", "components", "sm", "approvals", "account")
TERMS = ("state", "id", "open", "mode", "view", "where", "by", "is", "older", "cursor", "tag", "actor", "order")


class Elements(HTMLParser):
    """Finds what no template of ours writes: elements and attributes of the texts, handlers, addresses that run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        bad = tag.startswith("zq") or tag in ("style", "iframe", "object", "embed", "base")
        for name, value in named.items():
            bad |= name.startswith(("on", "zq")) or name in ("style", "srcdoc")
            bad |= (
                name in ADDRESSES
                and re.match(r"[\s\x00-\x1f]*(javascript|data|vbscript|//)", value or "", re.I) is not None
            )
        if tag == "script" and named.get("type") != "application/json":
            bad |= not (named.get("src") or "").startswith("/static/")
        if bad:
            self.wrong.append(self.get_starttag_text() or tag)


def wrong_in(page: str) -> list[str]:
    parser = Elements()
    parser.feed(page)
    parser.close()
    wrong = parser.wrong
    return wrong + (["a template was run"] if re.search(r"1337", page) else [])


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
        reverse(name)
        for name in ("overview", "queues", "workers", "audit", "webhooks", "components", "sm", "approvals", "account")
    ]
    machine, queue = reverse("machine", args=[MACHINE]), reverse("queue", args=[MACHINE, QUEUE])
    found += [machine, queue, f"{machine}bulk/", reverse("bulk", args=["3f2a"]), reverse("webhook", args=[7])]
    found += [f"{machine}?mode={mode}" for mode in ("age", "flow", "failures", "time")]
    found += [f"{queue}?place={place}" for place in ("ready", "leased", "delayed", "dead")]
    found += [reverse("instance", args=[MACHINE, id]) for id in ids]
    found += [reverse(name, args=[MACHINE, ids[0]]) for name in ("force", "edit", "delete", "reset", "skip")]
    found += [reverse("job", args=[MACHINE, f"0-{n}"]) for n in (1, 2)]
    return found


def test_no_page_takes_a_text_for_more_than_that(client, world):
    assert len(world) > 15
    for address in addresses(client, world):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert wrong_in(answer.content.decode()) == [], address


def test_no_term_in_an_address_and_no_field_of_a_form_is_taken_for_more_either(client, world):
    machine = reverse("machine", args=[MACHINE])
    places = [
        (machine, TERMS),
        (reverse("audit"), ("actor", "target", "since", "machine")),
        (reverse("queue", args=[MACHINE, QUEUE]), ("place", "page")),
        (reverse("sm"), ("key",)), (reverse("login"), ("next",)), (reverse("webhook", args=[7]), ("state", "before")),
    ]  # fmt: skip
    for place, (address, terms) in enumerate(places):
        for number, text in enumerate([*TEXTS, *CRUDE][place % 2 :: 2]):
            answer = client.get(address, {term: text.encode("utf-8", "replace") for term in terms[number % 3 :: 3]})
            assert answer.status_code < 500, (address, text[:40])
            assert "Set-Cookie: zq" not in str(answer.headers)
            if answer.headers.get("Content-Type", "").startswith("text/html"):
                assert wrong_in(answer.content.decode()) == [], (address, text[:40])
    forms = [reverse(name, args=[MACHINE, world[0]]) for name in ("fire", "force", "edit", "delete")]
    forms += [reverse("create", args=[MACHINE]), reverse("webhook-make"), reverse("queue-pause", args=[MACHINE, QUEUE])]
    fields = ("event", "reason", "id", "state", "data", "name", "url", "types", "payload-x", "json", "key")
    for number, text in enumerate([*TEXTS, *CRUDE]):
        address = forms[number % len(forms)]
        answer = client.post(address, dict.fromkeys(fields, text.encode("utf-8", "replace")), follow=True)
        assert answer.status_code < 500, (address, text[:40])
        assert wrong_in(answer.content.decode()) == [], (address, text[:40])


def test_exports_run_no_formula_and_drawings_no_script(client, world):
    rows = b"".join(client.get(reverse("audit-export")).streaming_content).decode()
    csv.field_size_limit(10**7)
    cells = [cell for row in csv.reader(io.StringIO(rows)) for cell in row]
    assert any("HYPERLINK" in cell for cell in cells)
    assert [cell for cell in cells if re.match(r"\s*[=+\-@]", cell) or (cell[:1] in "\t\r\n" and cell)] == []
    drawing = client.get(reverse("diagram", args=[MACHINE])).content
    for element in ElementTree.fromstring(drawing).iter():
        tag = element.tag.rpartition("}")[2].lower()
        assert tag in ELEMENTS, tag
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on"), name
            assert "href" not in name.lower() or value.startswith("#"), value


@pytest.mark.parametrize("path", [
    "/static/../dashboard/settings.py", "/static/%2e%2e/%2e%2e/manage.py", "/static/..%2fmanage.py",
    "/static//etc/passwd",
    "/static/css/..%5c..%5cmanage.py", "/machines/..%2f..%2fetc/", "/machines/a%0d%0aSet-Cookie:zq=1/",
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
        assert Client().post(reverse("login"), form).headers["Location"] == "/"


@pytest.mark.parametrize("text", [*CRUDE[:3], CRUDE[7], "\u2028x", "\u202eabc", "\x85y"])
def test_a_line_of_the_log_stays_one_line_and_shows_what_was_in_it(text):
    assert configured.LOGGING["formatters"]["line"]["()"] == "dashboard.logs.Line"
    written = Line("{levelname} {message}", style="{").format(
        logging.LogRecord("x", logging.WARNING, "", 0, "asked for %s", (text,), None)
    )
    assert written.encode("utf-8", "strict")
    assert written.isprintable()
    assert len(written.splitlines()) == 1
