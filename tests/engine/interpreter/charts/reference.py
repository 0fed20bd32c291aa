"""A second opinion on charts: SCXML's appendix D, procedure by procedure, in Python. An oracle for tests, and no more.

It reads a ``Chart``, not what the engine compiles. Where the engine goes past the recommendation, so does this:

- a transition whose targets are its source or lie inside it does not leave its source unless it says ``reenter``,
  whatever kind of state that is (the recommendation has that for compound sources and targets properly inside);
- one external event is all or nothing: where errors refuse, what fails takes the whole step back;
- a transition of a leaf to itself, without ``reenter``, enters nothing, whatever another region does meanwhile;
- where the last region of a parallel state ends, so does each parallel state around it that ends with that (the
  appendix looks one level up only), and the machine itself may be parallel;
- the configuration stays when the machine has come to its end;
- a step of more than MOST_MICROSTEPS microsteps, MOST_EVENTS events or MOST_TIMERS timers is given up.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .language import TRACE, Action, Failed, Guard
from .model import Chart, State, Transition

MOST_MICROSTEPS = 1000
MOST_EVENTS = 10_000
MOST_TIMERS = 1000
POSTPONED = 60_000  # ms until a timer whose step failed is tried again
TIMER = "after."  # how the events of timers begin
ROOM = 60_000  # bytes of trace; the engine takes a little more than 64 KB


class Endless(Exception):
    """The machine does not come to rest within its limits."""


class TooMuch(Exception):
    """More than an instance holds, where that is no more than an error: no case for this oracle."""


@dataclass(frozen=True)
class Event:
    name: str
    data: dict[str, Any] = field(default_factory=dict)
    type: str = "external"


@dataclass
class Timer:
    """``due`` and ``at``: ms when it is meant to fire, and is tried. ``state``: whose ``after`` it is, else None."""

    due: int
    at: int
    event: Event
    state: str | None = None
    sendid: str = ""


def matches(descriptor: str, name: str) -> bool:
    """SCXML 3.12.1. A timer's event is only for the transitions of that timer."""
    if name.startswith(TIMER):
        return descriptor == name
    if descriptor == "*":
        return True
    prefix = descriptor.removesuffix(".*")
    return name == prefix or name.startswith(f"{prefix}.")


@dataclass
class _Picture:
    """What one step changes."""

    data: dict[str, Any]
    configuration: list[str]
    history: dict[str, list[str]]
    timers: list[Timer]
    entered: dict[str, int]
    work: dict[str, int]
    running: bool


