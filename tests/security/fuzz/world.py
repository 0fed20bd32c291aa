"""What raw calls are made on: two machines with instances and jobs in every situation, and one of each pattern.

``CALLS`` has, for each function of the library, a call that does what it is there for: what is sent is made from these.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import redis

from machines.engine import Engine
from machines.engine.definitions import compile_definition, compute_digest
from tests.engine.builders import NOW, fields

AT = str(NOW)
FLAT, CHART = "box", "yard"
LETTER = '{"event":"tell","data":"{\\"t\\":\\"x\\"}","from":{"machine":"yard","id":"p"}}'
PERMIT = '{"groups":["crew"]}'
MIGRATION = '{"format":1,"id":"0123456789ab","to":"2:ab","unmapped":"refuse","from":{"1:ab":{"states":{}}}}'
SECRET, HANDLE, LOCK = "ab" * 32, "0123456789abcdef", "12" * 16
STATES = {
    "Idle": {
        "on": {
            "go": {
                "target": "Busy",
                "actions": [
                    {"set": {"n": "n + 1", "t": "event.t or t"}}, {"append": {"l": "n"}}, {"emit": {"type": "went"}},
                    {"enqueue": {"src": "mail", "queue": "post", "unique": "instance.id"}}, {"log": "n"},
                ],
            },
            "tell": {"actions": {"set": {"t": "event.t", "x": "event.x"}}},
            "never": {"target": "End", "guard": "n > 10 ** 6 and t == 'x'"},
        },
    },
    "Busy": {
        "invoke": {"src": "work", "retry": {"attempts": 2, "jitter": False}, "onDone": "Idle", "onError": "Failed"},
        "on": {"stop": "Idle", "end": "End"},
    },
    "Failed": {"on": {"go": "Idle"}},
    "End": {"type": "final"},
}  # fmt: skip
BOX: dict[str, Any] = {
    "id": FLAT, "initial": "Idle", "history": 20, "states": STATES, "accepts": {"from": [CHART]},
    "index": ["t", "n", "instance.id", "instance.actor", "instance.version"],
    "queues": {"work": {"concurrency": 50, "rate": "1000/s"}},
    "context": fields(n={"type": "integer", "default": 0}, t={"type": "string", "default": "t0"},
                      l={"type": "array", "default": []}, x={}),
    "events": {"go": {"payload": {"t": {"type": "string"}}}},
}  # fmt: skip
YARD: dict[str, Any] = {
    "id": CHART, "initial": "on", "context": {"n": 0},
    "states": {
        "on": {
            "type": "parallel",
            "on": {"off": "off"},
            "states": {
                "left": {
                    "initial": "wait",
                    "states": {
                        "wait": {
                            "after": {"30s": "late"},
                            "on": {"go": {"target": "late", "actions": {"send": {
                                "event": "tell", "to": {"machine": FLAT, "id": "'a'"}, "data": {"t": "'sent'"}}}}},
                        },
                        "late": {"invoke": {"src": "haul", "id": "haul"}, "on": {"go": "wait"}},
                        "was": {"type": "history", "history": "deep"},
                    },
                },
                "right": {
                    "initial": "child",
                    "states": {
                        "child": {"invoke": {"src": f"machine:{FLAT}", "id": "kid", "onDone": "rest"},
                                  "on": {"go": {"actions": [
                                      {"set": {"n": "n + 1"}},
                                      {"send": {"event": "later", "delay": "10s", "id": "later"}}]}}},
                        "rest": {"on": {"go": "child"}},
                    },
                },
            },
        },
        "off": {"on": {"back": "on.left.was", "end": "over"}},
        "over": {"type": "final"},
    },
}  # fmt: skip

_COMPILED = compile_definition(BOX)
_DEF = f"1:{compute_digest({'program': _COMPILED.program, 'source': BOX})}"
#: the program of a plan for instances of the version that they have
PLAN = json.dumps({"format": 1, "id": "p", "to": _DEF, "unmapped": "refuse", "undo": 1000, "from": {_DEF: {
    "states": {"Idle": ["Idle"], "Busy": ["Busy"]}, "fields": {"n": "n"}, "data": []}}})  # fmt: skip
DRAFT = json.dumps(_COMPILED.program)

B, Y = "{box:0}", "{yard:0}"
#: function -> the root it is called with, and its words
CALLS: dict[str, tuple[str, list[str]]] = {
    "sb_admit": (B, ["admit", "work", AT, "g", "0-1", "1-n", "more"]),
    "sb_arrive": (B, ["", AT, "arrive", "a"]),
    "sb_batch": (B, [AT, "b", "k", "1", "0", "{}", "src", "work", "", "5", "0", "", "3", "1", "1", "0", "1", ""]),
    "sb_batch_look": (B, ["b", ""]),
    "sb_board": ("board:{p}", ["day", "0", "2", AT, "add", "100", "ann", "5", "bob", "3"]),
    "sb_buffer_add": (
        "buffer:{p:0}",
        [AT, "100", "e", "1", "mark", "", "1", "page", "1", "1", "hits", "2", "f", '"x"'],
    ),
    "sb_buffer_claim": ("buffer:{p:0}", [AT, "10", "1000", "0", "nonce"]),
    "sb_buffer_look": ("buffer:{p:0}", [AT]),
    "sb_buffer_settle": ("buffer:{p:0}", ["settle", f"{NOW}-2", "1-nonce", AT]),
    "sb_bus_ack": ("stream:{p}", ["ack", "g", "", "100", "1-1"]),
    "sb_bus_append": ("stream:{p}", ["100", '{"a":1}']),
    "sb_bus_group": ("stream:{p}", ["make", "g", "0", ""]),
    "sb_bus_look": ("stream:{p}", ["lag"]),
    "sb_bus_read": ("stream:{p}", ["g", "r", "5", "1000", "", "3", ""]),
    "sb_classify": (B, ["walk", MIGRATION, "run", "", ""]),
    "sb_complete": (B, [AT, "", "0-1", "1-n", '{"ok":1}']),
    "sb_create": (B, ["new", '{"t":"born"}', "", "key", "ann", "why", AT]),
    "sb_delete": (B, ["a", "", "ann", "why", "", PERMIT]),
    "sb_deliver": (B, [Y, "1-1", AT, "", "1-1", "event", "a", LETTER]),
    "sb_depart": (B, ["1", "", "a", "0" * 40]),
    "sb_distinct": ("distinct:{p}", ["part", "100", "30", AT, "ann", "bob"]),
    "sb_distinct_count": ("distinct:{p}", ["day", "3", AT, "part"]),
    "sb_edit": (B, ["a", '{"n":5}', "", "ann", "why", AT, "key", "", PERMIT]),
    "sb_enqueue": (B, [AT, "src", "work", '{"a":1}', "5", "0", "u", "3", "1000", "30000", "0", "1", ""]),
    "sb_explain": (B, ["a", "go", "{}", AT]),
    "sb_export": (B, ["instances", "a", "b", "new"]),
    "sb_extend": (B, [AT, "5000", "0-1", "1-n"]),
    "sb_fail": (B, ["0-1", "1-n", "error", "Kind", "trace", "1", AT, "", "Other"]),
    "sb_find": (B, ["Idle", "10", "", "", "", "", '{"where":[{"field":"n","ge":0}]}', "20"]),
    "sb_fire": (B, ["a", "go", '{"t":"x"}', "", "key", "ann", "why", AT, PERMIT]),
    "sb_force": (B, ["a", "Busy", '{"n":5}', "", "ann", "why", AT, "key", "", PERMIT]),
    "sb_get": (B, ["a"]),
    "sb_grow": (B, ["1", "8", "1"]),
    "sb_history": (B, ["a", "-5", "-1"]),
    "sb_ids": ("ids:{p}", ["claim", "token", "", "1000", AT]),
    "sb_ids_block": ("block:{p}", ["10", "1"]),
    "sb_import": (B, ["transfer", AT, '{"id":"a"}']),
    "sb_jobs": (B, ["work", "ready", "10", "0"]),
    "sb_live": (B, [AT]),
    "sb_lock": ("lock:{p}", [LOCK, "1000", "me", AT]),
    "sb_lock_peek": ("lock:{p}", [AT]),
    "sb_lock_release": ("lock:{p}", [LOCK, AT]),
    "sb_lock_renew": ("lock:{p}", [LOCK, "1000", AT]),
    "sb_lookup": (B, ['{"field":"t","prefix":"t"}', "10", "", "", '{"states":["Idle"]}', "20"]),
    "sb_log_steps": (B, ["1000"]),
    "sb_mend": (B, [AT, "work", "ready", "0"]),
    "sb_migrate": (B, [PLAN, "move", "ann", "why", AT, "a", "b"]),
    "sb_outbox": (Y, ["10", ""]),
    "sb_outcomes": (B, ["read", ":k:1:a:key"]),
    "sb_permitted": ("", ["f1:x"]),
    "sb_pin": (B, ["a", "1", "", "ann", "why", AT, "key", "", PERMIT]),
    "sb_progress": (B, ["0-1", "1-n", "1", "2", "note", AT]),
    "sb_publish": (B, ["abc123", "", "", "00", "1", ""]),  # program and source are those of the world
    "sb_purge": (B, ["work", "dead", "10", "ann", "why", AT, "5", PERMIT, AT, "dead"]),
    "sb_queue": (B, ["work", "limit", "ann", "why", AT, "5", "10/1000"]),
    "sb_ranks": ("board:{p}", ["day", "0", "2", AT, "top", "10", "1"]),
    "sb_redrive": (B, ["work", "dead", "10", "0", "ann", "why", AT, "5", PERMIT, "force", "dead 1 work"]),
    "sb_reindex": (B, ["", "a", "b"]),
    "sb_replay": (
        B,
        [
            DRAFT,
            '{"1":{"def":"","states":{"Idle":["Idle"]},"events":{},"transitions":{},"fields":{"n":true},"timers":{}}}',
            "a",
            '{"version":"1"}',
            f'[[1,{NOW},"(create)","Idle","",0,0,0,{{"n":1}}],[2,{NOW},"go","Busy","t1","ann",0,{{"t":"x"}},0]]',
        ],
    ),
    "sb_reschedule": (B, ["0-1", AT, "ready 1 work", "mail", "ann", "why", AT, PERMIT]),
    "sb_reset": (B, ["b", "", "", "ann", "why", AT, "key", "", PERMIT]),
    "sb_resume": (B, ["f", "", "ann", "why", AT, "fire", "", PERMIT]),
    "sb_retire": (B, ["ann", "why", "a", "1", AT, "unpacked"]),
    "sb_rollout": (B, ["start", "1", "500", '{"guard":{}}', "", "ann", "why", AT]),
    "sb_rollout_copy": (B, ["1", "1:abc", "", "", ""]),
    "sb_session_create": ("session:{p:0}", [HANDLE[::-1], SECRET, "ann", "{}", "9000", "1", "0", "5", "1", AT]),
    "sb_session_get": ("session:{p:0}", [HANDLE, SECRET, AT]),
    "sb_session_list": ("session:{p:0}", ["ann", AT]),
    "sb_session_put": ("session:{p:0}", [HANDLE, SECRET, '{"a":1}', "1", AT]),
    "sb_session_revoke": ("session:{p:0}", ["one", HANDLE, SECRET, "", AT]),
    "sb_session_rotate": ("session:{p:0}", [HANDLE, SECRET, "", "cd" * 32, "1000", AT]),
    "sb_settle": (Y, [AT, "1-1", "done", ""]),
    "sb_simulate": (
        B,
        [
            DRAFT,
            json.dumps(
                {
                    "id": "a",
                    "now": NOW,
                    "data": {"n": 1},
                    "inputs": [{"event": "go", "payload": {"t": "x"}}, {"advance": "next"}, {"job": "work", "done": 1}],
                }
            ),
        ],
    ),
    "sb_stage": (B, ["1", "z", '{"id":"z"}']),
    "sb_stats": (B, []),
    "sb_survey": (B, [B, ""]),
    "sb_suspend": (B, ["a", "", "ann", "why", AT, "", PERMIT]),
    "sb_swap": ("other", ["string", "string", "1", "x", "y"]),
    "sb_swap_record": ("record:{p}", ["put", "k", "", '{"a":1}', "1000", AT]),
    "sb_sweep": (B, [AT, "100"]),
    "sb_take": (B, ["work", "w", "5", "", AT, "n"]),
    "sb_tally": (B, ['{"states":["Idle","Busy"],"where":[{"field":"n","ge":0}]}', "", "100"]),
    "sb_throttle": ("pace:{p:k}", ["pace", "5", "1000", "1", AT]),
    "sb_tick": (B, [AT, "100", "look"]),
    "sb_trim": (B, [AT, "100"]),
    "sb_unblock": (B, ["b", "skip", "Busy", '{"a":1}', "", "ann", "why", AT, "key", "", PERMIT]),
    "sb_versions": (B, ["10", AT]),
    "sb_waits": (B, ["b"]),
    "sb_wakeups": ("", [B, "1000", Y]),
    "sb_weigh": (B, ['[{"field":"n","ge":0},{"field":"t","eq":"t0"}]', "", "Idle"]),
    "sm_create": ("sm", []),
    "sm_get": ("sm", ["REASON"]),
    "sm_mutate": ("sm", ["open", "why", "FORCE"]),
    "sm_reset": ("sm", []),
    "sm_set": ("sm", ['{"current":"shut","initial":"shut","reason":"","map":{"shut":["open"],"open":["shut"]}}', ""]),
    "sm_state": ("sm", ["LIST"]),
    "sm_template": ("", []),
}
#: what stands of the patterns, made by these calls in this order
PATTERNS = [
    "sb_board", "sb_buffer_add", "sb_buffer_claim", "sb_buffer_add", "sb_bus_append", "sb_bus_group",
    "sb_bus_append", "sb_bus_read", "sb_distinct", "sb_ids", "sb_ids_block", "sb_lock", "sb_session_create",
    "sb_swap_record", "sb_throttle", "sm_set",
]  # fmt: skip

Dumped = dict[bytes, tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class World:
    """``keys``: what every key below the prefix holds, as DUMP gives it, and its PTTL. ``program``, ``source``: of the
    flat machine, as they were published."""

    prefix: str
    keys: Dumped
    program: str
    source: str


def make(engine: Engine) -> World:
    """Everything, on the engine's keys; and what it all is, to be put elsewhere."""
    prefix, client = engine.keys.prefix, engine.client
    _machines(engine)
    client.set(f"{prefix}other", "x")
    for name in PATTERNS:
        root, words = CALLS[name]
        if name == "sb_session_create":
            words = [HANDLE, *words[1:]]
        if name == "sb_buffer_add" and client.exists(f"{prefix}buffer:{{p:0}}:marks"):
            words = [*words[:3], "0", *words[7:]]
        client.fcall(name, 1, prefix + root, *words)
    stored = client.hmget(engine.keys.partition(FLAT).definition(1), ["program", "source"])
    return World(prefix, {}, *stored)


