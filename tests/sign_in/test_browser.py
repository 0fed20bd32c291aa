"""Each way to sign in, in a real browser under the site's own policy: password, provider, code, passkey."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from tests.browser.conftest import open_chromium
from tests.sign_in.conftest import PASSWORD, code_of

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with open_chromium() as browser:
        yield browser


@pytest.fixture
def page(chromium: Browser, site) -> Iterator[Page]:
    """A page of a new browser. Fails when the browser complains, as it does about what the policy blocks."""
    url = site.url.replace("127.0.0.1", "localhost")  # passkeys need the name of a host
    context, complaints = chromium.new_context(base_url=url), []
    context.on("console", lambda said: complaints.append(said.text) if is_error(said, url) else None)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    yield context.new_page()
    context.close()
    assert complaints == []


def is_error(said: ConsoleMessage, url: str) -> bool:
    """Whether the site made the browser complain; the provider's page asks for a style from elsewhere."""
    return said.type == "error" and said.location["url"].startswith(url)


def log_in(page: Page, name: str) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()


def confirm(page: Page) -> None:
    """Give the password again where the page asks for it."""
    if "/reauthenticate/" in page.url:
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Confirm").click()


def expect_logged_in(page: Page) -> None:
    expect(page.locator("[data-place=account]")).to_be_visible(timeout=60_000)


def check_looks(page: Page) -> None:
    """Nothing is wider than a phone."""
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= 390"), page.url
    page.set_viewport_size({"width": 1400, "height": 900})


def test_by_password(page):
    page.goto("/accounts/login/")
    check_looks(page)
    log_in(page, "jon")
    expect_logged_in(page)
    for path in ("/accounts/password/change/", "/accounts/sessions/", "/accounts/2fa/", "/accounts/3rdparty/"):
        page.goto(path)
        confirm(page)
        check_looks(page)


def test_by_provider(page, provider):
    provider.knows("b-1", email="bea@acme.example", preferred_username="bea", groups=["ops"])
    page.goto("/accounts/login/")
    page.get_by_role("button", name="Acme").click()
    page.wait_for_url(re.compile("/oauth2/authorize"))
    page.get_by_placeholder("sub").fill("b-1")
    page.get_by_role("button", name="Authorize").click()
    expect_logged_in(page)


def test_by_password_and_code(page):
    log_in(page, "fay")
    expect_logged_in(page)
    page.goto("/accounts/2fa/totp/activate/")
    confirm(page)
    expect(page.get_by_role("img")).to_be_visible()
    secret = page.get_by_role("img").last.get_attribute("alt")
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.get_by_role("button", name="Activate").click()
    expect(page.get_by_text(re.compile(r"\d{8}")).first).to_be_visible()
    page.context.clear_cookies()
    log_in(page, "fay")
    expect(page).to_have_url(re.compile("/accounts/2fa/authenticate/"))
    page.get_by_label("Code").fill(code_of(secret, ahead=30))
    page.locator("button[type=submit]", has_text=re.compile("Sign In|Log in")).first.click()
    expect_logged_in(page)


def test_by_passkey(page):
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    log_in(page, "ian")
    expect_logged_in(page)
    page.goto("/accounts/2fa/webauthn/add/")
    confirm(page)
    page.get_by_label("Name").fill("laptop")
    if (passwordless := page.get_by_label(re.compile("Passwordless"))).count():
        passwordless.check()
    page.get_by_role("button", name="Add").click()
    expect(page).not_to_have_url(re.compile("/add/"), timeout=60_000)
    page.context.clear_cookies()
    page.goto("/accounts/login/")
    page.get_by_role("button", name="Log in with a passkey").click()
    expect_logged_in(page)
