"""Over HTTP: pages of the shop are as they were, pages of Signalbox are whole, and no link leads out of the prefix."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from django.urls import reverse

from machines.engine import Engine
from tests.cases import for_each
from tests.pages.table import NOT_FOR_BROWSERS, TABLE

from .conftest import client_of, run

pytestmark = pytest.mark.faults  # real processes
OURS = ("Content-Security-Policy", "X-Request-Id", "Permissions-Policy", "Cross-Origin-Resource-Policy")
OF_THE_SITE = {"admin-login", "favicon", "login", "patterns", "patterns-act"}
"""Addresses that only Signalbox's own site has."""
MADE = ({"activation", "new_device"}, {"ATV-123:NBCSports"})
ELSEWHERE = ("/static/", "/backoffice/")
MOST = 60  # pages that the crawl opens


class Links(HTMLParser):
    """The addresses of a page, and those that it sends forms to."""

    def __init__(self, page: httpx.Response) -> None:
        super().__init__()
        self.page, self.links, self.forms = page, set(), set()
        self.feed(page.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src", "action", "data-rows", "data-live-url", "data-mount") and value:
                found = urlsplit(urljoin(str(self.page.url), value))
                if found.netloc == self.page.url.netloc.decode():
                    (self.forms if name == "action" else self.links).add(found._replace(fragment="").geturl())


@pytest.fixture(scope="module", params=["asgi", "wsgi"])
def url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def boss(url: str) -> httpx.Client:
    with client_of(url, "boss") as client:
        yield client


@for_each("path, status", [("/", 200), ("/login/", 200), ("/gone/", 404), ("/private/", 403)])
def test_pages_of_the_shop_have_nothing_of_ours(url: str, path: str, status: int):
    answer = httpx.get(url + path, headers={"Accept-Language": "de"})
    assert answer.status_code == status
    assert not {name.lower() for name in OURS} & set(answer.headers)
    assert "shop" in answer.text.lower()
    assert "signalbox" not in answer.text.lower()


def test_an_error_of_the_shop_is_told_by_the_shop(asgi: str):
    answer = httpx.get(f"{asgi}/broken/")
    assert (answer.status_code, "The shop says 500." in answer.text) == (500, True)
    assert not {name.lower() for name in OURS} & set(answer.headers)


def test_the_admin_keeps_its_name(boss: httpx.Client):
    page = boss.get("/backoffice/")
    assert "Shop administration" in page.text
    assert boss.get("/backoffice/machines/machine/").status_code == 200
    assert boss.get("/backoffice/machines/machine/1/change/").status_code == 200


def test_a_stranger_is_led_to_the_login_of_the_shop(url: str):
    answer = httpx.get(f"{url}/ops/machines/activation/?state=New")
    assert answer.headers["Location"] == "/login/?next=/ops/machines/activation/%3Fstate%3DNew"
    assert httpx.get(f"{url}/ops/accounts/login/").status_code == 404, "it would pass by what the shop asks for"


def test_who_has_no_right_gets_our_page_and_our_problem(url: str):
    with client_of(url, "customer") as client:
        page = client.get("/ops/machines/activation/")
        assert (page.status_code, "Permission denied" in page.text) == (403, True)
        problem = client.get("/ops/api/v1/machines/activation")
        assert problem.headers["Content-Type"] == "application/problem+json"
        assert problem.json()["type"].startswith("/ops/api/v1/docs#SB")


def test_what_is_missing_gets_our_page_and_our_problem(boss: httpx.Client):
    page = boss.get("/ops/machines/nothing/")
    assert (page.status_code, 'href="/ops/"' in page.text) == (404, True)
    problem = boss.get("/ops/api/v1/nothing")
    assert (problem.status_code, problem.json()["code"]) == (404, "SB708") or problem.json()["code"].startswith("SB")


def test_our_pages_have_our_headers_in_our_language(boss: httpx.Client):
    page = boss.get("/ops/", headers={"Accept-Language": "de"})
    nonce = re.search(r"'nonce-([^']+)'", page.headers["Content-Security-Policy"])
    assert nonce is not None
    assert f'<script nonce="{nonce[1]}" type="module"' in page.text
    assert {name.lower() for name in OURS} <= set(page.headers)
    assert (page.headers["X-Frame-Options"], page.headers["Content-Language"]) == ("DENY", "en")
    assert 'href="/backoffice/"' in page.text, "the admin is where the shop has it"
    assert "Europe/Berlin" in page.text, "the shop's time zone holds for who chose none"


@for_each("name", sorted(set(TABLE) - OF_THE_SITE))
def test_every_page_answers_under_the_prefix(boss: httpx.Client, name: str):
    entry = TABLE[name]
    path = reverse(f"signalbox:{name}", kwargs=entry.arguments) + entry.query
    answer = boss.get(f"/ops{path}")
    there = all(value in MADE[0] | MADE[1] | {"todo"} for value in entry.arguments.values())
    assert answer.status_code in ({entry.get} if there else {entry.get, 404}), answer.text[:500]
    if answer.status_code in (301, 302):
        assert answer.headers["Location"].startswith(("/ops/", "?")), answer.headers["Location"]
    if name not in NOT_FOR_BROWSERS and answer.headers["Content-Type"].startswith("text/html"):
        links = Links(answer)
        assert not [link for link in links.links | links.forms if not _is_below(link)]


def test_a_crawl_finds_no_dead_link_and_none_out_of_the_prefix(asgi: str):
    with client_of(asgi, "boss") as client:
        _crawl(client, f"{asgi}/ops/")


def _crawl(boss: httpx.Client, start: str) -> None:
    waiting, seen, dead = [start], set(), {}
    while waiting and len(seen) < MOST:
        link = waiting.pop(0)
        if link in seen:
            continue
        seen.add(link)
        answer = boss.get(link)
        if answer.status_code >= 400:
            dead[link] = answer.status_code
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            found = Links(answer)
            assert not [each for each in found.links | found.forms if not _is_below(each)], link
            waiting += sorted(each for each in found.links if urlsplit(each).path.startswith("/ops/"))
    assert {link: code for link, code in dead.items() if "ws/live" not in link} == {}
    assert len(seen) > 20


def _is_below(link: str) -> bool:
    return urlsplit(link).path.startswith(("/ops/", *ELSEWHERE))


def test_the_document_of_the_api_names_the_prefix_as_its_server(boss: httpx.Client):
    found = boss.get("/ops/api/v1/openapi.json").json()
    assert found["servers"] == [{"url": "/ops"}]
    assert boss.get(found["servers"][0]["url"] + "/api/v1/machines").status_code == 200
    assert "/api/v1/machines" in found["paths"]


def test_the_api_takes_a_token_without_a_session(url: str, boss: httpx.Client):
    page = boss.get("/ops/account/tokens/")
    key = re.search(r'name="key" value="([^"]+)"', page.text)
    form = {"name": "ci", "rights": ["view", "fire"], "days": "30", "key": key[1]}
    form["csrfmiddlewaretoken"] = boss.cookies["csrftoken"]
    made = boss.post("/ops/account/tokens/", data=form)
    token = re.search(r"sb_[0-9a-f]{12}_[\w-]+", made.text)
    assert token, made.text[:3000]
    path = f"{url}/ops/api/v1/machines/activation/instances"
    headers = {"Authorization": f"Bearer {token[0]}", "Idempotency-Key": "one"}
    asked = {"id": f"by-token-{url.rpartition(':')[2]}"}
    answers = [httpx.post(path, headers=headers, json=asked) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201], answers[0].text
    assert answers[1].headers["Idempotent-Replayed"] == "true", "whatever cache the shop has"


def test_a_saved_view_leads_to_its_page_under_the_prefix(boss: httpx.Client):
    token, name = boss.cookies["csrftoken"], f"new ones {boss.base_url.port}"
    form = {"name": name, "page": "/ops/machines/activation/", "query": "state=New", "csrfmiddlewaretoken": token}
    saved = boss.post("/ops/views/", data=form)
    assert saved.headers["Location"] == "/ops/machines/activation/?state=New"
    [view] = [view for view in boss.get("/ops/api/v1/views").json()["items"] if view["name"] == name]
    assert (view["page"], view["url"]) == ("/machines/activation/", "/ops/machines/activation/?state=New")
    assert name in boss.get("/ops/machines/activation/").text


def test_log_out_ends_the_session_of_the_shop(url: str):
    with client_of(url, "operator") as client:
        client.get("/ops/")
        answer = client.post("/ops/accounts/logout/", data={"csrfmiddlewaretoken": client.cookies["csrftoken"]})
        assert (answer.status_code, answer.headers["Location"]) == (302, "/")
        assert client.get("/ops/").headers["Location"] == "/login/?next=/ops/"


def test_probes_answer(url: str):
    assert httpx.get(f"{url}/ops/healthz").json()["redis"] == "ok"
    ready = httpx.get(f"{url}/ops/readyz")
    assert ready.status_code == 200, json.dumps(ready.json())


def test_a_worker_of_the_shop_runs_its_handlers(shop: dict[str, str], redis_url: str, shop_prefix: str):
    engine = Engine.from_url(redis_url, prefix=shop_prefix)
    engine.create("new_device", "by-the-shop")
    run(shop, "-m", "django", "worker", "--queues", "start", "--drain")
    assert engine.get("new_device", "by-the-shop").state == "todo"
    engine.client.close()
