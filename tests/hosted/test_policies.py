"""A project's own Content-Security-Policy: what it blocks is found before, and said on the page."""

from __future__ import annotations

import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.test import RequestFactory
from playwright.sync_api import Browser, expect

from dashboard.serving.checks.page_policy import find_blocked
from tests.cases import for_each

from .conftest import _serve, log_in, run

PAGE = urlsplit("https://shop.example/ops/")
STRICT = """
from shop.settings import *

MIDDLEWARE = ["strict.Strict", *MIDDLEWARE]


class Strict:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        answer = self.get_response(request)
        answer["Content-Security-Policy"] = POLICY
        return answer


POLICY = "script-src 'none'"
"""
PROPAGATED = """
DEBUG_PROPAGATE_EXCEPTIONS = True
"""
PACKAGE = """
from shop.settings import *
from csp.constants import NONCE

MIDDLEWARE = ["csp.middleware.CSPMiddleware", *MIDDLEWARE]
CONTENT_SECURITY_POLICY = {"DIRECTIVES": {"default-src": [SOURCES]}}
"""


def make(shop: dict[str, str], folder: Path, text: str) -> dict[str, str]:
    """The environment of the shop with a module of settings, ``strict``, in place of its own."""
    (folder / "strict.py").write_text(text)
    return shop | {"DJANGO_SETTINGS_MODULE": "strict", "PYTHONPATH": f"{folder}:{shop['PYTHONPATH']}"}


@for_each(
    "header, script, blocked",
    [
        ("", "/static/a.js", []),
        ("default-src 'self'", "/static/a.js", []),
        ("default-src 'none'", "/static/a.js", ["default-src 'none'"] * 3),
        ("script-src 'nonce-abc'; style-src https:; connect-src *", "/static/a.js", []),
        ("connect-src https:", "/static/a.js", ["connect-src https:"]),
        ("connect-src shop.example", "/static/a.js", ["connect-src shop.example"]),
        ("connect-src wss:", "/static/a.js", ["connect-src wss:"]),
        ("connect-src https: ws:", "/static/a.js", []),
        ("connect-src shop.example wss://shop.example", "/static/a.js", []),
        ("script-src 'nonce-other'", "/static/a.js", ["script-src 'nonce-other'"]),
        ("script-src 'self' 'strict-dynamic'", "/static/a.js", ["script-src 'self' 'strict-dynamic'"]),
        ("script-src 'self'", "https://cdn.example/a.js", ["script-src 'self'"]),
        ("script-src cdn.example", "https://cdn.example/a.js", []),
        ("script-src https://*.example/static/", "https://cdn.example/static/a.js", []),
        ("script-src https://*.example/other/", "https://cdn.example/a.js", ["script-src https://*.example/other/"]),
        ("script-src http://cdn.example; style-src http:", "https://cdn.example/a.js", []),
        ("script-src https://cdn.example", "http://cdn.example/a.js", ["script-src https://cdn.example"]),
        ("default-src 'none'; script-src-elem 'self'; style-src 'self'; connect-src 'self'", "/static/a.js", []),
        ("script-src 'self'; script-src 'none'", "/static/a.js", []),
        ("default-src 'self', connect-src 'none'", "/static/a.js", ["connect-src 'none'"]),
        ("sandbox allow-forms", "/static/a.js", ["sandbox"]),
        ("require-trusted-types-for 'script'; trusted-types dompurify", "/static/a.js", ["trusted-types dompurify"]),
        ("trusted-types signalbox dompurify", "/static/a.js", []),
    ],
)
def test_what_a_policy_blocks(header: str, script: str, blocked: list[str]):
    request = RequestFactory().get("/")
    request.csp_nonce = "abc"
    address = urlsplit(script if "//" in script else f"https://shop.example{script}")
    assert find_blocked(header, PAGE, address, request, is_live=True) == blocked


def test_under_wsgi_no_socket_is_asked_for(settings):
    settings.ASGI_APPLICATION = None
    assert find_blocked("connect-src https:", PAGE, PAGE, RequestFactory().get("/"), is_live=True) == []


