"""Every answer of the site tells the browser what to refuse: pages, errors, static files, API, redirects."""

import re

import pytest
from django.test import AsyncClient, Client
from django.urls import reverse

from machines.conf.kinds import Unfit
from machines.conf.table import SETTINGS
from tests.configuration import configure
from tests.installation.settings.test_settings import settings_with, start
from tests.pages.conftest import filled
from tests.pages.table import OF_INSTANCE, TABLE

__all__ = ["filled", "settings_with", "start"]

ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
DRAWING = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # its style is inside, and it may do nothing at all
API = [f"/api/v1/{path}" for path in ("docs", "openapi.json", "machines", "queues", "audit", "webhooks", "nothing")]
NONE_OF = ("unsafe", "*", "http:", "https:", "blob:", "strict-dynamic")
INLINE = re.compile(r"\son[a-z]+\s*=|\sstyle\s*=|javascript:", re.IGNORECASE)


def rules_of(answer) -> dict[str, str]:
    policy = answer.headers["Content-Security-Policy"]
    assert not any(word in policy for word in NONE_OF), policy
    return {name: value for name, _, value in (rule.partition(" ") for rule in policy.split("; "))}


def check(answer, admin: bool = False) -> None:
    for name, value in ALWAYS.items():
        assert answer.headers.get(name) == value, name
    assert "camera=()" in answer.headers["Permissions-Policy"]
    if answer.headers["Content-Security-Policy"] == DRAWING:
        assert answer.headers["Content-Type"].startswith("image/svg+xml")
        return
    rules = rules_of(answer)
    for closed in ("default-src", "object-src", "base-uri", "frame-ancestors", "script-src-attr", "style-src-attr"):
        assert rules[closed] == "'none'"
    assert rules["form-action"] == "'self'"
    assert ("require-trusted-types-for" in rules) is not admin
    if "text/html" in answer.headers.get("Content-Type", "") and not admin:
        _markup(answer, rules)


def _markup(answer, rules) -> None:
    """Each script and style carries the very nonce of this answer, and nothing stands between their tags."""
    page = answer.content.decode()
    page = re.sub(
        r'<script[^>]* type="application/json">.*?</script>', "", page, flags=re.DOTALL
    )  # data, and no script
    for tag in re.findall(r"<(?:script|link)[^>]*>", page):
        if tag.startswith("<link") and 'rel="stylesheet"' not in tag:
            continue
        nonce = re.search(r'nonce="([^"]*)"', tag)
        assert nonce, tag
        assert f"'nonce-{nonce.group(1)}'" in rules["script-src"], tag
        assert f"'nonce-{nonce.group(1)}'" in rules["style-src"], tag
    assert "<style" not in page
    assert re.findall(r"<script[^>]*>\s*[^<\s]", page) == []
    for tag in re.findall(r"<[a-z][^<>]*>", re.sub(r"\"[^\"]*\"", '""', page)):
        assert not INLINE.search(tag), tag


@pytest.mark.matrix
@pytest.mark.parametrize("role", ["supervisor", "anonymous"])
def test_every_address_answers_with_all_of_them_whatever_it_answers(filled, as_, role):
    client = as_(role)
    for name, entry in TABLE.items():
        methods = (client.get,) if entry.get == entry.post else (client.get, client.post)
        for method in () if name == "logout" else methods:
            check(method(entry.url(name)), admin=entry.url(name).startswith("/admin/"))


def test_errors_static_files_and_the_admin_too(filled, as_, settings, admin_client):
    client = as_("supervisor")
    settings.ALLOWED_HOSTS = ["testserver"]
    for path in ("/no/such/page/", "/static/nothing.js", "/favicon.ico", *API):
        for method in (client.get, client.post, Client().get):
            check(method(path))
    check(client.head("/static/signalbox/js/shared/base.js"))
    check(client.get("/", HTTP_HOST="evil.example"))
    check(client.post(reverse("signalbox:fire", kwargs=OF_INSTANCE), {"event": "x" * 500}))
    enforced = Client(enforce_csrf_checks=True)
    check(enforced.post("/accounts/login/", {}))
    for path in (
        "/admin/",
        "/admin/machines/machine/",
        "/admin/machines/auditentry/",
        "/admin/auth/user/",
        "/admin/x/",
    ):
        check(admin_client.get(f"/admin/{path}"), admin=True)


async def test_they_are_there_when_the_site_runs_asynchronously_as_it_does(engine, db):
    client = AsyncClient()
    for path in ("/accounts/login/", "/healthz"):
        check(await client.get(path))
    check(await client.head("/static/signalbox/js/shared/base.js"))


def test_every_answer_has_a_nonce_of_its_own(client, db):
    found = {rules_of(client.get("/accounts/login/"))["script-src"] for _ in range(5)}
    assert len(found) == 5
    assert "nonce" not in rules_of(client.get("/healthz"))["script-src"]


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(client, django_user_model, prefix):
    django_user_model.objects.create_user("sue", password="right")
    client.get("/accounts/login/")
    client.post("/accounts/login/", {"username": "sue", "password": "right"})
    assert set(client.cookies) == {"sessionid", "csrftoken"}
    for cookie in client.cookies.values():
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")


def test_behind_tls_they_are_of_this_host_alone_and_browsers_stay_with_it(settings_with):
    found = settings_with(BEHIND_TLS="1")
    assert (found["SESSION_COOKIE_NAME"], found["CSRF_COOKIE_NAME"]) == ("__Host-sessionid", "__Host-csrftoken")
    assert (found["SESSION_COOKIE_SECURE"], found["CSRF_COOKIE_SECURE"]) == ("True", "True")
    assert (found["SESSION_COOKIE_PATH"], found["SESSION_COOKIE_DOMAIN"]) == ("/", "None")
    assert int(found["SECURE_HSTS_SECONDS"]) >= 31_536_000
    assert "'upgrade-insecure-requests': True" in found["SECURE_CSP"]


def test_browsers_report_violations_to_the_address_of_the_setting(client, db, settings):
    assert "Reporting-Endpoints" not in client.get("/healthz").headers
    address = "https://reports.example.com/csp?of=box"
    configure(settings, CSP_REPORTS=address)
    for path in ("/accounts/login/", "/healthz", "/no/such/page/"):
        headers = client.get(path).headers
        rules = headers["Content-Security-Policy"].split("; ")
        assert {f"report-uri {address}", "report-to csp", "default-src 'none'"} <= set(rules)
        assert headers["Reporting-Endpoints"] == f'csp="{address}"'


@pytest.mark.parametrize(
    "given", ["/csp", "ftp://a", "https://a; script-src *", 'https://a"', "https://a,b", "https://é"]
)
def test_an_address_that_would_change_the_policy_is_refused(given):
    with pytest.raises(Unfit, match="CSP_REPORTS"):
        SETTINGS["CSP_REPORTS"].kind.read("CSP_REPORTS", given)
