"""Machines that send to each other, one of which does not say who may."""

from __future__ import annotations

import json
from typing import Any

from machines.engine import Engine
from tests.engine.builders import machine, publish
from tests.engine.messages.mailing import noter, teller

REFUSED = "the machine 'noter' accepts nothing from 'teller': its definition names under \"accepts\" who may send to it"


def closed(name: str = "noter", senders: list[str] | None = None, **on: Any) -> dict[str, Any]:
    """A noter that accepts these and no others; None: it does not say."""
    definition = {key: value for key, value in noter(name, **on).items() if key != "accepts"}
    return definition if senders is None else definition | {"accepts": {"from": senders}}


def pair(engine: Engine, senders: list[str] | None = None) -> Engine:
    """A teller ``t`` and a noter ``x``."""
    publish(engine, closed(senders=senders), "x")
    publish(engine, teller(), "t")
    return engine


def tell(engine: Engine, id: str = "x", n: int = 7, name: str = "teller") -> None:
    engine.fire(name, "t", "tell", {"id": id, "n": n})


def undelivered(engine: Engine, name: str = "teller") -> list[dict[str, Any]]:
    entries = engine.client.xrange(engine.keys.partition(name).log)
    return [json.loads(entry["data"]) for _, entry in entries if entry["name"] == "undelivered"]


def inviter(src: Any, **top: Any) -> dict[str, Any]:
    """``go`` invokes; it keeps what it is told."""
    failed = {"target": "Failed", "actions": {"set": {"why": "event.message"}}}
    states = {
        "A": {"on": {"go": "B"}},
        "B": {"invoke": {"src": src, "id": "k", "onError": failed}},
        "Failed": {},
    }
    return machine("inviter", states, context={"why": "", "which": "noter"}, **top)
