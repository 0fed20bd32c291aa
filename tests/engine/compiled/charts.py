"""Generated charts for both servers: nested and parallel states, histories, timers, ends, eventless transitions."""

from __future__ import annotations

from typing import Any

from . import definitions
from .definitions import EVENTS, NO_EVENT, QUEUES

NAMES = ["S{}", 'say "{}"', "back\\{}", "é {}"]
MOST_STATES = 14


class Writer(definitions.Writer):
    """Writes charts. Their states are numbered in the order of the document."""

    ticks = 0.1
    sound_depth, odd_depth = 1, 2

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.jobs /= 2
        self.names: list[str] = []
        self.histories: list[str] = []

    def definition(self) -> dict[str, Any]:
        made = super().definition()
        if self.odds(0.2):
            made["errors"] = "raise"
        nested = any("states" in state for state in made["states"].values())
        if self.odds(0.3) and (nested or self.odd):  # a flat machine with this index is interpreted
            made["index"] = [*made.get("index", []), "instance.transition"]
        return made

    def states(self) -> dict[str, Any]:
        tree = self.tree(1)
        made: dict[str, Any] = {"states": {name: self.furnish(name, state) for name, state in tree.items()}}
        if self.odds(0.1) and not any(state.get("type") == "final" for state in tree.values()):
            return made | {"type": "parallel"}
        beginnings = [name for name, state in tree.items() if self.odd or state.get("type") != "final"]
        return made | {"initial": self.random.choice(beginnings or list(tree))}

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
            state["entry"] = self.actions()
        if state.get("type") == "final":
            return state
        with self.reading(self.fired() if self.odd else NO_EVENT):
            if self.odds(0.2):
                state["exit"] = self.actions()
        with self.reading(self.fired()):
            state["on"] = {event: self.transitions() for event in EVENTS if self.odds(0.75)}
        if self.odds(0.55):
            with self.reading(self.fired() if self.odd else NO_EVENT):
                state["on"]["inner"] = self.transitions()
        if self.odds(0.3):
            state["after"] = {self.delay(): self.transition() for _ in range(self.random.randint(1, 2))}
        if self.odds(0.12):
            state["always"] = self.eventless()
        if self.odds(self.jobs):
            state["invoke"] = [self.invoke()]
        return state

    def target(self) -> Any:
        if self.histories and self.odds(0.25):
            return self.random.choice(self.histories)
        return self.random.choice(self.names)

    def guard(self, depth: int) -> str:
        state = self.random.choice(self.names).replace("\\", "\\\\").replace("'", "\\'")
        within, other = f"In('{state}')", super().guard(depth)
        return self.random.choice(
            [within, f"not {within}", f"{within} and ({other})", f"{within} or ({other})", other, other]
        )

    def eventless(self) -> dict[str, Any]:
        made = self.transition()
        made["guard"] = self.guard(1)
        if not self.odd:  # which comes to rest
            made |= {"guard": f"n == {self.random.randint(0, 9)}", "actions": [{"set": {"n": "n + 1"}}]}
        made.setdefault("target", self.target())
        return made

    def transition(self) -> dict[str, Any]:
        made: dict[str, Any] = {"actions": self.actions()}
        if self.odds(0.6):
            made["guard"] = self.guard(self.depth)
        if self.odds(0.75):
            made["target"] = self.target()
            if self.odds(0.2):
                made["reenter"] = True
        return made

    def delay(self) -> str:
        return self.random.choice(["1s", "90s", "2d", *(["n * 1000", "x + 1"] if self.odd else ["len(s) * 1000 + 1"])])

    def actions(self) -> list[dict[str, Any]]:
        found = super().actions()
        if found and self.odds(0.3):
            found += super().actions()
        if self.odds(0.1 if self.odd else 0.04):
            found.insert(self.random.randint(0, len(found)), {"raise": "inner"})
        if self.odds(self.jobs / 2):
            found.append({"enqueue": {"src": "tell", "queue": self.random.choice(QUEUES)}})
        return found
