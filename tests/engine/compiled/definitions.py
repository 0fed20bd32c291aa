"""Generated definitions of flat machines: typed fields, guards, actions and jobs; and the payloads of their events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

STATES = ["A", "B", 'say "hi"', "C\\d"]
EVENTS = ["go", "hop", 'odd."name']
SENT = [*EVENTS * 6, 'un"known', "done.state.x"]
QUEUES = ["q", "r"]
TEXTS = ["", "x", 'quo"te', "back\\slash", "line\nend", "é😀", "\x7f", "y" * 90, "12", "]]..call('x')--", "true"]
NUMBERS = [0, 1, -1, 3, 2.5, 1e20, 2**53, 12345678901234]
WHOLE = [0, 1, -1, 3, 7, 12345]
RESULTS = ["", "", "null", "3", '"text"', '{"count":2}', "[1]", "{"]
COUNTS = ['{"count":2}', '{"count":-7}']
NUMBERED = ["n", "i", "n2", "i2"]
FIELDS = [*NUMBERED, "x", "x2", "s", "t", "s2", "t2", "ok", "ok2"]
COMPARISONS = ["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Scope:
    """What expressions may read of the event: numbers, texts, and what may be anything."""

    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


FIRED = Scope(("event.count",), ("event.text",), ("event.any", "event.text"))
GUESSED = Scope(
    ("event.count", "event.result", "event.attempts"), ("event.text", "event.result", "event.error"), FIRED.others
)
DONE = Scope(("event.result.count",), (), ("event.result",))
FAILED = Scope(("event.attempts",), ("event.error",), ("event.kind",))
NO_EVENT = Scope()


class Writer:
    """Writes definitions of three sorts, by their seed.

    *Sound*: what the compiler covers; guards and values fit their types. *Odd*: also what it leaves to the interpreter,
    and what fails when it runs. *Wide*: sound, and so many fields, changes and parts of guards that sources reach the
    limits of Lua.
    """

    ticks = 0.0
    """How often time passes in place of a call."""
    sound_depth, odd_depth = 2, 3
    """How deep expressions are nested."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.sort = {3: "odd", 7: "wide"}.get(seed % 10, "sound")
        self.odd, self.wide = self.sort == "odd", self.sort == "wide"
        self.depth = self.odd_depth if self.odd else self.sound_depth
        self.jobs = 0.5 if random.random() < 0.5 else 0.08
        self.defaults = not self.odd or random.random() < 0.7
        self.declares = not self.wide and random.random() < 0.5
        self.scope = NO_EVENT
        self.invokes = 0
        self.filled = [f"p{n}" for n in range(random.choice([16, 20]))] if self.wide else []
        self.absent = [f"a{n}" for n in range(random.choice([30, 50, 90]))] if self.wide else []

    def odds(self, chance: float) -> bool:
        return self.random.random() < chance

    @contextmanager
    def reading(self, scope: Scope) -> Iterator[None]:
        """Expressions read what the scope has. Odd ones may also read what events do not have."""
        before, self.scope = self.scope, scope
        yield
        self.scope = before

    def fired(self) -> Scope:
        return GUESSED if self.odd and not self.declares else FIRED

    def definition(self) -> dict[str, Any]:
        made = {
            "id": "m",
            "context": {"type": "object", "properties": self.properties()},
            "history": self.random.choice([0, 2, 100]),
            **self.states(),
        }
        index = self.random.sample(
            ["n", "s", "t", "ok", "instance.actor", "instance.version", "instance.id"], self.random.randint(0, 4)
        )
        if index:
            made["index"] = index
        if self.declares:
            types = {"text": {"type": "string"}, "count": {"type": "number"}, "any": {}}
            made["events"] = {"go": {"payload": types}}
        return made

    def properties(self) -> dict[str, Any]:
        pick = self.random
        return {
            "n": {"type": "integer", "default": pick.choice([0, 7])},
            "i": {"type": "integer", "default": 3} if self.defaults else {"type": "integer"},
            "x": {"type": "number", "default": 1.5},
            "s": {"type": "string", "default": pick.choice(["", 'a"b'])},
            "t": {"type": "string", "default": "x"} if self.defaults else {"type": "string"},
            "ok": {"type": "boolean", "default": pick.choice([True, False])},
            **{name: {"type": "integer", "default": 5} for name in ("n2", "i2")},
            **{name: {"type": "string", "default": ""} for name in ("s2", "t2")},
            "x2": {"type": "number", "default": -1},
            "ok2": {"type": "boolean", "default": False},
            "l": {"type": "array"},
            "u": {"type": "string"},
            **{name: {"type": "integer", "default": 0} for name in self.filled},
            **{name: {"type": "integer"} for name in self.absent},
        }

    def states(self) -> dict[str, Any]:
        return {"initial": "A", "states": {name: self.state() for name in STATES}}

    def state(self) -> dict[str, Any]:
        with self.reading(self.fired()):
            made: dict[str, Any] = {"on": {event: self.transitions() for event in EVENTS if self.odds(0.8)}}
        with self.reading(self.fired() if self.odd else NO_EVENT):
            if self.odds(0.2):
                made["entry"] = self.actions()
            if self.odds(0.2):
                made["exit"] = self.actions()
            if self.odd and self.odds(0.3):
                made["always"] = {"target": "A", "guard": self.condition(2)}
        if self.odds(self.jobs):
            made["invoke"] = [self.invoke() for _ in range(self.random.randint(1, 2 if self.odd else 1))]
        return made

    def invoke(self) -> dict[str, Any]:
        self.invokes += 1
        made: dict[str, Any] = {"id": f"work{self.invokes}", "src": "work", "queue": self.random.choice(QUEUES)}
        if self.odds(0.9):
            with self.reading(DONE):
                made["onDone"] = self.leaving() if self.odds(0.5) else self.target()
        if self.odds(0.4):
            with self.reading(FAILED):
                made["onError"] = self.leaving() if self.odds(0.5) else self.target()
        if self.odd and self.odds(0.2):
            made["input"] = {"n": "n"}
        if self.odds(0.2):
            made |= {"priority": 7, "timeout": "5m"}
        return made

    def target(self) -> Any:
        return self.random.choice(STATES)

    def transitions(self) -> list[dict[str, Any]]:
        found = [self.transition() for _ in range(self.random.randint(1, self.depth + 1))]
        if self.odds(0.4):
            found[-1].pop("guard", None)
        return found

    def leaving(self) -> list[dict[str, Any]]:
        """Transitions for the end of a job, which sound ones take out of the state that requested it."""
        found = self.transitions()
        if not self.odd:
            found = [made | {"target": self.target(), "reenter": True} for made in found]
        return found

    def transition(self) -> dict[str, Any]:
        within = self.random.choice(["", "", "", "In('A') or ", "not In('B') and "])
        made: dict[str, Any] = {"guard": within + self.guard(self.depth), "actions": self.actions()}
        if self.odds(0.7):
            made["target"] = self.target()
        if "target" in made and self.odds(0.3):
            made["reenter"] = True
        return made

    def guard(self, depth: int) -> str:
        """A condition; of a wide machine sometimes one that reads more than the reasons of a refusal can show."""
        if not (self.wide and self.scope is FIRED and self.odds(0.3)):
            return self.condition(depth)
        return f"({self.condition(1)} if event.count == 1 else {self.sum_up(0, 115)} > 3)"

    def sum_up(self, first: int, end: int) -> str:
        """A sum of fields of the event, nested as little as possible."""
        middle = (first + end) // 2
        return f"event.p{first}" if end - first == 1 else f"({self.sum_up(first, middle)}+{self.sum_up(middle, end)})"

    # Actions

    def actions(self) -> list[dict[str, Any]]:
        if self.wide and self.odds(0.3):
            return self.many_actions()
        found: list[dict[str, Any]] = []
        names = self.random.sample([*FIELDS, "u"], 3)
        for name in names[: self.random.randint(0, 3)]:
            kind = self.random.random()
            if self.odd and kind < 0.04:
                found.append(self.random.choice([{"append": {"l": "n"}}, {"log": "n"}]))
            elif kind < 0.1:
                found.append({"unset": [self.random.choice(["n", "i", "t", "ok", "u"]) if self.odd else "u"]})
            else:
                found.append({"set": {name: self.value_for(name)}})
        return found

    def many_actions(self) -> list[dict[str, Any]]:
        names = self.filled + self.absent
        names = names[: self.random.randint(1, len(names))]
        if self.odds(0.2):
            return [{"unset": [name]} for name in names]
        reads = self.scope is FIRED and self.odds(0.4)
        return [{"set": {name: f"event.{name}" if reads else str(self.random.randint(0, 9))}} for name in names]

    def value_for(self, name: str) -> str:
        if name != "u" and not self.odd and self.odds(0.8):  # another value than before, whatever it was
            return f"not {name}" if name.startswith("ok") else f"{name} + {'1' if name[0] in 'nix' else repr('z')}"
        if name in NUMBERED or name.startswith("x"):
            return self.number(self.depth, whole=name in NUMBERED)
        return self.boolean(2) if name.startswith("ok") else self.text(min(self.depth, 2))

    # Expressions

    def number(self, depth: int, whole: bool = False) -> str:
        """An expression of a number; `whole`: one that the checker takes for an integer field."""
        if depth == 0 or self.odds(0.3):
            leaves = ["n", "i", "now", "3", "0", "-2", "len(s)", "len(t)", *self.scope.numbers]
            return self.random.choice(leaves if whole else [*leaves, "x", "2.5"])
        operator = self.random.choice(("+ - * // %" if whole else "+ - * / // %").split())
        safe = self.odd or operator in "+-*"
        kind = [
            lambda: (
                f"({self.number(depth - 1, whole)} {operator} "
                + (self.number(depth - 1, whole) if safe else self.random.choice(["3", "-2", "(abs(n) + 1)"]))
                + ")"
            ),
            lambda: f"-{self.number(depth - 1, whole)}",
            lambda: (
                f"({self.number(depth - 1, whole)} if {self.condition(depth - 1)} else {self.number(depth - 1, whole)})"
            ),
            lambda: f"{self.random.choice(['floor', 'int', 'ceil'])}({self.number(depth - 1)})",
            lambda: f"({self.number(depth - 1, whole)} or {self.number(depth - 1, whole)})",
            lambda: f"({self.random.choice([*self.scope.numbers, 'n'])} + {self.number(depth - 1, whole)})",
        ]
        return self.random.choice(kind)()

    def text(self, depth: int) -> str:
        if depth == 0 or self.odds(0.4):
            literal = json.dumps(self.random.choice(TEXTS), ensure_ascii=False)
            return self.random.choice(["s", "t", literal, literal, *self.scope.texts])
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
        compare = self.random.choice(COMPARISONS)
        return self.random.choice(
            [
                lambda: self.random.choice(["ok", "True", "False", "not ok"]),
                lambda: f"{self.number(depth - 1)} {compare} {self.number(depth - 1)}",
                lambda: f"not ({self.condition(depth - 1)})",
                lambda: f"bool({self.text(depth - 1)})",
            ]
        )()

    def condition(self, depth: int) -> str:
        if depth == 0 or self.odds(0.2):
            return self.random.choice(["ok", "True", "n", "s", "not ok", *self.scope.others])
        compare = self.random.choice(COMPARISONS)
        return self.random.choice(
            [
                lambda: f"{self.number(depth - 1)} {compare} {self.number(depth - 1)}",
                lambda: f"{self.text(depth - 1)} {compare} {self.text(depth - 1)}",
                lambda: f"({self.anything(depth - 1)}) {self.random.choice(['==', '!='])} ({self.anything(depth - 1)})",
                lambda: f"({self.condition(depth - 1)} and {self.condition(depth - 1)})",
                lambda: f"({self.condition(depth - 1)} or {self.condition(depth - 1)})",
                lambda: f"not ({self.condition(depth - 1)})",
                lambda: f"{self.text(depth - 1)} in {self.text(depth - 1)}",
                lambda: f"n < {self.number(depth - 1)} < x",
                lambda: f"startswith({self.text(depth - 1)}, {self.text(depth - 1)})",
            ]
        )()

    def anything(self, depth: int) -> str:
        open_ones = [lambda _: "event"] if self.odd else [lambda _: "u"]
        return self.random.choice([self.number, self.text, self.condition, lambda _: "None", *open_ones])(depth)

    # What is sent

    def event(self) -> str:
        return self.random.choice([*SENT, "go.on"] if self.odd else SENT)

    def payload(self) -> str:
        given: dict[str, Any] = {name: n for n, name in enumerate(self.filled + self.absent)}
        if self.wide:
            given |= {f"p{n}": n for n in range(115)}
        if not self.odd:
            given |= {"text": self.random.choice(TEXTS), "count": self.random.choice([*NUMBERS, *WHOLE * 3])}
        elif self.odds(0.05):
            return self.random.choice(['{"text": }', "[]", "{", '{"text":"\\ud800"}', '{"other":1}'])
        else:
            if self.odds(0.7):
                given["text"] = self.random.choice([*TEXTS, *TEXTS, None, 3])
            if self.odds(0.9):
                given["count"] = self.random.choice([*NUMBERS, *NUMBERS, *NUMBERS, "3", None])
        if self.odds(0.3):
            given["any"] = self.random.choice([*TEXTS, *NUMBERS, None, True, [], [1], {"a": 1}])
        return json.dumps(given, ensure_ascii=self.odds(0.5)) if given else self.random.choice(["", "{}"])

    def result(self) -> str:
        """What a handler returns."""
        return self.random.choice(RESULTS if self.odd else COUNTS)
