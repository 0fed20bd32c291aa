"""Every form of the site while the network is away: it says so and keeps what was entered, and is sent once it is back.

The forms are those of the templates: one that no page here shows fails the test.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import resolve
from playwright.sync_api import Browser, Page, Request, expect

from dashboard.models import SavedView
from machines.engine import Engine
from machines.instances.bulks import Bulk, Order
from machines.models import FailureAction, StoredPlan
from tests.instances.bulks.builders import work_off
from tests.pages.conftest import example, filled
from tests.pages.reading import Element, fields, read
from tests.pages.table import EVERYONE, OF_BULK, TABLE

from .conftest import keys_work

__all__ = ["filled"]

TEMPLATES = Path(__file__).parents[2] / "templates" / "signalbox"
FORM = re.compile(r"""<form\b[^>]*method="post".*?</form>""", re.DOTALL)
TARGET = re.compile(r"""\baction="{% url 'signalbox:([\w-]+)'""")
TYPED = re.compile(r"""<textarea|<select|<input(?![^>]*type="hidden")|{% include "signalbox/(?!studio/_run)""")
# Before anybody logs in, and what answers a form that was not accepted.
ELSEWHERE = {"account/login.html", "account/saved_view.html", "error.html", "503.html", "studio/_trial.html"}
MORE = [  # in a state in which the pages of the table are not
    "/machines/activation/?state=Waiting",
    "/machines/new_device/versions/",
    "/machines/new_device/try/",
    "/queues/new_device/start/",
    "/bulk/refused/",
    "/machines/new_device/versions/plans/8/",
]
UNSENT = "The server cannot be reached."
FILL = """(form, text) => {
    for (let e = form.parentElement; e; e = e.parentElement) {
        if (e.matches("details")) e.open = true;
        if (e.popover) e.showPopover();
    }
    form.noValidate = true;
    for (const e of form.elements) {
        const typed = e.matches("textarea, input:is(:not([type]), [type=text], [type=search], [type=url])");
        if (typed && !e.value && !e.readOnly && e.checkVisibility()) e.value = text;
    }
    return [...new FormData(form)].filter(([, value]) => typeof value === "string"); }"""
KEPT = "(form) => [...new FormData(form)].filter(([, value]) => typeof value === 'string')"
SUBMIT = """(form) => form.requestSubmit([...form.querySelectorAll("button")]
    .find((e) => e.type === "submit" && !e.disabled && e.checkVisibility()))"""
IN_DIALOG = "(form) => form.closest('[popover]') !== null"
FORGET = "() => document.querySelectorAll('.toast, [data-unsent]').forEach((e) => e.remove())"


@pytest.fixture
def superuser(db: None):
    return get_user_model().objects.create_superuser("sue", password="let me in")


@pytest.fixture
def client(superuser) -> Client:
    client = Client()
    client.force_login(superuser)
    return client


@pytest.fixture
def world(filled, engine: Engine, superuser, client: Client) -> None:
    """What shows the forms that depend on what has happened."""
    SavedView.objects.create(owner=superuser, name="all", page="/machines/activation/")
    rolled = example("new_device")
    rolled["states"]["start"]["tags"] = ["rolled"]
    engine.publish(rolled, rollout=5)
    now = int(time.time() * 1000)
    FailureAction.objects.create(
        action="redrive", actor="sue", reason="a test", rate=1, jobs=[1], terms={}, started=now, updated=now
    )
    moved = StoredPlan.objects.get(pk=7)
    StoredPlan.objects.create(
        pk=8, machine=moved.machine, to=moved.to, plan=moved.plan, plan_id="8", author="sue", bulk=OF_BULK["id"]
    )
    refused = Bulk.start(engine, Order("activation", "fire", "sue", "a test", event="activate"), id="refused")
    work_off(engine)
    refused.run("sue")
    work_off(engine)


def targets(form: Element, address: str) -> set[str]:
    """The names of the addresses that a form is sent to."""
    actions = [form.attributes.get("action") or address]
    actions += [button["formaction"] for button in form.all("button") if "formaction" in button.attributes]
    return {resolve(urlsplit(action).path).url_name for action in actions}