def _machines(engine: Engine) -> None:
    for definition in (BOX, YARD):
        engine.publish(definition)
    for id in "abcdefz":
        engine.create(FLAT, id, {"t": f"t{id}"}, now=NOW)
    for id in "bdecz":
        engine.fire(FLAT, id, "go", {}, actor="ann", now=NOW)
        if id == "d":
            _ended(engine, id, retry=True)
        elif id == "e":
            _ended(engine, id, retry=False)
    engine.fire(FLAT, "z", "end", {}, now=NOW)
    engine.suspend(FLAT, "f", actor="ann", reason="why", now=NOW)
    for id in "pq":
        engine.create(CHART, id, now=NOW)
    engine.client.fcall("sb_fire", 1, engine.keys.partition(CHART).root, "p", "go", "", "", "", "", "", str(NOW))
    engine.suspend(CHART, "q", actor="ann", reason="why", now=NOW)
    engine.client.fcall("sb_take", 1, engine.keys.partition(FLAT).root, "work", "w", "1", "", str(NOW), "n")


def _ended(engine: Engine, id: str, *, retry: bool) -> None:
    """The instance's job was taken and failed."""
    for job in engine.take(FLAT, "work", "w", count=9, now=NOW):
        if job.instance == id:
            engine.fail(job, "no", retry=retry, now=NOW)
        else:
            engine.hand_back(job, now=NOW)


def dumped(client: redis.Redis, prefix: str) -> Dumped:
    """Every key below the prefix, which is left out of its name."""
    names = [name for name in client.scan_iter(match=f"{prefix}*", count=1000) if not name.endswith(b":pulse")]
    pipeline = client.pipeline(transaction=False)
    for name in names:
        pipeline.dump(name)
        pipeline.pttl(name)
    found = pipeline.execute()
    start = len(prefix)
    return {name[start:]: (found[i * 2], max(0, found[i * 2 + 1])) for i, name in enumerate(names) if found[i * 2]}


def restore(client: redis.Redis, prefix: str, keys: Dumped) -> None:
    """The same below another prefix."""
    pipeline = client.pipeline(transaction=False)
    for name, (content, ttl) in keys.items():
        pipeline.restore(prefix.encode() + name, ttl, content)
    pipeline.execute()
