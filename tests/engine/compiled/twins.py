"""Two servers with the same machine: one takes compiled steps where it can, the other interprets each step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import redis

from machines.engine import Engine
from machines.engine.connection import library
from machines.engine.errors import DefinitionError
from machines.server import Server

NOW = 1_700_000_000_000
STATES = ["A", "B", 'say "hi"', "C\\d"]
EVENTS = ["go", "hop", 'odd."name']
SENT = [*EVENTS * 6, "go.on", 'un"known', "done.state.x"]
QUEUES = ["q", "r"]
PLACES = ["", ":leased", ":dead", ":handled"]
IDS = ["a", 'quo"te', "é\\n", "d" * 60]
TEXTS = ["", "x", 'quo"te', "back\\slash", "line\nend", "é😀", "\x7f", "y" * 90, "12", "]]..call('x')--", "true"]
NUMBERS = [0, 1, -1, 3, 2.5, 1e20, 2**53, 12345678901234]
RESULTS = ["", "", "null", "3", '"text"', '{"count":2}', "[1]", "{"]
ROOT = "t:{m:0}"


def patient(text: str) -> str:
    """The library with calls that never stop because they take long: both servers do all that is due."""
    assert "local LIMIT_MS = 20\n" in text
    return text.replace("local LIMIT_MS = 20\n", "local LIMIT_MS = 20000\n")


def interpreted_library() -> str:
    """The library without compiled steps."""
    text = patient(library.text())
    assert "local MAX_COMPILED = 2000" in text
    return text.replace("local MAX_COMPILED = 2000", "local MAX_COMPILED = 0", 1)


def counting_library() -> str:
    """The library with a count of the steps that ran compiled."""
    text = patient(library.text()).replace("local CHARTS_FROM = 3", "local CHARTS_FROM = 1")
    answered = "if ok then return reply end\nstep_compiler.undo("
    assert text.count(answered) == 1
    count = "if reply then redis.call('INCR', reply[1] == 'OK' and 'compiled' or 'refused') end return reply"
    return text.replace(answered, answered.replace("return reply", count))


class Twins:
    """Sends each call to both servers, and compares the answers."""

    def __init__(self, servers: tuple[Server, Server]) -> None:
        self.engines = [Engine.from_url(server.url, prefix="t:") for server in servers]
        self.clients = [redis.Redis.from_url(server.url) for server in servers]
        self.log, self._read = servers[0].log, 0
        self.load()

    def load(self, text: str | None = None) -> None:
        """Load the libraries anew, so that nothing is compiled; ``text``: the one of compiled steps."""
        for client, library_ in zip(self.clients, (text or counting_library(), interpreted_library()), strict=True):
            client.function_load(library_, replace=True)

    def publish(self, definition: dict[str, Any]) -> bool:
        """Publish on both from an empty server. False for a definition that is refused."""
        for client in self.clients:
            for key in client.scan_iter("t:*", count=1000):
                client.delete(key)
        try:
            for engine in self.engines:
                engine.publish(definition)
        except DefinitionError:
            return False
        return True

    def call(self, name: str, *words: Any) -> Any:
        """Return the answer, which both servers gave."""
        ours, other = [plain(answer) for answer in self.both("FCALL", name, 1, ROOT, *words)]
        assert ours == other, f"{name} {words}\n{ours}\n{other}"
        return ours

    def same_text(self, name: str, *words: Any) -> Any:
        """Return the answer, which both servers gave to the letter."""
        ours, other = self.both("FCALL", name, 1, ROOT, *words)
        assert ours == other, f"{name} {words}\n{ours}\n{other}"
        return ours

    def both(self, *words: Any) -> list[Any]:
        return [answer(client, words) for client in self.clients]

    def compare(self) -> None:
        """Every key of both servers holds the same."""
        ours, other = (contents(client) for client in self.clients)
        for key in ours.keys() | other.keys():
            assert ours.get(key) == other.get(key), f"{key!r}\n{ours.get(key)}\n{other.get(key)}"

    def count_compiled(self) -> int:
        """Return how many steps ran compiled since the last call."""
        return int(self.clients[0].getdel("compiled") or 0)

    def count_refused(self) -> int:
        """Return how many refusals by guards were answered compiled since the last call."""
        return int(self.clients[0].getdel("refused") or 0)

    def read_failures(self) -> list[str]:
        """Return why steps could not be compiled since the last call, from the server's log."""
        with self.log.open(encoding="utf-8", errors="replace") as file:
            file.seek(self._read)
            found = [line.partition(" is left to the interpreter: ")[2] for line in file]
            self._read = file.tell()
        return [why.strip() for why in found if why]

    def close(self) -> None:
        for client in [*self.clients, *(engine.client for engine in self.engines)]:
            client.close()


