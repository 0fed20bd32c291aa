"""Generated charts for both servers: nested and parallel states, histories, timers, ends, eventless transitions."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from . import twins
from .twins import EVENTS, IDS, NOW, QUEUES, SENT, Twins

NAMES = ["S{}", 'say "{}"', "back\\{}", "é {}"]
MOST_STATES = 14


class Writer(twins.Writer):
    """Writes charts. Their states are numbered in the order of the document."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.names: list[str] = []
        self.histories: list[str] = []
        self.invokes = 0

    def odds(self, chance: float) -> bool:
        return self.random.random() < chance

    def definition(self) -> dict[str, Any]:
        made = super().definition()
        if "events" in made:
            made["events"]["go"]["payload"]["result"] = {}
        if self.odds(0.2):
            made["errors"] = "raise"
        if self.odds(0.3):
            made["index"] = [*made.get("index", []), "instance.transition"]
        return made

    def states(self) -> dict[str, Any]:
        tree = self.tree(1)
        made: dict[str, Any] = {"states": {name: self.furnish(name, state) for name, state in tree.items()}}
        if self.odds(0.1) and not any(state.get("type") == "final" for state in tree.values()):
            return made | {"type": "parallel"}
        return made | {"initial": self.random.choice(list(tree))}

    # The tree

    def tree(self, depth: int) -> dict[str, Any]:
        found = {}
        for _ in range(self.random.randint(2, 3)):
            name = self.random.choice(NAMES).format(len(self.names))
            self.names.append(name)
            found[name] = self.child(depth)
        return found

    def child(self, depth: int) -> dict[str, Any]:
        if depth < 3 and len(self.names) < MOST_STATES and self.odds(0.6):
            state: dict[str, Any] = {"states": self.tree(depth + 1)}
            if self.odds(0.4):
                state["type"] = "parallel"
            else:
                state["initial"] = self.random.choice(list(state["states"]))
                if self.odds(0.4):
                    last = f"end {len(self.names)}"
                    self.names.append(last)
                    state["states"][last] = {"type": "final"}
            if self.odds(0.3):
                history = f"h{len(self.names)} {len(self.histories)}"
                self.histories.append(history)
                state["states"][history] = {"type": "history", "history": self.random.choice(["deep", "shallow"])}
            return state
        return {"type": "final"} if depth == 1 and self.odds(0.1) else {}

    # What states do

    def furnish(self, name: str, state: dict[str, Any]) -> dict[str, Any]:
        if "states" in state:
            state["states"] = {inner: self.furnish(inner, one) for inner, one in state["states"].items()}
            if self.odds(0.4):
                state["onDone"] = self.transition()
        if state.get("type") == "history":
            return state
        if self.odds(0.2):
            state["entry"] = self.without_event(self.actions) if self.odds(0.8) else self.actions()
        if state.get("type") == "final":
            return state
        if self.odds(0.2):
            state["exit"] = self.actions()
        state["on"] = {event: self.transitions() for event in [*EVENTS, "inner"] if self.odds(0.55)}
        if self.odds(0.3):
            state["after"] = {
                self.delay(): self.without_event(self.transition) for _ in range(self.random.randint(1, 2))
            }
        if self.odds(0.12):
            state["always"] = self.eventless()
        if self.odds(self.jobs / 2):
            self.invokes += 1
            state["invoke"] = [self.invoke(f"work{self.invokes}")]
        return state

    def invoke(self, id: str) -> dict[str, Any]:
        made = super().invoke(id)
        if "onDone" in made:
            first, last = (self.without_event(self.transition) for _ in range(2))
            made["onDone"] = [{"guard": "event.result.count == 2 or n", **first}, last]
        if "onError" in made:
            made["onError"] = self.target()
        return made

    def target(self) -> Any:
        if self.histories and self.odds(0.25):
            return self.random.choice(self.histories)
        return self.random.choice(self.names)

    def guard(self) -> str:
        state = self.random.choice(self.names).replace("\\", "\\\\").replace("'", "\\'")
        within = f"In('{state}')"
        return self.random.choice([within, f"not {within}", f"{within} and ({{}})", f"{within} or ({{}})", "{}", "{}"])

    def eventless(self) -> dict[str, Any]:
        made = self.transition()
        made["guard"] = self.guard().format(self.condition(1))
        made.setdefault("target", self.target())
        return made

    def transition(self) -> dict[str, Any]:
        made: dict[str, Any] = {"actions": self.actions()}
        if self.odds(0.6):
            made["guard"] = self.guard().format(self.condition(2))
        if self.odds(0.75):
            made["target"] = self.target()
            if self.odds(0.2):
                made["reenter"] = True
        return made

    def without_event(self, make: Callable[[], Any]) -> Any:
        """What looks at no event: those of timers have no data, and a new instance has none."""
        while "event" in str(made := make()):
            pass
        return made

    def delay(self) -> str:
        return self.random.choice(["1s", "90s", "2d", "n * 1000", "x + 1"])

    def actions(self) -> list[dict[str, Any]]:
        found = super().actions()
        if found and self.odds(0.3):
            found += super().actions()
        if self.odds(0.1):
            found.insert(self.random.randint(0, len(found)), {"raise": "inner"})
        if self.odds(self.jobs / 3):
            found.append({"enqueue": {"src": "tell", "queue": self.random.choice(QUEUES)}})
        return found


def play(twins_: Twins, seed: int, calls: int = 60) -> int:
    """Play one generated chart on both. Return how many steps were taken; None where its definition is refused."""
    pick = Random(seed)
    writer, taken = Writer(pick), 0
    if not twins_.publish(writer.definition()):
        return 0
    for number, id in enumerate(IDS):
        twins_.call("sb_create", id, "{}", "", "", "", "", NOW + number)
    now, held = NOW + 1000, twins.HeldJobs(twins_, pick)
    for _ in range(calls):
        now += pick.choice([0, 1, 999, 86_400_000])
        if pick.random() < 0.1:
            taken += twins_.call("sb_tick", now, 100)[2][0]
            continue
        if pick.random() < writer.jobs / 2:
            taken += held.work(now)
            continue
        id, event = pick.choice(IDS), pick.choice(SENT)
        if pick.random() < 0.02:
            twins.damage(twins_, pick, id)
        expect = pick.choice(["", "", "", "", "", "3", "x"])
        key = pick.choice(["", "", "", "k1", "k2"])
        actor, reason = pick.choice(["", "ann", 'bo"b']), pick.choice(["", "", 'why "not"'])
        permit = pick.choice(["", "", '{"groups":["a"]}', '{"groups":null}'])
        returning = pick.choice(["", "", "version"])
        if pick.random() < 0.15:
            twins_.call("sb_explain", id, event, writer.payload(), now)
        reply = twins_.call("sb_fire", id, event, writer.payload(), expect, key, actor, reason, now, permit, returning)
        taken += reply[0] == b"OK"
    twins_.compare()
    return taken