@for_each("header", ["default-src 'none'; script-src 'self'; style-src 'self'", "trusted-types dompurify"])
def test_screens_in_the_admin_need_less_than_pages(header: str):
    """They open no connection, and make no HTML."""
    args = (header, PAGE, PAGE, RequestFactory().get("/"))
    assert (find_blocked(*args, is_live=False), len(find_blocked(*args, is_live=True))) == ([], 1)


@pytest.mark.faults  # real processes
@pytest.mark.parametrize(
    ("text", "named"),
    [
        (PACKAGE.replace("SOURCES", "\"'none'\""), ["machines in the admin (/backoffice/)"]),
        (PACKAGE.replace("SOURCES", "NONCE").replace("default-src", "script-src"), []),
        (STRICT.replace("        answer[", "        request.resolver_match.route\n        answer[") + PROPAGATED, []),
    ],
)
def test_check_asks_the_middleware_of_the_project(shop: dict[str, str], tmp_path: Path, text: str, named: list[str]):
    """django-csp, as Django's own middleware, keeps the policy that our pages bring. A middleware that wants a real
    view says nothing, and stops no check."""
    assert find_named(run(make(shop, tmp_path, text), "-m", "django", "check", "--deploy")) == named


def find_named(said: str) -> list[str]:
    return re.findall(r"signalbox.W028\) the Content-Security-Policy of .*?((?:pages|machines).*?\))", said)


BUSY = """
        from django.contrib.auth.models import Group
        from django.core.mail import mail_admins
        from django.db import transaction
        import logging
        Group.objects.create(name=f"plain {request.path}")
        with transaction.atomic():
            transaction.on_commit(lambda: print("EFFECT: committed"))
            Group.objects.create(name=f"atomic {request.path}")
        assert Group.objects.filter(name__endswith=request.path).count() == 2
        logging.getLogger("shop").error("EFFECT: a log line")
        mail_admins("EFFECT: mail", "for you")
"""
BUSY_SETTINGS = """
ADMINS = [("Ann", "ann@shop.example")] if django.VERSION < (6,) else ["ann@shop.example"]
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
"""


@pytest.mark.faults  # real processes
def test_check_leaves_no_effect_of_the_middleware(shop: dict[str, str], tmp_path: Path):
    text = STRICT.replace("        answer[", f"{BUSY}        answer[") + BUSY_SETTINGS
    environment = make(shop, tmp_path, f"import django\n{text}")
    before = count_groups(shop)
    said = run(environment, "-m", "django", "check", "--deploy")
    assert find_named(said) == ["pages of Signalbox (/ops/)", "machines in the admin (/backoffice/)"]
    assert "EFFECT" not in said
    assert count_groups(shop) == before


def count_groups(shop: dict[str, str]) -> int:
    with closing(sqlite3.connect(shop["SHOP_DATABASE"])) as database:
        return database.execute("SELECT count(*) FROM auth_group").fetchone()[0]


@pytest.mark.faults  # real processes
def test_a_page_whose_scripts_are_blocked_says_so(shop: dict[str, str], tmp_path: Path, chromium: Browser, asgi: str):
    uvicorn = [sys.executable, "-m", "uvicorn", "shop.asgi:application", "--log-level", "warning"]
    for url in _serve(make(shop, tmp_path, STRICT), tmp_path / "log", lambda fd: [*uvicorn, "--fd", str(fd)]):
        page = chromium.new_context(base_url=url).new_page()
        page.goto("/ops/")
        log_in(page)
        notice = page.locator("[data-scriptless]")
        expect(notice).to_be_visible(timeout=30_000)
        expect(notice).to_contain_text("Scripts do not run on this page")
        page.context.close()
    page = chromium.new_context(base_url=asgi).new_page()
    page.goto("/ops/")
    log_in(page)
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "live")
    expect(page.locator("[data-scriptless]")).to_have_count(0)
    page.context.close()
