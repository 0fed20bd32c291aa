"""Random charts, valid by construction: they publish, and all that can happen in them writes itself down.

Every state, transition, initial and history default appends to the trace, so that two interpreters that agree on the
trace agree on every order. EVENTS come from outside, INNER ones are raised and sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from . import language
from .language import BROKEN_ACTION, BROKEN_GUARD, DATA, EVENT_GUARDS, GUARDS, Action, Guard
from .model import Chart, State, Transition

EVENTS = ("a", "b", "c.d")
INNER = ("i", "j.k")
DESCRIPTORS = (*EVENTS, *EVENTS, *INNER, "c", "c.*", "*", "j")
SEND_IDS = ("one", "two")
IDS = ("p", "q", "r")
MOST_STATES = 8
DEPTHS = (1, 2, 3, 3, 4)
PAYLOADS = st.sampled_from([{}, {"x": 1}, {"x": 2}])


@dataclass(frozen=True)
class Kind:
    """What the charts may have. ``top``: the machine itself may act. ``looks``: events have data, and are looked at.
    ``mail``: it sends events to other instances of its own machine, IDS. ``raises``: a failure raises an event."""

    history: bool = True
    parallel: bool = True
    top: bool = True
    looks: bool = True
    timers: bool = False
    work: bool = False
    mail: bool = False
    failures: bool = False
    raises: bool = False


@st.composite
def charts(draw: st.DrawFn, kind: Kind = Kind()) -> Chart:
    return _Draft(draw, kind).chart()


class _Draft:
    """A chart in the making."""

    def __init__(self, draw: st.DrawFn, kind: Kind) -> None:
        self.draw, self.kind = draw, kind
        self.delays = self.labels = 0
        self.states: list[State] = []

    def chart(self) -> Chart:
        top = State("m", "parallel" if self.kind.parallel and self.kind.top and self.odds(8) else "compound")
        self.depth = self.pick(DEPTHS)
        self.grow(top, 1)
        Chart(top, "", {})  # every state now knows its parent
        acts = self.kind.top and (top.kind == "parallel" or self.odds(4))
        for state in [top, *self.states]:
            self.lead(state)
            if state is not top or acts:
                self.furnish(state)
        return Chart(top, "raise" if self.kind.raises else "refuse", DATA)

    # Drawing

    def odds(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    def pick(self, items: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(items))

    def label(self) -> Action:
        self.labels += 1
        return language.told(f"t{self.labels}")

    def delay(self) -> int:
        """Unlike any other in its last three digits, so that no two timers are ever due at the same moment."""
        self.delays += 1
        return self.pick([1000, 2000, 4000]) + self.delays

    # The tree

    def grow(self, state: State, depth: int) -> None:
        for number in range(
            self.draw(st.integers(2, 3) if state.kind == "parallel" else st.integers(2 if depth == 1 else 1, 3))
        ):
            child = State(f"S{len(self.states) + 1}", self.kind_of_child(state, depth, number))
            self.states.append(child)
            state.children.append(child)
            if child.kind in ("compound", "parallel"):
                self.grow(child, depth + 1)
        if self.kind.history and depth > 1 and self.odds(2):
            history = State(f"S{len(self.states) + 1}", self.pick(["shallow", "deep"]))
            self.states.append(history)
            state.children.append(history)

    def kind_of_child(self, parent: State, depth: int, number: int) -> str:
        if depth < self.depth and len(self.states) < MOST_STATES and not self.odds(3):
            return self.pick(["compound", "parallel"]) if self.kind.parallel else "compound"
        if number and parent.kind == "compound" and self.odds(6 if depth == 1 else 2):
            return "final"
        return "atomic"

    def lead(self, state: State) -> None:
        """Where a compound state begins, and a history state leads at first."""
        if state.kind == "compound":
            state.initial = self.some_inside(state)
        elif state.is_history:
            state.initial = self.some_inside(state.parent)
        if state.initial and state.name != "m" and self.odds(3):
            state.initial_actions = (language.told(f"into {state.name}"),)

    def some_inside(self, state: State) -> tuple[str, ...]:
        """States inside that may be active together; mostly one that is just below."""
        if self.odds(4):
            return self.several_inside(state) or self.some_inside(state)
        around = [one for one in state.below() if not one.is_history] if self.odds(3) else state.real_children
        return (self.pick(around).name,)

    def several_inside(self, state: State) -> tuple[str, ...]:
        """One state of each of some regions of a parallel state; nothing where there is none."""
        parallel = [one for one in [state, *state.below()] if one.kind == "parallel"]
        if not parallel:
            return ()
        regions = self.pick(parallel).real_children
        chosen = regions if self.odds(2) else regions[:2]
        return tuple(self.pick([region, *region.below()]).name for region in chosen)

    # What states do

    def furnish(self, state: State) -> None:
        if state.is_history:
            return
        ends = state.kind == "final" and state.parent.name == "m"
        state.entry = (language.told(f"+{state.name}"), *self.some_actions(1, self.odds(2)))
        state.exit = () if ends else (language.told(f"-{state.name}"), *self.some_actions(1, self.odds(2)))
        if state.kind == "final":
            state.output = "n" if not ends and self.odds(2) else ""
            return
        listening = [self.descriptor() for _ in range(self.draw(st.integers(1, 4)))]
        # A definition holds those of one event together, where the first of them stands.
        state.on = [self.transition(descriptor) for descriptor in sorted(listening, key=listening.index)]
        if self.kind.work and self.odds(3):
            state.work = True
            ways = [f"{way}.invoke.{state.name}" for way in ("done", "error") if self.odds(2)]
            state.worked = [self.transition(descriptor) for descriptor in ways]
        if state.kind in ("compound", "parallel") and state.name != "m" and self.odds(2):
            state.done = [self.transition(f"done.state.{state.name}")]
        if self.kind.timers and self.odds(3):
            state.after = self.timed(state)
        if self.odds(5):
            state.always = [self.eventless()]

    def descriptor(self) -> str:
        if self.kind.raises and self.odds(4):
            return self.pick(["error.execution", "error", "*"])
        if self.odds(10):
            done = [state.name for state in self.states if state.kind in ("compound", "parallel")]
            return self.pick(["done", "done.state.*", *(f"done.state.{name}" for name in done)])
        return self.pick(DESCRIPTORS)

    def transition(self, descriptor: str) -> Transition:
        looked_at = self.kind.looks and descriptor != "*" and ".invoke." not in descriptor
        return Transition(descriptor, *self.content(descriptor in EVENTS, looked_at))

    def content(self, loud: bool, named: bool) -> tuple[Any, ...]:
        """Targets, guard, actions and reenter. ``loud``: it may raise, send and have a guard that fails, which does not
        suit those that would hear of that themselves; ``named``: its event may be looked at."""
        targets = self.targets() if not self.odds(4) else ()
        guard = self.guard(loud, named) if self.odds(3) else None
        told = (language.told_event(),) if named and self.odds(3) else ()
        fuel = (language.refuelled(),) if loud and self.odds(2) else ()
        return targets, guard, (self.label(), *told, *fuel, *self.some_actions(2, loud)), self.odds(3)

    def targets(self) -> tuple[str, ...]:
        if self.odds(6) and (several := self.several_inside(self.states[0].parent)):
            return several
        histories = [state for state in self.states if state.is_history]
        return (self.pick(histories if histories and self.odds(4) else self.states).name,)

    def timed(self, state: State) -> list[Transition]:
        found = []
        for number in range(self.draw(st.integers(1, 2))):
            delay = self.delay()
            for _ in range(self.draw(st.integers(1, 2))):
                found.append(Transition(f"after.{state.name}.{number}", *self.content(True, False), delay=delay))
        return found

    def eventless(self) -> Transition:
        """Counts on, so that it comes to rest."""
        guard = self.pick(GUARDS[::3])
        if self.odds(2):
            guard = language.both(guard, language.inside(self.pick(self.states).name))
        targets = self.targets() if self.odds(2) else ()
        return Transition("", targets, guard, (self.label(), language.added(1)), self.odds(4))

    def guard(self, loud: bool, named: bool) -> Guard:
        if self.kind.failures and loud and self.odds(4):
            return BROKEN_GUARD
        active = [state.name for state in self.states if not state.is_history]
        return self.pick([*GUARDS, *(EVENT_GUARDS if named else []), language.inside(self.pick(active))])

    # Actions

    def some_actions(self, most: int, loud: bool = True) -> tuple[Action, ...]:
        return tuple(self.action(loud) for _ in range(self.draw(st.integers(0, most))))

    def action(self, loud: bool, depth: int = 0) -> Action:
        if self.kind.failures and loud and self.odds(8 if self.kind.raises else 20):
            return self.fuelled(BROKEN_ACTION)
        forms = [self.count, self.look]
        forms += [self.raise_one, self.send_one] if loud else []
        forms += [self.delay_one, self.cancel_one] if loud and self.kind.timers else []
        forms += [self.mail_one] if loud and self.kind.mail else []
        forms += [self.choose, self.repeat] if depth < 2 else []
        forms += [self.divide] if depth < 1 and self.kind.raises else []
        return self.pick(forms)(loud, depth + 1)

    def inner(self, loud: bool, depth: int) -> tuple[Action, ...]:
        return tuple(self.action(loud, depth) for _ in range(self.draw(st.integers(0, 2))))

    def count(self, loud: bool, depth: int) -> Action:
        return language.added(self.pick([1, 2]))

    def look(self, loud: bool, depth: int) -> Action:
        return language.told_of(language.inside(self.pick([state.name for state in self.states])))

    def raise_one(self, loud: bool, depth: int) -> Action:
        return self.fuelled(language.raised(self.pick(INNER), self.pick(["", "n"] if self.kind.looks else [""])))

    def send_one(self, loud: bool, depth: int) -> Action:
        return self.fuelled(language.sent(self.pick(INNER)))

    def mail_one(self, loud: bool, depth: int) -> Action:
        return self.fuelled(language.mailed(self.pick(INNER), "m", self.pick(IDS), self.delay() if self.odds(3) else 0))

    def fuelled(self, action: Action) -> Action:
        return action if self.odds(12) else language.fuelled(action)

    def delay_one(self, loud: bool, depth: int) -> Action:
        return language.sent(self.pick(INNER), self.delay(), self.pick(["", *SEND_IDS]))

    def cancel_one(self, loud: bool, depth: int) -> Action:
        return language.cancelled(self.pick(SEND_IDS))

    def choose(self, loud: bool, depth: int) -> Action:
        cases = [(self.guard_of_action(), self.inner(loud, depth)) for _ in range(self.draw(st.integers(1, 2)))]
        return language.chosen(cases, self.inner(loud, depth))

    def guard_of_action(self) -> Guard:
        return BROKEN_GUARD if self.kind.failures and self.odds(6) else self.pick(GUARDS)

    def repeat(self, loud: bool, depth: int) -> Action:
        return language.repeated((language.told_item(), *self.inner(False, depth)))

    def divide(self, loud: bool, depth: int) -> Action:
        return language.blocks(self.inner(loud, depth), self.inner(loud, depth))
