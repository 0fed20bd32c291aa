"""Texts that want to be more than texts, and a world in which every place that takes one holds them."""

from __future__ import annotations

import time
from typing import Any

from machines.audit.entries import record
from machines.engine import Engine, SignalboxError, WorkerInfo
from machines.instances.bulks import Bulk, Order
from machines.models import AlarmRoute, Delivery, Webhook

# Each element or attribute that such a text brings is called `zq…`, or sets window.zq: nothing of ours is.
TEXTS = [
    "<script>window.zq=1</script>",
    "\"><zq-img src=x onerror=window.zq=2>",
    "'-(window.zq=3)-'",
    "</title></textarea></script><svg onload=window.zq=4><zq-b>",
    "javascript:window.zq=5",
    "{{ 1330|add:7 }}{% now 'Y' %}${1330+7}<%= 1330+7 %>#{1330+7}",
    "\u202egnp.exe\u2066\u200b\u200d\ufeff",
    "=HYPERLINK(\"http://zq\")",
    "+1+1", "-2+3", "@SUM(1)", "=cmd|'/C calc'!A0",
    "../../../etc/passwd", "%2e%2e%2fetc%2fpasswd%00",
    "\\N\\G\\L\" HREF=\"javascript:window.zq=6\" URL=\"//zq",
    "]]><zq-cdata/><!--", "&lt;zq-i&gt;&#60;zq-b&#62;",
    "<zq-" + "x" * 80, "'; DROP TABLE auth_user; --", "-->", "\U0001f600",
    "1' OR '1'='1' UNION SELECT password FROM auth_user --", "%' ESCAPE '\\", "1); DELETE FROM machines_machine;--",
    "]]..redis.call('FLUSHALL')..[[", "'..redis.call('KEYS','*')..'", "door:0}:i:*",
    "zq\"} 1 # {zq=\"1", "a\"];zq[label=\"b\"];\"c", "a\\\" -> zq; \"", "<<TABLE><TR><TD>zq</TD></TR></TABLE>>",
    "</script><!--<script>window.zq=7</script>", "\u2028window.zq=8\u2029", "data:text/html,<zq-d>",
    "{{constructor.constructor('window.zq=9')()}}", "${jndi:ldap://zq/a}", "%s%n{0.__class__.__mro__}",
    "$(touch zq)`touch zq`|touch zq", "*)(uid=*))(|(uid=*", "<?xml version=\"1.0\"?><!DOCTYPE zq SYSTEM \"http://zq\">",
    '{"$ref": "#/zq", "__proto__": {"zq": 1}}', "http://127.0.0.1:6379/", "\u212a\u017f\ufb01\u0130i\u0307",
    "<zq\u00adx>",
]  # fmt: skip
# What many places refuse, and none may choke on.
CRUDE = [
    "a\r\nSet-Cookie: zq=1", "nul\0", "half \ud800", "long " + "<zq>" * 2_000, "", " ", "\t=1+1", "\x1b[31mzq",
    "a\r\n\r\n<zq-h>", "\r\n*1\r\n$8\r\nFLUSHALL\r\n", "a\n2026-01-01 00:00:00 ERROR zq: forged", "a\x85zq\x9b31m",
    "a\"} 1\nzq_total{a=\"b", "\x0b\x0c\x1c\x1d", "9" * 400, "-1", "1e999", "NaN",
]  # fmt: skip
MACHINE, QUEUE = "hostile", "todo"
INDEXED = "note"


def definition() -> dict[str, Any]:
    """A machine whose every text is one of them, as far as definitions may say so."""
    names = [text for text in TEXTS if text == text.strip() and len(text) <= 100]
    states: dict[str, Any] = {"Start": {"on": {"go": names[0]}, "description": TEXTS[3], "tags": [TEXTS[0][:60]]}}
    for name, following in zip(names, [*names[1:], "Busy"], strict=True):
        states[name] = {"description": name, "on": {"next<zq-e>": {"target": following, "description": TEXTS[1]}}}
    emits = {"emit": {"type": "<zq-emit>", "data": {"note": "note"}}}
    states["Busy"] = {
        "entry": [emits, {"log": "note"}],
        "invoke": {"id": "work", "src": "work", "queue": QUEUE, "input": {"note": "note"}, "onDone": "Start"},
    }
    return {
        "id": MACHINE,
        "description": TEXTS[3],
        "initial": "Start",
        "index": [INDEXED],
        "context": {
            "type": "object",
            "properties": {
                "note": {"type": "string", "default": "", "description": TEXTS[1]},
                "any": {"type": "object", "default": {}, "description": TEXTS[0]},
            },
        },
        "events": {
            "go": {
                "description": TEXTS[0],
                "payload": {"x": {"type": "string", "description": TEXTS[1], "enum": TEXTS[:6]}},
            }
        },
        "states": states,
    }


