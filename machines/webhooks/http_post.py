"""Makes one attempt: a POST to a checked address, within limits, and its result."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import certifi

import machines
from machines.conf.encryption.ciphers import SecretUnreadable

from . import apprise_post
from .addresses import check_address, resolve
from .errors import BadWebhook, Unreachable
from .models import Delivery
from .signing import headers

if TYPE_CHECKING:
    import httpx  # costs a tenth of the start of a process: the first delivery imports it

CONNECT = 5.0  # seconds
READ = 10.0  # seconds between two parts of an answer
WHOLE = 15.0  # seconds an attempt takes at most, name and answer included
LARGEST = 16 * 1024  # bytes of an answer that are read; what it says beyond that is nobody's business
SHOWN = 300  # characters of it that the delivery log keeps
AGENT = f"Signalbox/{machines.__version__}"


@dataclass(frozen=True, slots=True)
class PostResult:
    """``status``: 0 where there was none, and ``error`` says why. ``retry_after``: seconds the receiver asked for."""

    at: datetime
    took: int  # ms
    status: int = 0
    error: str = ""
    said: str = ""
    retry_after: float = 0.0

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def facts(self) -> dict[str, Any]:
        """Return the facts that the delivery log keeps."""
        return {
            "at": self.at.isoformat(timespec="milliseconds"), "ms": self.took, "status": self.status,
            "error": self.error, "said": self.said,
        }  # fmt: skip


async def post(delivery: Delivery, now: datetime) -> PostResult:
    """Post, and never raise: what went wrong is the answer."""
    import httpx

    began = time.monotonic()
    try:
        if apprise_post.is_apprise(delivery.webhook.url):
            error = await asyncio.to_thread(_notify, delivery)
            status, said, wait = 0 if error else 200, "", 0.0
        else:
            async with asyncio.timeout(WHOLE):
                status, said, wait = await _exchange(delivery, now)
            error = "" if 200 <= status < 300 else _explain_status(status)
    except (BadWebhook, Unreachable, SecretUnreadable) as refused:
        status, said, wait, error = 0, "", 0.0, str(refused)
    except TimeoutError:
        status, said, wait, error = 0, "", 0.0, f"no response within {WHOLE:g} seconds"
    except (httpx.HTTPError, ssl.SSLError, OSError, ValueError) as failure:
        status, said, wait, error = 0, "", 0.0, f"{type(failure).__name__}: {failure}"[:SHOWN]
    return PostResult(now, round((time.monotonic() - began) * 1000), status, error, said, wait)


def _notify(delivery: Delivery) -> str:
    """Send a message of a route by apprise; return why that failed."""
    data = json.loads(delivery.body)["data"]
    return apprise_post.send(delivery.webhook.url, data["title"], data["text"], data["severity"])


async def _exchange(delivery: Delivery, now: datetime) -> tuple[int, str, float]:
    """Return the status, the answer, and the seconds that the receiver asked for."""
    import httpx

    held = delivery.webhook.secrets(now)
    url = check_address(delivery.webhook.url)
    body = delivery.body.encode("ascii")
    sent = {
        "Host": url.netloc.decode("ascii"), "Content-Type": "application/json", "User-Agent": AGENT,
        "Accept-Encoding": "identity", "Connection": "close",
    } | headers(held, delivery.key, int(now.timestamp()), body)  # fmt: skip
    limits = httpx.Timeout(READ, connect=CONNECT)
    addresses = await resolve(url)
    # No proxy of the environment, no cookies, no redirects: it goes to an address that was judged, or nowhere.
    async with httpx.AsyncClient(
        trust_env=False, follow_redirects=False, timeout=limits, verify=load_trusted()
    ) as client:
        for number, address in enumerate(addresses, 1):
            request = client.build_request("POST", url.copy_with(host=address), content=body, headers=sent)
            request.extensions["sni_hostname"] = url.raw_host.decode("ascii")  # whose certificate it has to be
            try:
                answer = await client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if number == len(addresses):
                    raise
                continue  # nothing was sent yet: the name has another address
            try:
                return answer.status_code, await _read_answer(answer), _retry_after(answer)
            finally:
                await answer.aclose()
    raise Unreachable("the name has no address")


@lru_cache(maxsize=1)
def load_trusted() -> ssl.SSLContext:
    """Return whose certificates are believed: the public authorities, and those this system (or SSL_CERT_FILE)
    names."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    return context


async def _read_answer(answer: httpx.Response) -> str:
    """Return the beginning of what it says, as plain text: raw bytes, so that nothing is unpacked."""
    found = b""
    async for part in answer.aiter_raw():
        found += part
        if len(found) >= LARGEST:
            break
    text = found[: SHOWN * 4].decode("utf-8", "replace")
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text).strip()[:SHOWN]


def _retry_after(answer: httpx.Response) -> float:
    asked = answer.headers.get("Retry-After", "")
    return float(asked) if re.fullmatch(r"[0-9]{1,6}", asked) else 0.0


def _explain_status(status: int) -> str:
    if 300 <= status < 400:
        return f"HTTP {status}: redirects are not followed"
    return f"HTTP {status}"
