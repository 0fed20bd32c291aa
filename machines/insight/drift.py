"""Alarms on times and shares of states, transitions and paths: the setting ``INSIGHT_ALARMS``, and what it measured
when facts were last read."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass

from machines.conf import conf
from machines.conf.kinds import DRIFT
from machines.engine.definitions.durations import parse_duration

from .comparison import LEAST, compare_shares
from .errors import BadSearch, InsightOff, StoreUnavailable
from .questions import drift, path_drift, share_drift
from .records import Drift, Search
from .store import Manifest, Store, get_store

log = logging.getLogger(__name__)

PAUSE = 300_000  # ms between two looks


@dataclass(frozen=True, slots=True)
class DriftRule:
    """An alarm where a figure is over ``factor`` times that of one window (ms) earlier: with a ``percent`` that
    quantile of the stays in a state or, of several ``states``, of the time of this path; else the share of the steps
    out of a state that lead to another one or, of more states, of this path. ``text``: as the setting has it."""

    text: str
    percent: str
    machine: str
    states: tuple[str, ...]
    factor: float
    window: int

    def is_broken(self, found: Drift) -> bool:
        """Return whether there is an alarm; fewer than 20 in a window are too few to tell, and a difference of shares
        may be chance."""
        if min(found.count, found.count_before) < LEAST or found.now <= self.factor * found.before:
            return False
        before, now = ((round(share * whole), whole) for share, whole in (
            (found.before, found.count_before), (found.now, found.count)))  # fmt: skip
        return bool(self.percent) or not compare_shares(self.text, before, now).is_noise

    @property
    def is_path(self) -> bool:
        return len(self.states) > (1 if self.percent else 2)

    def measure(self, store: Store) -> Drift:
        search, quantile = Search(self.machine), float(self.percent) / 100 if self.percent else None
        if self.is_path:
            return path_drift(search, self.states, quantile, self.window, store=store)
        if quantile is None:
            return share_drift(search, *self.states, self.window, store=store)
        return drift(search, *self.states, quantile, self.window, store=store)


def list_rules(machines: Container[str]) -> Iterator[DriftRule]:
    """Yield the rules for some machines."""
    for text in conf.INSIGHT_ALARMS:
        if (match := DRIFT.fullmatch(text)) and match["machine"] in machines:
            percent, machine, states, last, factor, window = match.groups("")
            named = tuple(states.split(" > ")) + ((last,) if last else ())
            yield DriftRule(text, percent, machine, named, float(factor), parse_duration(window) or 1)


def measure(store: Store, machine: str, states: Container[str]) -> dict[str, Sequence[object]]:
    """Return what the manifest holds of each rule for a machine, nothing of one that could not be measured.
    ``states``: the leaves of its current version."""
    found: dict[str, Sequence[object]] = {}
    for rule in list_rules({machine}):
        found[rule.text] = ()
        try:
            found[rule.text] = astuple(rule.measure(store))
        except BadSearch as error:  # it took too long, or asks for what regions do not have
            log.warning("INSIGHT_ALARMS has %r: %s", rule.text, error)
        if missing := [leaf for leaf in ", ".join(rule.states).split(", ") if leaf not in states]:
            log.warning("INSIGHT_ALARMS has %r, but %s has no leaf state %s", rule.text, machine, missing[0])
    return found


def find_drifts(machines: Container[str]) -> Iterator[tuple[DriftRule, Drift]]:
    """Yield the rules for some machines that were broken at the last look; none while the store is away or off."""
    known: dict[str, Manifest] = {}
    with suppress(InsightOff, StoreUnavailable):
        for rule in list_rules(machines):
            if rule.machine not in known:
                known[rule.machine] = get_store().manifest(rule.machine)
            held = known[rule.machine].drifts.get(rule.text)
            if held and rule.is_broken(found := Drift(*held)):
                yield rule, found
