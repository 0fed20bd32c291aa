"""JSON that is meant for instances: through the functions, the engine and the API, to events, births, ends of jobs.

What Python's reader makes of a text says what has to come of it: taken and kept as it is, or refused and nothing
changed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from machines.engine import Engine, SignalboxError
from machines.engine.errors import EngineFault
from tests.engine.builders import NOW, fields, machine

from . import words
from .cases import Case, deep, expand, joined, many, times
from .kinds import Kind
from .results import Result
from .stage import Stage

MACHINE, ID = "taker", "x"
TYPES = {"t": "string", "i": "integer", "n": "number", "b": "boolean", "l": "array", "o": "object"}
DEFINITION = machine(
    MACHINE,
    {
        "Idle": {
            "on": {
                "any": {"actions": {"set": {"x": "event"}}},
                "typed": {"actions": [{"set": {name: f"event.{name}"}} for name in TYPES]},
                "work": "Busy",
            }
        },
        "Busy": {
            "invoke": {
                "src": "w",
                "id": "w",
                "retry": {"attempts": 2, "backoff": "1ms"},
                "onDone": {"target": "Idle", "actions": {"set": {"x": "event.result"}}},
                "onError": {"target": "Idle", "actions": {"set": {"x": "event.error"}}},
            }
        },
    },
    context=fields(x={}, **{name: {"type": [kind, "null"]} for name, kind in TYPES.items()}),
    events={"typed": {"payload": {name: {"type": kind} for name, kind in TYPES.items()}}},
)
DOORS = ("fcall", "fcall", "engine", "api")
WAYS = ("any", "any", "typed", "create", "edit", "complete", "fail", "explain")
CERTAIN = 20_000  # bytes: what is shorter is below every limit, however it is written
DEPTH = 30  # levels likewise: the payload itself may stand inside a field

Random = random.Random


class Payloads(Kind):
    name = "payloads"

    def draw(self, rng: Random) -> Case:
        """``text``: bytes, each a character as in latin-1."""
        door, way = rng.choice(DOORS), rng.choice(WAYS)
        case: Case = {"door": door, "way": way}
        if door == "engine" and rng.random() < 0.5:
            case["python"] = _odd(rng)
        else:
            case["text"] = _text(rng)
        return case

    def play(self, stage: Stage, case: Case) -> Result:
        result, engine = Result(), stage.fresh()
        engine.publish(DEFINITION)
        if case["way"] != "create":
            engine.create(MACHINE, ID, now=NOW)
        if case["way"] in ("complete", "fail"):
            engine.fire(MACHINE, ID, "work", now=NOW)
        Play(stage, engine, case, result).run()
        return result


class Play:
    """One input on its way in."""

    def __init__(self, stage: Stage, engine: Engine, case: Case, result: Result) -> None:
        self.stage, self.engine, self.result = stage, engine, result
        self.way = case["way"]
        self.door = case["door"] if case["door"] != "api" or stage.site is not None else "engine"
        self.python = MAKERS[case["python"][0]](*case["python"][1:]) if "python" in case else None
        self.body = str(expand(case.get("text", ""))).encode("latin-1")
        self.key = engine.keys.partition(MACHINE).instance(ID)
        self.job = engine.take(MACHINE, "w", "me", now=NOW)[0] if self.way in ("complete", "fail") else None

    def run(self) -> None:
        before = self.stage.raw.hgetall(self.key)
        taken = {"fcall": self._fcall, "engine": self._engine, "api": self._api}[self.door]()
        after = self.stage.raw.hgetall(self.key)
        if not taken and after != before:
            self.result.refuse(f"{self.where} was refused and changed the instance")
        if self.way == "explain" and after != before:
            self.result.refuse(f"{self.where} changed the instance")
        self._compare(taken)

    @property
    def where(self) -> str:
        return f"{self.door} {self.way}"

    # Ways in

    def _fcall(self) -> bool:
        root, token = self.engine.keys.partition(MACHINE).root.encode(), self.job.token if self.job else ""
        name, words = {
            "any": ("sb_fire", [ID, "any", self.body, "", "", "", "", NOW]),
            "typed": ("sb_fire", [ID, "typed", self.body, "", "", "", "", NOW]),
            "create": ("sb_create", [ID, self.body, "", "", "", "", NOW]),
            "edit": ("sb_edit", [ID, self.body, "", "ann", "why", NOW, "", ""]),
            "explain": ("sb_explain", [ID, "any", self.body, NOW]),
            "complete": ("sb_complete", [NOW, "", "0-1", token, self.body]),
            "fail": ("sb_fail", ["0-1", token, self.body, self.body[:50], self.body, "0", NOW, ""]),
        }[self.way]
        reply = self.stage.raw.execute_command("FCALL", name, 1, root, *words)
        if self.way == "complete" and reply[0] == b"OK":
            reply = reply[1]
        text = b" ".join(part for part in reply if isinstance(part, bytes)).decode(errors="replace")
        self.result.record(self.where, reply[0].decode(), text)
        if reply[0] == b"FAULT":
            self.result.refuse(f"{self.where} answers {text[:300]}")
        return bool(reply[0] == b"OK")

    def _engine(self) -> bool:
        given = self.python
        if given is None:
            try:
                given = json.loads(self.body)
            except (ValueError, RecursionError):
                self.result.record(self.where, "no JSON for Python either")
                return False
        engine, job = self.engine, self.job
        calls: dict[str, Callable[[], Any]] = {
            "any": lambda: engine.fire(MACHINE, ID, "any", given, now=NOW),
            "typed": lambda: engine.fire(MACHINE, ID, "typed", given, now=NOW),
            "create": lambda: engine.create(MACHINE, ID, given, now=NOW),
            "edit": lambda: engine.edit(MACHINE, ID, given, actor="ann", reason="why", now=NOW),
            "explain": lambda: engine.explain(MACHINE, ID, "any", given, now=NOW),
            "complete": lambda: engine.complete(job, given, now=NOW),
            "fail": lambda: engine.fail(job, self.body.decode("latin-1"), retry=False, now=NOW),
        }
        try:
            calls[self.way]()
        except EngineFault as error:
            self.result.refuse(f"{self.where}: {error}"[:400])
        except SignalboxError as error:
            self.result.record(self.where, error.code, str(error))
        else:
            self.result.record(self.where, "accepted")
            return True
        return False

    def _api(self) -> bool:
        assert self.stage.site is not None
        here = f"/machines/{MACHINE}/instances"
        around = {
            "create": (here, b'{"id": "x", "data": %s}'),
            "edit": (f"{here}/{ID}/repairs/edit", b'{"changes": %s, "reason": "why"}'),
            "explain": (f"{here}/{ID}/explanations", b'{"event": "any", "payload": %s}'),
            "typed": (f"{here}/{ID}/events", b'{"event": "typed", "payload": %s}'),
            "fail": (f"{here}/{ID}/events", b"%s"),
        }
        path, body = around.get(self.way, (f"{here}/{ID}/events", b'{"event": "any", "payload": %s}'))
        answer = self.stage.site.post(path, body.replace(b"%s", self.body))
        text = answer.content.decode(errors="replace")
        self.result.record(self.where, str(answer.status_code), text if answer.status_code >= 400 else "")
        if answer.status_code >= 500:
            self.result.refuse(f"{self.where} answers {answer.status_code}: {text[:300]}")
        return bool(answer.status_code < 300)

    # What has to come of it

    def _compare(self, taken: bool) -> None:
        """What was taken is kept as it was sent; what is JSON is taken, what is none is not."""
        if taken and self.way != "explain":
            self.engine.get(MACHINE, ID)  # it can be read
            self.engine.history(MACHINE, ID)
        if self.way not in ("any", "complete") or (self.door == "engine" and self.python is not None):
            return
        if self.door == "api" and self.way == "complete":
            return
        sound, given = words.reads(self.body)
        empty = (self.way == "complete" and not self.body) or (self.way == "any" and not self.body)
        wanted = (sound and (self.way == "complete" or isinstance(given, dict))) or (empty and self.door == "fcall")
        if taken and not wanted and self.door == "fcall":
            self.result.refuse(f"{self.where} took what is no JSON")
        if wanted and not taken and len(self.body) < CERTAIN and words.depth(given) < DEPTH:
            self.result.refuse(f"{self.where} did not take sound JSON")
        if taken and wanted and not empty:
            kept = self.engine.get(MACHINE, ID).data.get("x")
            if kept != given:
                self.result.refuse(f"{self.where} kept {str(kept)[:200]} of {str(given)[:200]}")


def _text(rng: Random) -> Any:
    roll = rng.random()
    if roll < 0.12:
        return rng.choice(LARGE)
    if roll < 0.2:
        return words.word(rng)
    if roll < 0.5:
        made = json.dumps({"x": words.value(rng), "y": words.value(rng)}, ensure_ascii=rng.random() < 0.5)
    elif roll < 0.65:
        made = "{" + ",".join(f'"{name}":{words.json_text(rng, 1)}' for name in rng.sample(sorted(TYPES), 3)) + "}"
    else:
        made = words.json_text(rng, rng.choice([1, 2, 4]))
    raw = bytearray(made.encode())
    if rng.random() < 0.15 and raw:
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return raw.decode("latin-1")


def _within(before: str, part: str, count: int, after: str) -> Any:
    return joined(before, times(part, count), after)


LARGE: list[Any] = [
    times("[", 40_000), times('{"a":', 40_000), _within("", "[", 31, "]" * 31),
    _within("", '{"a":', 32, "1" + "}" * 32), _within("", '{"a":', 33, "1" + "}" * 33),
    times(" ", 66_000), times("1", 65_000), times("9", 30_000),
    times('"\\', 30_000), _within('{"x":"', "\\u00e9", 10_000, '"}'), _within('{"x":"', "a", 65_000, '"}'),
    _within('{"x":"', "a", 65_600, '"}'), _within('{"x":[', "0,", 30_000, "0]}"),
    _within('{"x":[', "[],", 20_000, "0]}"),
    _within('{"x":', "-", 30_000, "1}"), _within('{"x":1e', "0", 30_000, "5}"), _within('{"x":0.', "1", 30_000, "}"),
    _within('{"x":"', "\\\\", 30_000, '"}'), _within('{"x":{', '"k":1,', 100, '"k":1}}'),
    _within('{"x":[', "1.1,", 15_000, "0]}"), _within('{"x":[', '{"a":1},', 7_000, "0]}"),
]  # fmt: skip


# What only a Python program can pass

MAKERS: dict[str, Callable[..., Any]] = {
    "nan": lambda: {"x": float("nan")}, "inf": lambda: {"x": float("-inf")}, "bytes": lambda: {"x": b"x"},
    "set": lambda: {"x": {1}}, "huge": lambda: {"x": 10**400}, "large": lambda: {"x": 2**53}, "key": lambda: {1: 2},
    "none": lambda: {None: 1}, "half": lambda: {"x": "\ud800"}, "half key": lambda: {"\udfff": 1},
    "nul": lambda: {"x": "\0"}, "tuple": lambda: {"x": (1, 2)}, "object": lambda: {"x": object()},
    "list": lambda: [1], "text": lambda: "x", "number": lambda: 7,
    "deep": lambda count: {"x": expand(deep(count, 1))}, "many": lambda count: expand(many("k", count, 1)),
    "itself": lambda: _itself(), "true": lambda: True, "long": lambda count: {"x": "é" * count},
    "mapping": lambda: MappingProxyType({"x": 1}), "bool key": lambda: {True: 1}, "minus zero": lambda: {"x": -0.0},
    "tiny": lambda: {"x": 5e-324},
}  # fmt: skip


def _odd(rng: Random) -> list[Any]:
    name = rng.choice(sorted(MAKERS))
    return [name, rng.choice([1, 31, 32, 33, 900, 5_000, 40_000])] if name in ("deep", "many", "long") else [name]


def _itself() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["x"] = loop
    return loop
