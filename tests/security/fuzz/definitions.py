"""Definitions that were sound once: checked, published, lived by; and the same as text in each format."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Any

from machines.engine import Engine
from machines.engine.definitions import check, compile, outline
from machines.engine.errors import DefinitionError
from machines.engine.limits import MAX_DEFINITION, check_external_event_name
from machines.formats import READERS, WRITERS, dump, load
from tests.engine.builders import NOW
from tests.engine.definitions.finding_codes import CODES

from . import mutations, trees
from .cases import Case, expand, times
from .kinds import Kind
from .results import Result
from .stage import Stage

ID = "x"
EVENTS, STATES = 6, 4  # of each definition so many are tried
LONGEST = 60.0  # seconds of this process that a check may take: what hangs
DAY = 86_400_000  # ms

Random = random.Random


class Definitions(Kind):
    name = "definitions"

    def draw(self, rng: Random) -> Case:
        if rng.random() < 0.25:
            return _text(rng)
        if rng.random() < 0.01:
            return {
                "large": [
                    rng.choice([2, 50, 300, 500]),
                    rng.choice([1, 3, 20]),
                    rng.choice([1, 10]),
                    trees.expression(rng),
                ]
            }
        return {"definition": mutations.mutated(rng)}

    def play(self, stage: Stage, case: Case) -> Result:
        result = Result()
        if "large" in case:
            given = mutations.spread(*case["large"])
        else:
            given = _loaded(result, case) if "format" in case else mutations.python(case["definition"])
        if given is not None and _checked(result, given):
            _lived(result, stage.fresh(), given)
            _told(result, given, ["scxml"] if "large" in case else sorted(WRITERS))
        return result


def _loaded(result: Result, case: Case) -> Any:
    text = str(expand(case["text"])).encode("latin-1")
    try:
        found = _timed(result, "load", lambda: load(text, case["format"]))
    except DefinitionError as error:
        _findings(result, f"load {case['format']}", error.findings)
        return None
    result.record(f"load {case['format']}", "read")
    return found


def _checked(result: Result, given: Any) -> bool:
    """Whether it is free of errors; what finds none compiles, and what finds some does not."""
    findings = _timed(result, "check", lambda: check(given))
    _findings(result, "check", findings)
    sound = not any(finding.is_error for finding in findings)
    for derive in (compile, outline):
        try:
            _timed(result, derive.__name__, lambda derive=derive: derive(given))
        except DefinitionError:
            if sound:
                result.refuse(f"check finds nothing, and {derive.__name__} does")
        else:
            if not sound:
                result.refuse(f"check finds an error, and {derive.__name__} none")
    return sound


def _findings(result: Result, where: str, findings: Any) -> None:
    for finding in findings:
        line = str(finding)
        line.encode()
        if finding.code not in CODES or not line.isprintable():
            result.refuse(f"{where} finds {line!r:.300}")
    result.record(where, findings[0].code if findings else "sound", "\n".join(map(str, findings)))


def _timed(result: Result, what: str, call: Callable[[], Any]) -> Any:
    began = time.process_time()
    try:
        return call()
    finally:
        seconds = time.process_time() - began
        if seconds > LONGEST:
            result.refuse(f"{what} took {seconds:.1f} s of Python")


# Living by it


def _lived(result: Result, engine: Engine, given: dict[str, Any]) -> None:
    name = result.ask("publish", lambda: engine.publish(given).name)
    if name is None:
        result.refuse("check finds nothing, and publish refuses")
        return
    seen = outline(given)
    result.ask("create", lambda: engine.create(name, ID, now=NOW))
    events = [event for state in seen.states for transition in state.transitions for event in transition.events]
    for event in [event for event in dict.fromkeys(events) if not check_external_event_name(event)][:EVENTS]:
        result.ask("explain", lambda event=event: engine.explain(name, ID, event, {"x": 1}, now=NOW))
        result.ask("fire", lambda event=event: engine.fire(name, ID, event, {}, now=NOW))
    result.ask("advance", lambda: engine.advance(name, now=NOW + DAY))
    for queue in seen.queues[:EVENTS]:
        for job in result.ask("take", lambda queue=queue: engine.take(name, queue, "w", now=NOW + DAY)) or []:
            result.ask("complete", lambda job=job: engine.complete(job, {"ok": 1}, now=NOW + DAY))
    for state in seen.states[:STATES]:
        if state.type != "history":
            result.ask("force", lambda state=state: engine.force(name, ID, state.name, actor="a", reason="r", now=NOW))
    for look in (lambda: engine.get(name, ID), lambda: engine.live(name), lambda: engine.history(name, ID)):
        result.ask("look", look)


def _told(result: Result, given: dict[str, Any], formats: list[str]) -> None:
    """Each format writes it, or says why it cannot; what it wrote as JSON or YAML is the same when it is read."""
    for format in formats:
        try:
            text, findings = _timed(result, f"dump {format}", lambda format=format: dump(given, format))
        except DefinitionError as error:
            _findings(result, f"dump {format}", error.findings)
            continue
        _findings(result, f"dump {format}", findings)
        whole = format in ("json", "yaml") and not findings and len(text.encode()) <= MAX_DEFINITION
        if whole and load(text, format) != json.loads(json.dumps(given)):
            result.refuse(f"{format} does not read what it wrote")


# As text


def _text(rng: Random) -> Case:
    format = rng.choice(sorted(READERS))
    try:
        text = dump(mutations.seed(rng), format)[0] if format in WRITERS else SM
    except DefinitionError:
        text = SM
    raw = bytearray(text.encode())
    for _ in range(rng.choice([1, 1, 3, 10])):
        raw = rng.choice(CHANGES)(rng, raw)
    made: Any = raw.decode("latin-1")
    return {"format": format, "text": rng.choice(BOMBS) if rng.random() < 0.08 else made}


SM = '{"current": "shut", "initial": "shut", "reason": "", "map": {"shut": ["open"], "open": ["shut"]}}'
BOMBS: list[Any] = [
    times("[", 30_000), times("{a: ", 20_000), times("- ", 30_000), times("<a>", 30_000), times(" ", 1_100_000),
    times("a: &a [*a]\n", 1),
    "a: &a [x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c]\n",
    '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><scxml>&b;</scxml>',
    '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><scxml>&x;</scxml>',
    '<scxml xmlns="x" ' + 'a="b" ' * 2_000 + "/>", "export default {" + "a:{" * 3_000, "createMachine(" * 3_000,
    "`${" * 3_000, "/*" * 30_000, "//\n" * 30_000, "'" + "\\" * 30_001, "!!python/object/apply:os.system ['id']",
    "%YAML 1.1\n---\n? !!set {a}\n", "\ufeff".encode().decode("latin-1") * 3, "\x00" * 500,
]  # fmt: skip


def _flip(rng: Random, raw: bytearray) -> bytearray:
    if raw:
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return raw


def _cut(rng: Random, raw: bytearray) -> bytearray:
    start = rng.randrange(len(raw) + 1)
    return raw[:start] + raw[start + rng.choice([1, 5, 50, 5_000]) :]


def _again(rng: Random, raw: bytearray) -> bytearray:
    start = rng.randrange(len(raw) + 1)
    return raw[:start] + raw[start : start + rng.choice([1, 20, 200])] * rng.choice([2, 10, 50]) + raw[start:]


def _put(rng: Random, raw: bytearray) -> bytearray:
    start = rng.randrange(len(raw) + 1)
    return raw[:start] + rng.choice(BITS) + raw[start:]


BITS = [
    b"<", b">", b"&", b"]]>", b"<!--", b"<![CDATA[", b"&#0;", b"&lt;", b"{", b"}", b"[", b"]", b'"', b"'", b"`",
    b"${", b"\\", b"\\u0000", b"//", b"/*", b"*/", b"=>", b"function(){", b"...", b"&a ", b"*a ", b"!!", b"---\n",
    b"? ", b"|\n ", b"\t", b"\r\n", b"\x00", b"\xff", b"1e999", b"NaN", b"0x", b"9007199254740993", b"<script>",
    b"<invoke/>", b"<state/>", b"null", b"undefined", b",,", b"::",
]  # fmt: skip
CHANGES = [_flip, _flip, _cut, _again, _put, _put]
