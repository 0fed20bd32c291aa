"""The FastAPI application of ``examples/fastapi``, called over ASGI."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

APP = Path(__file__).resolve().parents[2] / "examples" / "fastapi" / "app.py"


@pytest.fixture
async def shop(redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("SIGNALBOX_PREFIX", prefix)
    spec = importlib.util.spec_from_file_location("fastapi_example", APP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    transport = httpx.ASGITransport(app=module.app)
    async with module.lifespan(module.app), httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        yield client


async def test_an_order_is_created_paid_and_shipped(shop):
    made = await shop.post("/orders", json={"total": 12})
    assert made.status_code == 201
    order = made.json()
    assert (order["state"], order["revision"]) == ("Open", 1)
    url = f"/orders/{order['id']}"
    paid = await shop.post(f"{url}/events/pay", json={"amount": 12, "by": "card"}, headers={"If-Match": "1"})
    assert paid.json()["state"] == "Paid"
    await shop.post(f"{url}/events/ship")
    read = (await shop.get(url)).json()
    assert (read["state"], read["done"], read["data"]) == ("Shipped", True, {"total": 12, "paid": 12, "by": "card"})


async def test_an_explanation_says_why_an_event_would_be_refused(shop):
    order = (await shop.post("/orders", json={"total": 12})).json()
    answer = await shop.post(f"/orders/{order['id']}/explain/pay", json={"amount": 5, "by": "cash"})
    assert answer.status_code == 200
    assert not answer.json()["taken"]
    assert "event.amount >= total" in answer.text


@pytest.mark.parametrize(
    ("address", "body", "headers", "status", "title"),
    [
        ("/orders/{id}/events/pay", {"amount": 5, "by": "cash"}, {}, 422, "Refused"),
        ("/orders/{id}/events/pay", {"amount": 12, "by": "card"}, {"If-Match": "7"}, 409, "Conflict"),
        ("/orders/{id}/events/fly", None, {}, 422, "UnknownEvent"),
        ("/orders/nobody/events/pay", {"amount": 12, "by": "card"}, {}, 404, "UnknownInstance"),
        ("/orders", {"totel": 12}, {}, 422, "BadPayload"),
    ],
)
async def test_errors_are_problem_documents(shop, address, body, headers, status, title):
    order = (await shop.post("/orders", json={"total": 12})).json()
    answer = await shop.post(address.format(id=order["id"]), json=body, headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["title"] == title
    assert answer.json()["code"].startswith("SB")


async def test_the_same_key_at_once_is_one_order_and_one_payment(shop):
    header = {"Idempotency-Key": "cart-7"}
    made = await asyncio.gather(*(shop.post("/orders", json={"total": 12}, headers=header) for _ in range(20)))
    assert len({answer.json()["id"] for answer in made if answer.status_code == 201}) == 1
    url = f"/orders/{made[0].json()['id']}/events/pay"
    pay = {"amount": 12, "by": "card"}
    answers = await asyncio.gather(*(shop.post(url, json=pay, headers={"Idempotency-Key": "p"}) for _ in range(20)))
    assert {answer.json()["revision"] for answer in answers} == {2}
