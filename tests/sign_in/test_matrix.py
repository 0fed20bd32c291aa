"""At every address of the pages a session that is not signed in to its end, or is over, gets what a stranger gets.

One place tells whose session it is, whatever is asked for: each of the two asks at one address and sends at the next.
"""

from __future__ import annotations

import pytest

from tests.pages.table import TABLE
from tests.sign_in.conftest import Person, add_app

pytestmark = pytest.mark.matrix
OWN = (
    "/accounts/sessions/",
    "/accounts/password/change/",
    "/accounts/2fa/",
    "/accounts/3rdparty/",
    "/accounts/confirm/",
)
WAYS_IN = ("login", "admin-login", "logout")
OTHERS = ("/admin/", "/admin/auth/user/", "/api/v1/me", "/api/v1/machines", "/metrics")


def ask(person: Person, path: str) -> tuple[int, str]:
    answer = person.client.get(path, follow_redirects=False)
    return answer.status_code, answer.headers.get("Location", "")


def send(person: Person, path: str) -> tuple[int, str]:
    """Send a form with a token that is good, so that the answer is about who sends it."""
    headers = {"Referer": person.site.url, "X-CSRFToken": person.client.cookies["csrftoken"]}
    answer = person.client.post(path, headers=headers, follow_redirects=False)
    return answer.status_code, answer.headers.get("Location", "")


def test_half_a_sign_in_and_an_ended_session_are_a_stranger_s_everywhere(another):
    stranger, half, ended = another(), another(), another()
    stranger.get("/accounts/login/")
    half.log_in("gus")
    add_app(half)
    half.post("/accounts/logout/", page="/account/")
    assert half.log_in("gus").url.path == "/accounts/2fa/authenticate/"
    ended.log_in("hal")
    cookies = dict(ended.client.cookies)
    ended.post("/accounts/logout/", page="/account/")
    ended.client.cookies.clear()
    ended.client.cookies.update(cookies)
    paths = [entry.url(name) for name, entry in TABLE.items() if name not in WAYS_IN]
    assert len(paths) > 80
    for number, path in enumerate((*OWN, *OTHERS, *paths)):
        people = (half, ended) if number % 2 else (ended, half)
        for do, person in zip((ask, send), people, strict=True):
            expected = do(stranger, path)
            assert expected[0] != 200 or do is ask, f"a stranger sends {path}"
            assert do(person, path) == expected, (do.__name__, path)