def shown(client: Client) -> tuple[dict[str, list[tuple[str, int]]], set[str]]:
    """The forms of all pages by their selector and place, each on the first page that has one to the same addresses
    with the same fields; the names of these addresses, and of the templates."""
    seen: set[tuple] = set()
    pages: dict[str, list[tuple[str, int]]] = {}
    names: set[str] = set()
    for address in [
        *(entry.url(name) for name, entry in TABLE.items() if entry.get == 200 and entry.of != EVERYONE),
        *MORE,
    ]:
        answer = client.get(address)
        if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
            continue
        names |= {one.name for one in answer.templates}
        places: Counter[str] = Counter()
        for form in read(answer).all("form", method="post"):
            action = form.attributes.get("action")
            selector = "form[method=post]" + (":not([action])" if action is None else f"[action={json.dumps(action)}]")
            kind = (*sorted(targets(form, address)), "with", *sorted(fields(form)))
            if kind not in seen:
                pages.setdefault(address, []).append((selector, places[selector]))
            seen.add(kind)
            names |= targets(form, address)
            places[selector] += 1
    return pages, names


def missing(names: set[str]) -> set[str]:
    """Templates that have a form with something to enter, and addresses of such forms, that are not among the names."""
    wanted = set()
    for path in TEMPLATES.rglob("*.html"):
        forms = [form for form in FORM.findall(path.read_text(encoding="utf-8")) if TYPED.search(form)]
        if forms and (name := str(path.relative_to(TEMPLATES))) not in ELSEWHERE:
            wanted |= {f"signalbox/{name}", *(target for form in forms for target in TARGET.findall(form))}
    assert len(wanted) > 50
    return wanted - names


def test_a_form_keeps_what_was_entered_and_is_sent_once_the_network_is_back(
    chromium: Browser, site, world, client, settings
):
    pages, names = shown(client)
    assert missing(names) == set()
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    wrong: dict[str, list[str]] = {}
    with chromium.new_context(base_url=site, timezone_id="Asia/Tokyo") as context:  # it may complain about the network
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": site}])
        page = context.new_page()
        for address, places in pages.items():
            page.goto(address)
            keys_work(page)
            if page.locator("form[data-studio]").count():
                expect(page.locator("form[data-checked]")).to_be_attached()
            if said := lose_and_send(page, places):
                wrong[address] = said
    assert wrong == {}


def lose_and_send(page: Page, places: list[tuple[str, int]]) -> list[str]:
    """What is wrong with the forms at these places of the page."""
    wrong = []
    entered = {}
    page.context.set_offline(True)
    for place in places:
        form = page.locator(place[0]).nth(place[1])
        entered[place] = form.evaluate(FILL, "typed by hand")
        form.evaluate(SUBMIT)
        above = form if form.evaluate(IN_DIALOG) else page  # what the page says would be below a dialog
        expect(above.get_by_text(UNSENT).first).to_be_visible()
        if form.evaluate(KEPT) != entered[place]:
            wrong.append(f"{place} lost {entered[place]}")
        page.evaluate(FORGET)
    page.context.set_offline(False)
    page.route("**/*", lambda route: route.fulfill(status=204) if is_sent(route.request) else route.continue_())
    for place in places:
        with page.expect_response(lambda response: is_sent(response.request)) as sent:
            form = page.locator(place[0]).nth(place[1])
            form.evaluate(FILL, "")
            form.evaluate(SUBMIT)
        request = sent.value.request
        if request.headers["content-type"] == "application/x-www-form-urlencoded":
            given = parse_qsl(request.post_data.replace("%0D%0A", "%0A"), keep_blank_values=True)
            lost = [pair for pair in entered[place] if tuple(pair) not in given]
            wrong += [f"{place} sent without {lost}"] if lost else []
    page.unroute("**/*")
    return wrong


def is_sent(request: Request) -> bool:
    """Whether it is what a form sends: the Studio sends its text by a script."""
    return request.method == "POST" and (request.is_navigation_request() or "/save/" in request.url)