def answer(client: redis.Redis, words: tuple[Any, ...]) -> Any:
    try:
        return client.execute_command(*words)
    except redis.ResponseError as error:
        return str(error)


def plain(reply: Any) -> Any:
    """An answer with its JSON decoded: the order of names in an object means nothing."""
    if isinstance(reply, list):
        return [plain(item) for item in reply]
    return decoded(reply) if isinstance(reply, bytes) else reply


def decoded(item: bytes) -> Any:
    try:
        found = json.loads(item) if item[:1] == b"{" else item
        if isinstance(found, dict):
            found.pop("work", None)  # also counts what is compiled at its first use
        return found
    except ValueError:
        return ("not JSON", item)


READ = {
    b"hash": lambda client, key: client.hgetall(key),
    b"zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
    b"list": lambda client, key: client.lrange(key, 0, -1),
    b"set": lambda client, key: client.smembers(key),
    b"string": lambda client, key: client.get(key),
    b"stream": lambda client, key: [fields for _, fields in client.xrange(key)],
}


def contents(client: redis.Redis) -> dict[bytes, Any]:
    found = {}
    for key in client.keys(f"{ROOT}:*"):
        if key.endswith(b":pulse"):
            continue
        value = READ[client.type(key)](client, key)
        if key.endswith(b":meta"):
            value.pop(b"touched", None)
        if key.startswith(f"{ROOT}:def:".encode()):
            value = {name: text for name, text in value.items() if name not in (b"secret", b"at")}
        if b":k:" in key:
            value = sorted(value)  # the stored answer holds JSON, whose names may be in another order
        found[key] = value
    return found


@contextmanager
def running(folder: Path, program: str | None) -> Iterator[Twins]:
    """Run both servers."""
    with Server(folder / "ours", program=program, persistent=False) as ours:  # noqa: SIM117
        with Server(folder / "other", program=program, persistent=False) as other:
            twins = Twins((ours, other))
            try:
                yield twins
            finally:
                twins.close()


# Definitions