def furnish(engine: Engine) -> list[str]:
    """The world; the ids of its instances."""
    engine.publish(definition())
    ids = [made for text in TEXTS if (made := _create(engine, text))]
    for id, text in zip(ids, TEXTS, strict=False):
        _quietly(engine.fire, MACHINE, id, "go", {"x": TEXTS[0]}, actor=text, reason=text, key=text)
        _quietly(engine.suspend, MACHINE, id, actor=text, reason=text)
    engine.force(MACHINE, ids[0], "Start", actor="sue", reason="first")
    _work(engine, ids[1])
    engine.pause(MACHINE, QUEUE, actor=TEXTS[0], reason=TEXTS[1])
    _people(engine, ids)
    return ids


def _create(engine: Engine, text: str) -> str:
    data = {"note": text, "any": {text: [text, {"<zq-k>": text}]}}
    made = _quietly(engine.create, MACHINE, text, data, actor=text, reason=text)
    return made.id if made else ""


def _quietly(call: Any, *args: Any, **named: Any) -> Any:
    """What it gives; None where the engine refuses it in words, and any other error goes on."""
    try:
        return call(*args, **named)
    except SignalboxError as error:
        if error.code.startswith("SB4"):
            return None
        raise


def _work(engine: Engine, id: str) -> None:
    """A dead job with a hostile past, and one that runs and notes."""
    for instance in (id, engine.create(MACHINE, "worker's").id):
        if instance == id:
            engine.resume(MACHINE, id, actor="sue", reason="to work")
        engine.force(MACHINE, instance, "Busy", actor="sue", reason=TEXTS[0])
    dead, running = engine.take(MACHINE, QUEUE, TEXTS[1][:60], count=2)
    engine.fail(dead, TEXTS[0] * 20, kind="Zq", trace="\n".join(TEXTS), retry=False)
    engine.progress(running, 1, 2, note=TEXTS[3])


def _people(engine: Engine, ids: list[str]) -> None:
    now = int(time.time() * 1000)
    for number, text in enumerate(TEXTS[:5]):
        worker = WorkerInfo(
            f"{number}{text}"[:90],
            text[:60],
            1,
            [f"{MACHINE}/{QUEUE}"],
            in_hand=0,
            started=now,
            seen=now,
            version=text[:20],
            note=text,
        )
        _quietly(engine.beat, worker)
    for text in [*TEXTS, *CRUDE[:4]]:
        record(
            text[:150], "force", machine=MACHINE, instance=text[:200], queue=text[:60], target=text, reason=text,
            outcome="refused", source=text[:80], detail={"error": text, "<zq-k>": text, "code": text[:20]},
        )  # fmt: skip
    Bulk.start(engine, Order(MACHINE, "suspend", TEXTS[0], TEXTS[1], {"state": "Start"}), id="3f2a")
    hook = Webhook.objects.create(
        pk=7, name=TEXTS[0], url="https://zq.example/<zq-u>", types=[TEXTS[1]], secret="whsec_YQ==", active=False,
        stopped=TEXTS[3],
    )  # fmt: skip
    receiver = Webhook.objects.create(
        pk=8, name=TEXTS[2], url="https://zq.example/<zq-u>", types=[], secret="whsec_YQ==", for_alarms=True,
        active=False, stopped=TEXTS[3],
    )  # fmt: skip
    AlarmRoute.objects.create(pk=7, receiver=receiver, machines=[TEXTS[0]], hours=TEXTS[1], link=TEXTS[3])
    at = "2026-11-21T08:00:00+00:00"
    Delivery.objects.create(
        pk=7, webhook=hook, message="m", key="k", type=TEXTS[1], machine=MACHINE, instance=ids[0], body=TEXTS[0],
        attempts=[{"at": at, "ms": 1, "status": 500, "error": text, "said": text} for text in TEXTS], state="dead",
    )  # fmt: skip
