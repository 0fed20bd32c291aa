"""Decides which queues this worker serves: those that definitions feed and that it has a handler for."""

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from machines.engine import Engine, errors
from machines.engine.definitions import compile_definition
from machines.worker.registry import Registry

log = logging.getLogger(__name__)

PEEK = 50  # jobs of a queue that nothing feeds that are looked at for one this worker has a handler for
SOME = 50  # partitions whose lists of queues are read in one look
MEET = 5.0  # seconds
MOST_POSSIBLE = 500  # bells of queues that may never be: past that they are found by looking, half a minute later

Feeds = dict[str, set[str]]  # queue -> handlers whose jobs it carries


class ServedQueue(NamedTuple):
    """One queue of one machine."""

    machine: str
    queue: str

    def __str__(self) -> str:
        return f"{self.machine}/{self.queue}"


class ServedQueues:
    """The queues to take from, kept up to date while machines are published.

    Every published version counts: instances of an old one still need their handlers. A queue is
    served when at least one of its handlers is here; the jobs of the others are left for other workers.

    Jobs may also be put on queues that no definition feeds. Of those a worker serves the ones named in its options,
    those that are called like a handler of its own, and those that hold a job for one when it looks.
    """

    def __init__(self, engine: Engine, registry: Registry, only: Iterable[str] = ()) -> None:
        self._engine = engine
        self._registry = registry
        self._only = frozenset(only)
        self._feeds: dict[tuple[str, int], Feeds] = {}
        self._current: dict[str, str] | None = None
        self._unknown: frozenset[str] = frozenset()
        self._last = ""  # the machine whose list of queues was read last
        self._fed_queues: dict[ServedQueue, set[str]] = {}
        self._met: dict[ServedQueue, float] = {}  # queues for other workers, and when they were looked into
        self._bare: set[ServedQueue] = set()  # that exist, no definition feeds and this worker serves
        self.machines: list[str] = []
        self.served: list[ServedQueue] = []
        self.heard: list[ServedQueue] = []  # the same, and those that may come to be
        self.known: frozenset[ServedQueue] = frozenset()  # the same, to ask quickly
        self.missing: dict[ServedQueue, set[str]] = {}

    def refresh(self, *, names: bool = True, news: bool = True) -> bool:
        """Look at what is published, and with ``names`` at some of the queues that nothing feeds; return whether that
        changed which queues are served. Without ``news`` all versions are read only when the list of machines changed,
        or after some minutes."""
        before = self.heard
        current = self._engine.current_versions() if news else self._engine.recent_versions()
        changed, bare = current != self._current, self._bare
        added: set[str] = set()
        if changed:
            known = self._current or {}
            added = {name for name, named in current.items() if known.get(name) != named}
            self._forget({name for name, named in known.items() if named != current.get(name)})
            for machine in added:
                self._learn(machine)
        fed = self._read_fed_queues() if changed else self._fed_queues
        if names or added:
            looked = added | (self._choose_machines(current) if names else set())
            kept = {r for r in self._bare if r.machine in current and r.machine not in looked}
            self._bare = kept | self._find_bare(sorted(looked), fed)
        self._current = current
        if changed:
            self.machines = sorted(current)
        if changed or self._bare != bare:
            self._choose(fed)
        return self.heard != before

    def _choose_machines(self, current: Mapping[str, str]) -> set[str]:
        """Return the machines whose lists of queues are read this time: some, and all of them in turn."""
        names = sorted(current)
        later = [name for name in names if name > self._last]
        chosen: list[str] = []
        count = 0
        for name in [*later, *(name for name in names if name <= self._last)]:
            count += len(self._engine.wakeups.roots([name]))
            if chosen and count > SOME:
                break
            chosen.append(name)
        self._last = chosen[-1] if chosen else ""
        return set(chosen)

    def meet(self, route: ServedQueue, now: float) -> bool:
        """Say whether to serve a queue that rang and was not known, and remember it. A queue whose jobs are for other
        workers is looked into every few seconds at most."""
        if self._fed_queues.get(route) or not self._is_wanted(route):
            return False
        if not self._is_claimed(route):
            if now - self._met.get(route, -float("inf")) < MEET:
                return False
            self._met[route] = now
            if not self._has_work(route):
                return False
        self._bare = self._bare | {route}
        self._choose(self._fed_queues)
        return True

    def _forget(self, machines: set[str]) -> None:
        """Forget a machine: wiped and published anew, it has the same version numbers, and maybe nothing else of the
        old one."""
        self._feeds = {named: feeds for named, feeds in self._feeds.items() if named[0] not in machines}

    def _learn(self, machine: str) -> None:
        for version in self._engine.versions(machine):
            if (machine, version) not in self._feeds:
                self._feeds[machine, version] = self._feeds_of(machine, version)

    def _feeds_of(self, machine: str, version: int) -> Feeds:
        try:
            return compile_definition(self._engine.definition(machine, version)).feeds
        except errors.EngineUnavailable:
            raise  # it can be read later; what is noted here is noted for good
        except errors.SignalboxError as error:
            log.warning("version %s of %s cannot be read here: %s", version, machine, error)
            return {}

    def _read_fed_queues(self) -> dict[ServedQueue, set[str]]:
        """Return the queues that definitions feed, with the handlers their jobs ask for."""
        fed: dict[ServedQueue, set[str]] = {}
        for (machine, _version), feeds in self._feeds.items():
            for queue, sources in feeds.items():
                fed.setdefault(ServedQueue(machine, queue), set()).update(sources)
        self._fed_queues = fed
        return fed

    def _find_bare(self, machines: list[str], fed: Mapping[ServedQueue, set[str]]) -> set[ServedQueue]:
        found = {ServedQueue(*name) for name in self._engine.queue_names(machines)}
        strange = {r for r in found if not fed.get(r) and self._is_wanted(r)}
        served = {r for r in strange if r in self._bare or self._is_claimed(r)}
        return served | {
            ServedQueue(*r) for r in self._engine.ready(sorted(strange - served)) if self._has_work(ServedQueue(*r))
        }

    def _is_claimed(self, route: ServedQueue) -> bool:
        return bool(self._only) or self._registry.claims(*route)

    def _has_work(self, route: ServedQueue) -> bool:
        try:
            waiting = self._engine.jobs(*route, place="ready", limit=PEEK)
        except errors.EngineUnavailable:
            raise
        except errors.SignalboxError:
            return False
        return any(job.src in self._registry for job in waiting)

    def _is_wanted(self, route: ServedQueue) -> bool:
        return not self._only or route.queue in self._only or str(route) in self._only

    def _choose(self, fed: Mapping[ServedQueue, set[str]]) -> None:
        wanted = {route: sources for route, sources in fed.items() if self._is_wanted(route)}
        self._warn_of_unknown({*wanted, *self._bare})
        here = {r for r, sources in wanted.items() if any(src in self._registry for src in sources)} | self._bare
        missing = {r: lacking for r, sources in wanted.items() if (lacking := self._find_lacking(sources))}
        for route, lacking in sorted(missing.items()):
            if lacking != self.missing.get(route):
                log.warning("no handler here for %s on %s: left for other workers", ", ".join(sorted(lacking)), route)
        self.missing = missing
        self.served = sorted(here)
        heard = [*self.served, *sorted(self._list_possible(fed) - here)]
        if heard != self.heard:
            self.heard, self.known = heard, frozenset(heard)

    def _list_possible(self, fed: Mapping[ServedQueue, set[str]]) -> set[ServedQueue]:
        """List queues that nothing feeds and nobody has put a job on so far, on whose bells to listen all the
        same."""
        if self._only:
            names = [name for name in self._only if "/" not in name]
            found = {ServedQueue(machine, name) for machine in self.machines for name in names}
        else:
            found = {ServedQueue(*queue) for queue in self._registry.list_queues(self.machines)}
        found |= {
            ServedQueue(*name.split("/", 1))
            for name in self._only
            if "/" in name and name.split("/")[0] in self.machines
        }
        found = {route for route in found if not fed.get(route) and self._is_wanted(route)}
        return found if len(found) <= MOST_POSSIBLE else set()

    def _warn_of_unknown(self, known: set[ServedQueue]) -> None:
        """Warn of a queue that was asked for and that nothing feeds: a slip of the pen, or its machine comes later."""
        names = {route.queue for route in known} | {str(route) for route in known}
        unknown = self._only - names
        if unknown and unknown != self._unknown:
            log.warning("no published machine feeds a queue called %s", ", ".join(sorted(unknown)))
        self._unknown = unknown

    def _find_lacking(self, sources: set[str]) -> set[str]:
        return {src for src in sources if src not in self._registry}
