"""A person with a browser, without the browser: logs in at a real site, opens pages and posts their forms."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

import httpx

TIMEOUT = 60.0  # seconds: a page may wait for a node that is gone
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Visitor:
    """``transport``: the way to the site, where it is not the usual one; ``headers``: sent with each request."""

    def __init__(
        self, origin: str, *, transport: httpx.BaseTransport | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.origin = origin
        sent = {"Accept": "text/html", "Origin": origin, **(headers or {})}
        self._http = httpx.Client(base_url=origin, timeout=TIMEOUT, headers=sent, transport=transport)

    def close(self) -> None:
        self._http.close()

    @property
    def cookie(self) -> str:
        """The cookies as a header."""
        return "; ".join(f"{name}={value}" for name, value in self._http.cookies.items())

    def log_in(self, name: str, password: str) -> None:
        answer = self.post("/accounts/login/", at="/accounts/login/", username=name, password=password)
        assert answer.status_code == 302, answer.text[:2000]

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self._http.get(path, headers=headers)

    def read(self, path: str) -> str:
        """The text of a page, as a person reads it: hidden parts too, each run of white space as one space."""
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", self.get(path).text)))

    def post(self, path: str, *, at: str, origin: str = "", **fields: Any) -> httpx.Response:
        """Post a form. ``at``: the page that it stands on, which has the token of its forms; ``origin``: of the page
        that sends it, where that is another."""
        found = TOKEN.search(self.get(at).text)
        assert found, f"{at} has no form"
        headers = {"Origin": origin or self.origin}
        return self._http.post(path, data={"csrfmiddlewaretoken": found[1], **fields}, headers=headers)

    def send(self, path: str, content: bytes = b"") -> httpx.Response:
        """Post something that is no form of the site."""
        return self._http.post(path, content=content)

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Call the API with the session."""
        headers = {"X-CSRFToken": self._http.cookies.get("csrftoken", ""), "Accept": "application/json"}
        return self._http.request(method, f"/api/v1{path}", headers=headers, **options)
