"""X-Forwarded-For counts from the proxies that the setting names, and from nobody else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from dashboard.serving import server
from machines.conf.kinds import Networks, Unfit
from tests.cases import for_each
from tests.configuration import configure

FORGED = {"X-Forwarded-For": "9.9.9.9"}


async def tell_address(scope: Any, receive: Any, send: Any) -> None:
    """Answer the address that the site takes the client's to be."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(scope["client"][0]).encode()})


def ask(monkeypatch, **headers: str) -> str:
    """Ask a server as the site starts it, over loopback."""
    monkeypatch.setattr(server, "APPLICATION", tell_address)

    async def go() -> str:
        with server.listen("127.0.0.1", 0) as listener:
            site = server.server()
            running = asyncio.create_task(site.serve(sockets=[listener]))
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.get(server.address(listener), headers=headers)
            site.should_exit = True
            await running
        return str(answer.json())

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("trusted", "address"),
    [([], "127.0.0.1"), (["10.0.0.0/8"], "127.0.0.1"), (["127.0.0.1"], "9.9.9.9"), (["127.0.0.0/8", "::1"], "9.9.9.9")],
)
def test_only_a_proxy_that_is_named_is_believed(monkeypatch, settings, trusted, address):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    configure(settings, TRUSTED_PROXIES=trusted)
    assert ask(monkeypatch, **FORGED) == address


def test_what_a_client_says_before_the_proxy_does_not_count(monkeypatch, settings):
    configure(settings, TRUSTED_PROXIES=["127.0.0.1"])
    assert ask(monkeypatch, **{"X-Forwarded-For": "1.1.1.1, 9.9.9.9"}) == "9.9.9.9"


@for_each("word", ["proxy", "10.0.0.1/8", "10.0.0.0/33", "*", "1.2.3"])
def test_what_is_no_address_is_refused_with_what_would_be_right(word):
    with pytest.raises(Unfit, match=r"no address and no network .*write 10\.1\.2\.3 or 10\.1\.0\.0/16"):
        Networks().parse("SIGNALBOX_TRUSTED_PROXIES", f"10.1.1.1,{word}")