class Writer:
    """Writes definitions with typed fields, guards and actions; some do not fit their types, and fail when they run."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.defaults = random.random() < 0.7
        self.jobs = 0.5 if random.random() < 0.5 else 0.08

    def definition(self) -> dict[str, Any]:
        pick = self.random
        properties = {
            "n": {"type": "integer", "default": pick.choice([0, 7])},
            "i": {"type": "integer", "default": 3} if self.defaults else {"type": "integer"},
            "x": {"type": "number", "default": 1.5},
            "s": {"type": "string", "default": pick.choice(["", 'a"b'])},
            "t": {"type": "string", "default": "x"} if self.defaults else {"type": "string"},
            "ok": {"type": "boolean", "default": pick.choice([True, False])},
            "l": {"type": "array"},
        }
        index = pick.sample(
            ["n", "s", "t", "ok", "instance.actor", "instance.version", "instance.id"], pick.randint(0, 4)
        )
        made = {
            "id": "m",
            "context": {"type": "object", "properties": properties},
            "history": pick.choice([0, 2, 100]),
            **self.states(),
        }
        if index:
            made["index"] = index
        if pick.random() < 0.5:
            types = {"text": {"type": "string"}, "count": {"type": "integer"}, "any": {}}
            made["events"] = {"go": {"payload": types}}
        return made

    def states(self) -> dict[str, Any]:
        return {"initial": "A", "states": {name: self.state() for name in STATES}}

    def state(self) -> dict[str, Any]:
        made: dict[str, Any] = {"on": {event: self.transitions() for event in EVENTS if self.random.random() < 0.8}}
        if self.random.random() < 0.2:
            made["entry"] = self.actions()
        if self.random.random() < 0.2:
            made["exit"] = self.actions()
        if self.random.random() < 0.08:
            made["always"] = {"target": "A", "guard": self.condition(2)}
        if self.random.random() < self.jobs:
            made["invoke"] = [
                self.invoke(name) for name in self.random.sample(["one", "two"], self.random.randint(1, 2))
            ]
        return made

    def invoke(self, id: str) -> dict[str, Any]:
        made: dict[str, Any] = {"id": id, "src": "work", "queue": self.random.choice(QUEUES)}
        if self.random.random() < 0.9:
            made["onDone"] = self.transitions() if self.random.random() < 0.5 else self.random.choice(STATES)
        if self.random.random() < 0.4:
            made["onError"] = self.transitions() if self.random.random() < 0.5 else "A"
        if self.random.random() < 0.1:
            made["input"] = {"n": "n"}
        if self.random.random() < 0.2:
            made |= {"priority": 7, "timeout": "5m"}
        return made

    def transitions(self) -> list[dict[str, Any]]:
        found = [self.transition() for _ in range(self.random.randint(1, 3))]
        if self.random.random() < 0.4:
            found[-1].pop("guard", None)
        return found

    def transition(self) -> dict[str, Any]:
        guard = self.random.choice(["", "", "", "In('A') or ", "not In('B') and "]) + self.condition(3)
        made: dict[str, Any] = {"guard": guard, "actions": self.actions()}
        if self.random.random() < 0.7:
            made["target"] = self.random.choice(STATES)
        if "target" in made and self.random.random() < 0.3:
            made["reenter"] = True
        return made

    def actions(self) -> list[dict[str, Any]]:
        found = []
        names = self.random.sample(["n", "i", "x", "s", "t", "ok"], 3)
        for name in names[: self.random.randint(0, 3)]:
            kind = self.random.random()
            if kind < 0.9:
                found.append({"set": {name: self.value_for(name)}})
            elif kind < 0.96:
                found.append({"unset": [self.random.choice(["n", "i", "t", "ok"])]})
            elif kind < 0.98:
                found.append({"append": {"l": "n"}})
            else:
                found.append({"log": "n"})
        return found

    def value_for(self, name: str) -> Any:
        if name in "nix":
            return self.number(3, whole=name != "x")
        return self.boolean(2) if name == "ok" else self.text(2)

    def number(self, depth: int, whole: bool = False) -> str:
        """An expression of a number; `whole`: one that the checker takes for an integer field."""
        if depth == 0 or self.random.random() < 0.3:
            open_ones = ["n", "i", "now", "3", "0", "-2", "len(s)", "len(t)", "event.count"]
            return self.random.choice(open_ones if whole else [*open_ones, "x", "2.5"])
        operator = self.random.choice(("+ - * // %" if whole else "+ - * / // %").split())
        kind = [
            lambda: f"({self.number(depth - 1, whole)} {operator} {self.number(depth - 1, whole)})",
            lambda: f"-{self.number(depth - 1, whole)}",
            lambda: (
                f"({self.number(depth - 1, whole)} if {self.condition(depth - 1)} else {self.number(depth - 1, whole)})"
            ),
            lambda: f"{self.random.choice(['floor', 'int', 'ceil'])}({self.number(depth - 1)})",
            lambda: f"({self.number(depth - 1, whole)} or {self.number(depth - 1, whole)})",
            lambda: f"event.count + {self.number(depth - 1, whole)}",
            lambda: f"event.{self.random.choice(['result', 'attempts'])} + {self.number(depth - 1, whole)}",
        ]
        return self.random.choice(kind)()

    def text(self, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.4:
            literal = json.dumps(self.random.choice(TEXTS), ensure_ascii=False)
            return self.random.choice(["s", "t", "event.text", "event.result", "event.error", literal])
        return self.random.choice(
            [
                lambda: f"({self.text(depth - 1)} + {self.text(depth - 1)})",
                lambda: f"({self.text(depth - 1)} or {self.text(depth - 1)})",
                lambda: f"({self.text(depth - 1)} and {self.text(depth - 1)})",
                lambda: f"upper({self.text(depth - 1)})",
                lambda: f"str({self.number(depth - 1)})",
                lambda: f"({self.text(depth - 1)} if {self.condition(depth - 1)} else {self.text(depth - 1)})",
            ]
        )()

    def boolean(self, depth: int) -> str:
        """A condition whose value is a boolean by its type."""
        compare = self.random.choice(["==", "!=", "<", "<=", ">", ">="])
        return self.random.choice(
            [
                lambda: self.random.choice(["ok", "True", "False", "not ok"]),
                lambda: f"{self.number(depth - 1)} {compare} {self.number(depth - 1)}",
                lambda: f"not ({self.condition(depth - 1)})",
                lambda: f"bool({self.text(depth - 1)})",
            ]
        )()

    def condition(self, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.2:
            return self.random.choice(["ok", "True", "n", "s", "event.any", "not ok", "event.text"])
        compare = self.random.choice(["==", "!=", "<", "<=", ">", ">="])
        return self.random.choice(
            [
                lambda: f"{self.number(depth - 1)} {compare} {self.number(depth - 1)}",
                lambda: f"{self.text(depth - 1)} {compare} {self.text(depth - 1)}",
                lambda: f"{self.expression(depth - 1)} {self.random.choice(['==', '!='])} {self.expression(depth - 1)}",
                lambda: f"({self.condition(depth - 1)} and {self.condition(depth - 1)})",
                lambda: f"({self.condition(depth - 1)} or {self.condition(depth - 1)})",
                lambda: f"not ({self.condition(depth - 1)})",
                lambda: f"{self.text(depth - 1)} in {self.text(depth - 1)}",
                lambda: f"n < {self.number(depth - 1)} < x",
                lambda: f"startswith({self.text(depth - 1)}, {self.text(depth - 1)})",
            ]
        )()

    def expression(self, depth: int) -> str:
        return self.random.choice([self.number, self.text, self.condition, lambda _: "None", lambda _: "event"])(depth)

    def payload(self) -> str:
        given: dict[str, Any] = {}
        if self.random.random() < 0.7:
            given["text"] = self.random.choice([*TEXTS, *TEXTS, None, 3])
        if self.random.random() < 0.9:
            given["count"] = self.random.choice([*NUMBERS, *NUMBERS, *NUMBERS, "3", None])
        if self.random.random() < 0.3:
            given["any"] = self.random.choice([*TEXTS, *NUMBERS, None, True, [], [1], {"a": 1}])
        if self.random.random() < 0.05:
            return self.random.choice(['{"text": }', "[]", "{", '{"text":"\\ud800"}', '{"other":1}'])
        return json.dumps(given, ensure_ascii=self.random.random() < 0.5) if given else self.random.choice(["", "{}"])


def play(twins: Twins, seed: int, calls: int = 60) -> int:
    """Play one generated machine on both. Return how many steps were taken."""
    pick = Random(seed)
    writer, taken = Writer(pick), 0
    if not twins.publish(writer.definition()):
        return 0
    for number, id in enumerate(IDS):
        twins.call("sb_create", id, "{}", "", "", "", "", NOW + number)
    now, held = NOW + 1000, HeldJobs(twins, pick)
    for _ in range(calls):
        now += pick.choice([0, 1, 999, 86_400_000])
        id, event = pick.choice(IDS), pick.choice(SENT)
        if pick.random() < 0.05:
            damage(twins, pick, id)
        if pick.random() < writer.jobs:
            taken += held.work(now)
            continue
        expect = pick.choice(["", "", "", "", "", "3", "x"])
        key = pick.choice(["", "", "", "k1", "k2"])
        actor, reason = pick.choice(["", "ann", 'bo"b']), pick.choice(["", "", 'why "not"'])
        permit = pick.choice(["", "", '{"groups":["a"]}', '{"groups":null}'])
        returning = pick.choice(["", "", "version"])
        if pick.random() < 0.15:
            twins.call("sb_explain", id, event, writer.payload(), now)
        reply = twins.call("sb_fire", id, event, writer.payload(), expect, key, actor, reason, now, permit, returning)
        taken += reply[0] == b"OK"
    twins.compare()
    return taken


class HeldJobs:
    """The jobs that a worker took and has not ended, of any call before."""

    def __init__(self, twins: Twins, pick: Random) -> None:
        self._twins = twins
        self._pick = pick
        self._held: list[tuple[Any, Any]] = []

    def work(self, now: int) -> int:
        """Take jobs and end some of those held. Return how many instances moved."""
        pick, queue = self._pick, self._pick.choice(QUEUES)
        reply = self._twins.call("sb_take", queue, "w", pick.choice([1, 2, 9]), "", now, f"n{now}")
        if isinstance(reply, list):  # else a key of the queue is foreign
            self._held += [(reply[at], reply[at + 2]) for at in range(3, len(reply), 6)]
        pick.shuffle(self._held)
        ended, self._held = self._held[1:], self._held[:1]
        if pick.random() < 0.25 and ended:
            self._fail(now, *ended.pop())
        return self._complete(now, ended) if ended else 0

    def _fail(self, now: int, job: Any, token: Any) -> None:
        error, again = self._pick.choice(TEXTS), self._pick.choice("001")
        self._twins.call("sb_fail", job, token, error, "Broken", "", again, now, 1)

    def _complete(self, now: int, ended: list[tuple[Any, Any]]) -> int:
        words: list[Any] = []
        for job, token in ended:
            words += [job, self._pick.choice([token] * 9 + ["other"]), self._pick.choice(RESULTS)]
        done = self._twins.call("sb_complete", now, self._pick.choice(["", "short"]), *words)
        return sum((isinstance(one, bytes) and one != b"") or (one[:1] == [b"OK"] and len(one) > 1) for one in done[1:])


def damage(twins: Twins, pick: Random, id: str) -> None:
    """Write what another program may have written."""
    key, place = f"{ROOT}:i:{id}", pick.choice(PLACES)
    words = pick.choice(
        [
            ("HSET", key, pick.choice(["n", "x"]), pick.choice(["12\n", "abc", '1"', "1e3", " 4", "0x10", ""])),
            ("HSET", key, "s", pick.choice(TEXTS)),
            ("HSET", key, "ok", pick.choice(["true", "yes", '"'])),
            ("HSET", key, "_created", "17\n"),
            ("HSET", key, "foreign", "x"),
            ("HDEL", key, pick.choice(["n", "s", "foreign", "_created"])),
            ("SET", f"{ROOT}:h:{id}", "foreign"),
            ("DEL", f"{ROOT}:h:{id}"),
            ("SET", f"{ROOT}:flow", "foreign"),
            ("DEL", f"{ROOT}:flow"),
            ("SET", f"{ROOT}:by:n", "foreign"),
            ("DEL", f"{ROOT}:by:n"),
            ("HSET", key, "_jobs", pick.choice(["0-1", "0-3", "0-2 0-4", ""])),
            ("HDEL", key, "_jobs"),
            ("SET", f"{ROOT}:q:q{place}", "foreign"),
            ("DEL", f"{ROOT}:q:q{place}"),
            ("SET", f"{ROOT}:job:0-{pick.randint(1, 9)}", "foreign"),
            ("HSET", f"{ROOT}:meta", "jobs", "foreign"),
            ("HSET", f"{ROOT}:meta", "jobs", "70"),
        ]
    )
    twins.both(*words)
