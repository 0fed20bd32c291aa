"""Alarms on the time in a state and on the share of a transition: the setting ``INSIGHT_ALARMS``, and what it measured
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
from .questions import drift, share_drift
from .records import Drift, Search
from .store import Manifest, Store, get_store

log = logging.getLogger(__name__)

PAUSE = 300_000  # ms between two looks


@dataclass(frozen=True, slots=True)
class DriftRule:
    """An alarm where the quantile ``percent`` of the stays in a state is over ``factor`` times that of one window (ms)
    earlier; or, with a ``target``, the share of the steps out of the state that lead there. ``text``: the rule as the
    setting has it."""

    text: str
    percent: str
    machine: str
    state: str
    target: str
    factor: float
    window: int

    def is_broken(self, found: Drift) -> bool:
        """Return whether there is an alarm; fewer than 20 in a window are too few to tell, and a difference of shares
        may be chance."""
        if min(found.count, found.count_before) < LEAST or found.now <= self.factor * found.before:
            return False
        before, now = ((round(share * whole), whole) for share, whole in (
            (found.before, found.count_before), (found.now, found.count)))  # fmt: skip
        return not self.target or not compare_shares(self.text, before, now).is_noise

    def measure(self, store: Store) -> Drift:
        search = Search(self.machine)
        if self.target:
            return share_drift(search, self.state, self.target, self.window, store=store)
        return drift(search, self.state, float(self.percent) / 100, self.window, store=store)


def list_rules(machines: Container[str]) -> Iterator[DriftRule]:
    """Yield the rules for some machines."""
    for text in conf.INSIGHT_ALARMS:
        if (match := DRIFT.fullmatch(text)) and match["machine"] in machines:
            percent, machine, state, target, factor, window = match.groups("")
            yield DriftRule(text, percent, machine, state, target, float(factor), parse_duration(window) or 1)


def measure(store: Store, machine: str, states: Container[str]) -> dict[str, Sequence[object]]:
    """Return what the manifest holds of each rule for a machine, nothing of one that could not be measured.
    ``states``: of its current version."""
    found: dict[str, Sequence[object]] = {}
    for rule in list_rules({machine}):
        found[rule.text] = ()
        try:
            found[rule.text] = astuple(rule.measure(store))
        except BadSearch as error:  # it took too long
            log.warning("INSIGHT_ALARMS has %r: %s", rule.text, error)
        named = f"{rule.state}, {rule.target or rule.state}".split(", ")
        if missing := [leaf for leaf in named if leaf not in states]:
            log.warning("INSIGHT_ALARMS has %r, but %s has no state %s", rule.text, machine, missing[0])
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