class Machine:
    """One instance. ``version`` counts its steps, ``taken`` holds the transitions of the last one."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.data: dict[str, Any] = copy.deepcopy(chart.data)
        self.configuration: set[State] = set()
        self.history: dict[State, list[State]] = {}
        self.timers: list[Timer] = []
        self.entered: dict[str, int] = {}  # leaf -> ms
        self.work: dict[str, int] = {}  # state -> number of the job it waits for
        self.running = True
        self.version = 0
        self.endless = False
        self.now = 0
        self.event = Event("")
        self.taken: list[Transition] = []
        self._jobs = 0
        self._begun: set[State] = set()  # entered since work was last started
        self._internal: deque[Event] = deque()
        self._external: deque[Event] = deque()

    # What a test calls

    def start(self, now: int) -> bool:
        """``interpret``. False when the first step fails."""
        self.now = now
        return self._step(self._begin)

    def fire(self, name: str, payload: dict[str, Any], now: int) -> bool:
        """False when nothing happened."""
        self.now = now
        if not self.running:
            return False
        return self._step(lambda: self._receive(Event(name, payload)))

    def end_work(self, state: str, event: str, now: int) -> bool:
        """``event``: done, which is to be tried again where its step fails, or error."""
        waiting = self.work.pop(state)
        taken = self.fire(f"{event}.invoke.{state}", {}, now)
        if self._failed and event == "done":
            self.work[state] = waiting
        return taken

    def tick(self, now: int) -> None:
        """Fires what is due, oldest first; what is armed meanwhile waits for the next call."""
        self.now = now
        for timer in sorted((timer for timer in self.timers if timer.at <= now), key=lambda timer: timer.at):
            if timer not in self.timers:
                continue  # disarmed by one before it
            without = [other for other in self.timers if other is not timer]

            def fire(timer: Timer = timer, without: list[Timer] = without) -> None:
                self.timers = without
                self._receive(timer.event)

            failed = not self._step(fire) and self._failed
            if failed:
                timer.at = now + POSTPONED
            else:
                self.timers = [other for other in self.timers if other is not timer]

    @property
    def leaves(self) -> list[str]:
        return [state.name for state in _in_order(self.configuration) if state.is_leaf]

    # What guards and actions use

    def is_in(self, name: str) -> bool:
        return self.chart.states[name] in self.configuration

    def tell(self, word: str) -> None:
        self.data[TRACE] += f" {word}"
        if len(self.data[TRACE]) > ROOM:
            raise TooMuch

    def raise_event(self, name: str, data: dict[str, Any]) -> None:
        self._internal.append(Event(name, data, "internal"))

    def send(self, name: str, data: dict[str, Any], delay: int, id: str) -> None:
        if delay:
            self._add_timer(delay, Event(name, data), None, id)
        else:
            self._external.append(Event(name, data))

    def _add_timer(self, delay: int, event: Event, state: str | None, id: str = "") -> None:
        if len(self.timers) >= MOST_TIMERS:
            raise Endless if self.chart.errors == "refuse" else TooMuch
        self.timers.append(Timer(self.now + delay, self.now + delay, event, state, id))

    def cancel(self, id: str) -> None:
        self.timers = [timer for timer in self.timers if timer.sendid != id]

    def carry_out(self, actions: Iterable[Action]) -> None:
        for action in actions:
            action.do(self)

    def run_block(self, actions: Iterable[Action]) -> None:
        """A block of executable content: what fails raises error.execution and ends it (3.12.2, 4.1)."""
        try:
            self.carry_out(actions)
        except Failed:
            self._error()

    def condition(self, guard: Guard) -> bool:
        """In an action (4.3)."""
        try:
            return guard.holds(self)
        except Failed:
            self._error()
            return False

    def _error(self) -> None:
        if self.chart.errors == "refuse":
            raise Failed
        self._internal.append(Event("error.execution", {}, "platform"))

    # One step

    def _step(self, work: Callable[[], None]) -> bool:
        """All of it, or nothing."""
        before = self._picture()
        self.taken, self._microsteps, self._events = [], 0, 0
        self.endless = self._failed = False
        self._begun.clear()
        self._internal.clear()
        self._external.clear()
        try:
            work()
            self._settle()
        except (Failed, Endless) as error:
            self._restore(before)
            self._failed, self.endless = True, isinstance(error, Endless)
            return False
        if not self.taken and self.version:
            return False
        self.version += 1
        return True

    def _picture(self) -> _Picture:
        names = {state.name: [one.name for one in kept] for state, kept in self.history.items()}
        configuration = [state.name for state in self.configuration]
        timers, entered, work = list(self.timers), dict(self.entered), dict(self.work)
        return _Picture(copy.deepcopy(self.data), configuration, names, timers, entered, work, self.running)

    def _restore(self, picture: _Picture) -> None:
        named = self.chart.named
        self.data, self.timers, self.entered = picture.data, picture.timers, picture.entered
        self.work, self.running = picture.work, picture.running
        self.configuration = set(named(tuple(picture.configuration)))
        self.history = {self.chart.states[name]: named(tuple(kept)) for name, kept in picture.history.items()}

    def _begin(self) -> None:
        self._enter_states({Transition(targets=(self.chart.top.name,)): None})

    def _receive(self, event: Event) -> None:
        self._microstep(self._select(event))

    def _settle(self) -> None:
        """``mainEventLoop``, up to where it would wait for the next external event."""
        while self.running:
            enabled = self._select(None)
            if not enabled and self._internal:
                enabled = self._select(self._internal.popleft())
            elif not enabled:
                self._start_work()
                if not self._external:
                    return
                enabled = self._select(self._external.popleft())
            self._microstep(enabled)
        self._exit_interpreter()

    def _start_work(self) -> None:
        """Of the states entered, and still active, when there is nothing left to do (6.4.2)."""
        for state in _in_order(self._begun & self.configuration):
            if state.work:
                self._jobs += 1
                self.work[state.name] = self._jobs
        self._begun.clear()

    def _exit_interpreter(self) -> None:
        everything = set(self.configuration)
        for state in reversed(_in_order(everything)):
            self.run_block(state.exit)
            self.configuration.discard(state)
        self.configuration = everything
        self.work = {}
        self.timers = []  # what an ended session sent with a delay is discarded (6.2.4)

    # Selecting

    def _select(self, event: Event | None) -> list[Transition]:
        """``selectTransitions``; ``selectEventlessTransitions`` without an event."""
        if event is not None:
            self._count(event)
        enabled: list[Transition] = []
        asked: dict[Transition, bool] = {}
        for leaf in [state for state in _in_order(self.configuration) if state.is_leaf]:
            found = self._first_open(leaf, event, asked)
            if found is not None and found not in enabled:
                enabled.append(found)
        return self._without_conflicts(enabled)

    def _count(self, event: Event) -> None:
        self.event, self._events = event, self._events + 1
        if self._events > MOST_EVENTS:
            raise Endless

    def _first_open(self, leaf: State, event: Event | None, asked: dict[Transition, bool]) -> Transition | None:
        for state in [leaf, *leaf.ancestors()]:
            for transition in state.transitions:
                if not self._listens(transition, event):
                    continue
                if transition not in asked:
                    asked[transition] = self._holds(transition)
                if asked[transition]:
                    return transition
        return None

    def _listens(self, transition: Transition, event: Event | None) -> bool:
        if event is None:
            return not transition.descriptor
        return bool(transition.descriptor) and matches(transition.descriptor, event.name)

    def _holds(self, transition: Transition) -> bool:
        """A guard that fails does not hold; where errors are raised, it says so (5.9.1)."""
        try:
            return transition.guard is None or transition.guard.holds(self)
        except Failed:
            if self.chart.errors == "raise":
                self._error()
            return False

    def _without_conflicts(self, enabled: list[Transition]) -> list[Transition]:
        """``removeConflictingTransitions``."""
        kept: list[Transition] = []
        for one in enabled:
            beaten, beats = False, []
            for other in kept:
                if self._exit_set([one]) & self._exit_set([other]):
                    if one.source.is_inside(other.source):
                        beats.append(other)
                    else:
                        beaten = True
                        break
            if not beaten:
                kept = [other for other in kept if other not in beats] + [one]
        return kept

    # Taking

    def _microstep(self, enabled: list[Transition]) -> None:
        if not enabled:
            return
        self._microsteps += 1
        if self._microsteps > MOST_MICROSTEPS:
            raise Endless
        self.taken += enabled
        # Where a transition takes place is settled before anything is left, and what histories remember with it.
        domains = {transition: self._domain(transition) for transition in enabled if transition.targets}
        self._exit_states(enabled)
        for transition in enabled:
            self.run_block(transition.actions)
        self._enter_states(domains)

    def _exit_set(self, transitions: list[Transition]) -> set[State]:
        """``computeExitSet``."""
        found: set[State] = set()
        for transition in transitions:
            if transition.targets:
                domain = self._domain(transition)
                found |= {state for state in self.configuration if domain is None or state.is_inside(domain)}
        return found

    def _exit_states(self, enabled: list[Transition]) -> None:
        leaving = list(reversed(_in_order(self._exit_set(enabled))))
        for state in leaving:
            for history in (child for child in state.children if child.is_history):
                self.history[history] = [one for one in _in_order(self.configuration) if _remembers(history, one)]
        for state in leaving:
            self.run_block(state.exit)
            self.timers = [timer for timer in self.timers if timer.state != state.name]
            self.configuration.discard(state)
            self.entered.pop(state.name, None)
            self.work.pop(state.name, None)

    def _domain(self, transition: Transition) -> State | None:
        """``getTransitionDomain``, with the wider meaning of transitions that stay inside. None: around everything."""
        targets, source = self._effective(transition.targets), transition.source
        if not transition.reenter and all(target is source or target.is_inside(source) for target in targets):
            return source
        compound = (state for state in source.ancestors() if state.kind == "compound")
        return next((state for state in compound if all(target.is_inside(state) for target in targets)), None)

    def _effective(self, names: tuple[str, ...]) -> list[State]:
        """``getEffectiveTargetStates``."""
        found: list[State] = []
        for state in self.chart.named(names):
            if state.is_history:
                found += self.history[state] if state in self.history else self._effective(state.initial)
            else:
                found.append(state)
        return found

    def _enter_states(self, domains: dict[Transition, State | None]) -> None:
        """Of transitions with targets, each with the state inside which it takes place."""
        entering = _Entering(self)
        for transition, domain in domains.items():
            entering.add(transition, domain)
        for state in _in_order(entering.states - self.configuration):
            self.configuration.add(state)
            self._begun.add(state)
            if state.is_leaf:
                self.entered[state.name] = self.now
            self.run_block(state.entry)
            if state in entering.by_default:
                self.run_block(state.initial_actions)
            if state in entering.history_actions:
                self.run_block(entering.history_actions[state])
            self._arm(state)
            if state.kind == "final":
                self._entered_final(state)

    def _arm(self, state: State) -> None:
        timers = {transition.descriptor: transition for transition in reversed(state.after)}
        for transition in reversed(timers.values()):
            self._add_timer(transition.delay or 0, Event(transition.descriptor, {}, "platform"), state.name)

    def _entered_final(self, state: State) -> None:
        parent = state.parent
        if parent is self.chart.top:
            self.running = False
            return
        data = {"x": self.data[state.output]} if state.output else {}
        self._internal.append(Event(f"done.state.{parent.name}", data, "platform"))
        for around in parent.ancestors():
            if around.kind != "parallel" or not self._is_final(around):
                return
            if around is self.chart.top:
                self.running = False
            else:
                self._internal.append(Event(f"done.state.{around.name}", {}, "platform"))

    def _is_final(self, state: State) -> bool:
        """``isInFinalState``."""
        if state.kind == "compound":
            return any(child.kind == "final" and child in self.configuration for child in state.children)
        return state.kind == "parallel" and all(self._is_final(child) for child in state.real_children)


def _in_order(states: Iterable[State]) -> list[State]:
    return sorted(states, key=lambda state: state.order)


def _remembers(history: State, state: State) -> bool:
    if history.kind == "deep":
        return state.is_leaf and state.is_inside(history.parent)
    return state.parent is history.parent


class _Entering:
    """``computeEntrySet`` and what it calls."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.states: set[State] = set()
        self.by_default: set[State] = set()
        self.history_actions: dict[State, tuple[Action, ...]] = {}

    def add(self, transition: Transition, domain: State | None) -> None:
        machine = self._machine
        if domain is not None and domain.is_leaf:
            return
        for state in machine.chart.named(transition.targets):
            self._add_descendants(state)
        for state in machine._effective(transition.targets):
            self._add_ancestors(state, domain)
        if domain is not None and domain.kind == "parallel":
            self._add_regions(domain)  # only where a parallel state stays while what is inside is entered anew

    def _add_descendants(self, state: State) -> None:
        if state.is_history:
            self._add_history(state)
            return
        self.states.add(state)
        if state.kind == "compound":
            self.by_default.add(state)
            self._add_each(self._machine.chart.named(state.initial), state)
        elif state.kind == "parallel":
            self._add_regions(state)

    def _add_history(self, state: State) -> None:
        remembered = self._machine.history.get(state)
        if remembered is None:
            self.history_actions[state.parent] = state.initial_actions
            remembered = self._machine.chart.named(state.initial)
        self._add_each(remembered, state.parent)

    def _add_each(self, states: list[State], around: State) -> None:
        for state in states:
            self._add_descendants(state)
        for state in states:
            self._add_ancestors(state, around)

    def _add_ancestors(self, state: State, domain: State | None) -> None:
        for ancestor in state.ancestors():
            if ancestor is domain:
                break
            self.states.add(ancestor)
            if ancestor.kind == "parallel":
                self._add_regions(ancestor)

    def _add_regions(self, parallel: State) -> None:
        for child in parallel.real_children:
            if not any(state is child or state.is_inside(child) for state in self.states):
                self._add_descendants(child)
