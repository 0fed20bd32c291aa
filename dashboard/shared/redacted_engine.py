"""The engine as one person may see it: what pages and API operations read, redacted, of machines in the person's scope.

Deny by default. A method of the engine does not exist here until it is written down, with what happens to its answer.
``tests/test_import_graph.py`` keeps the engine itself out of pages and API operations.

- Methods made by ``_pass`` take a machine that the person sees, and pass on counts, times, definitions, and names of
  states, queues, jobs and versions. These are no data of instances.
- Methods of all machines answer for those that the person sees.
- ``inspect``, ``get``, ``history``, ``explain``, ``explain_all``, ``job``, ``jobs`` and ``replay`` go through the
  queries of ``machines`` and one redactor for each machine.
- ``find``, ``find_ids``, ``get_many`` and ``problems`` feed lists. Lists show no data, so everybody gets them without
  sensitive values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.http import HttpRequest

from machines.audit.redaction import MASK, Redactor, strict_redactor
from machines.catalog.versions import comparison
from machines.connections import get_engine
from machines.engine import (
    Engine,
    Explanation,
    Inspection,
    Instance,
    Job,
    Page,
    Problem,
    Replay,
    Rollout,
    SignalboxError,
    Step,
    Survey,
    Tally,
)
from machines.engine.definitions import CompiledDefinition
from machines.engine.records import PartialList
from machines.engine.simulation import SimulatedStep
from machines.engine.verification.report import VerificationFinding
from machines.instances import queries
from machines.instances.queries import conceal_terms, explain_all
from machines.instances.words import WordPage, find_words
from machines.jobs import queries as job_queries
from machines.people.actor import Actor
from machines.people.permissions import among
from machines.people.redaction import redactor_of

P = ParamSpec("P")
R = TypeVar("R")
Definition = Mapping[str, Any] | CompiledDefinition | str
"""A definition, or the name of a published machine."""


def _pass(method: Callable[Concatenate[Engine, str, P], R]) -> Callable[Concatenate[RedactedEngine, str, P], R]:
    """Make a method that demands ``view`` on its machine and returns what the engine's own method returns."""
    name = method.__name__

    @wraps(method)
    def call(self: RedactedEngine, machine: str, /, *args: P.args, **asked: P.kwargs) -> R:
        found: R = getattr(self._engine, name)(self._demand_view(machine), *args, **asked)
        return found

    return call


class RedactedEngine:
    """Replaces the engine in pages and API operations. Only the methods defined here exist."""

    def __init__(self, actor: Actor, engine: Engine | None = None) -> None:
        """Read from the engine of this process, unless another one is given."""
        self._engine = engine or get_engine()
        self._actor = actor
        self._redactors: dict[str, Redactor] = {}

    def redactor(self, machine: str) -> Redactor:
        """Return what hides a machine's values from this person: the same one for all answers."""
        if machine not in self._redactors:
            self._redactors[machine] = redactor_of(self._actor, machine)
        return self._redactors[machine]

    def _demand_view(self, machine: str) -> str:
        """Return the machine. Raise Forbidden where the person may not see it."""
        self._actor.demand("view", machine)
        return machine

    def _select_visible(self, machines: Iterable[str]) -> list[str]:
        """Return those of the machines that the person sees."""
        scope = self._actor.scope()
        return [name for name in machines if name in scope]

    # Figures, names and definitions of one machine

    live = _pass(Engine.live)
    queues = _pass(Engine.queues)
    index_progress = _pass(Engine.index_progress)
    waits = _pass(Engine.waits)
    versions = _pass(Engine.versions)
    definition = _pass(Engine.definition)
    diff = _pass(Engine.diff)
    rollout = _pass(Engine.rollout)
    version_figures = _pass(Engine.version_figures)

    def tally(self, machine: str, **asked: Any) -> Tally:
        """Return counts, unless they are by a hidden field: counts of a filter reveal what it matched."""
        reveal = self._actor.may("reveal", self._demand_view(machine))
        return self._engine.tally(machine, **conceal_terms(reveal, machine, asked))

    # Figures and names of all machines

    def machines(self) -> dict[str, int]:
        scope = self._actor.scope()
        return {name: version for name, version in self._engine.machines().items() if name in scope}

    def survey(self) -> Survey:
        """Return figures of the machines that the person sees, and the workers without jobs and queues of others."""
        scope = self._actor.scope()
        found = self._engine.survey().only(scope)
        return replace(found, workers=[row.only(scope) for row in found.workers])

    def rollouts(self, *, recent: bool = False) -> dict[str, Rollout]:
        scope = self._actor.scope()
        return {name: rollout for name, rollout in self._engine.rollouts(recent=recent).items() if name in scope}

    def find_machines(self, id: str, machines: Iterable[str], *, of: str = "instance") -> list[str]:
        return self._engine.find_machines(id, self._select_visible(machines), of=of)

    def find_indexed(self, field: str, machines: Iterable[str]) -> list[str]:
        return self._engine.find_indexed(field, self._select_visible(machines))

    def queue_names(self, machines: Iterable[str]) -> PartialList[tuple[str, str]]:
        return self._engine.queue_names(self._select_visible(machines))

    # Definitions that the person brings

    def simulate(
        self,
        definition: Definition,
        events: Iterable[Any],
        data: Mapping[str, Any] | None = None,
        **asked: Any,
    ) -> list[SimulatedStep]:
        """Play a run on a definition, or on a machine that the person sees. It reads no instance."""
        return self._engine.simulate(self._check_readable(definition), events, data, **asked)

    def verify(self, definition: Definition, **asked: Any) -> list[VerificationFinding]:
        """Verify a definition, or a machine that the person sees. It reads no instance."""
        return self._engine.verify(self._check_readable(definition), **asked)

    def _check_readable(self, definition: Definition) -> Definition:
        return self._demand_view(definition) if isinstance(definition, str) else definition

    # Instances and jobs

    def inspect(self, machine: str, id: str, **asked: Any) -> Inspection:
        """Redact part by part, by one redactor, which all further answers go through as well."""
        found, self._redactors[machine] = queries.inspect(self._actor, machine, id, **asked)
        return found

    def explain_all(self, machine: str, id: str, events: Iterable[str]) -> dict[str, Explanation | SignalboxError]:
        return explain_all(self._actor, machine, id, events, redactor=self.redactor(machine))

    def get(self, machine: str, id: str) -> Instance:
        return queries.get(self._actor, machine, id, redactor=self.redactor(machine))

    def history(self, machine: str, id: str, **asked: Any) -> list[Step]:
        return queries.history(self._actor, machine, id, redactor=self.redactor(machine), **asked)

    def explain(self, machine: str, id: str, event: str, payload: Any = None) -> Explanation:
        return queries.explain(self._actor, machine, id, event, payload, redactor=self.redactor(machine))

    def job(self, machine: str, id: str) -> Job:
        return job_queries.get(self._actor, machine, id, redactor=self.redactor(machine))

    def jobs(self, machine: str, queue: str, **asked: Any) -> list[Job]:
        return job_queries.find(self._actor, machine, queue, redactor=self.redactor(machine), brief=True, **asked)

    def replay(self, machine: str, version: int, *, sample: int | None = None) -> Replay:
        """Run recorded histories on a version; without values. Takes the right to operate."""
        return comparison.replay(self._actor, machine, version, sample=sample)

    # Lists of instances

    def find(self, machine: str, **asked: Any) -> Page:
        return queries.find(self._actor, machine, redactor=strict_redactor(machine), **asked)

    def find_ids(self, machine: str, prefix: str, limit: int) -> list[str]:
        """Return ids that begin with a prefix."""
        return [
            one.id for one in self._engine.find(self._demand_view(machine), id_prefix=prefix, limit=limit).instances
        ]

    def find_words(self, words: Sequence[str], machines: Iterable[str], **asked: Any) -> WordPage:
        """Find instances by words, in what the person may see. Hits tell where a word stands, and no values."""
        return find_words(self._actor, words, self._select_visible(machines), **asked)

    def get_many(self, machine: str, ids: Iterable[str]) -> list[Instance | SignalboxError]:
        """Return where instances stand, without their data and timers."""
        scope = self._actor.scope()
        return [
            among(replace(one, data={}, timers=[]), scope) if isinstance(one, Instance) else one
            for one in self._engine.get_many(self._demand_view(machine), ids)
        ]

    def problems(self, machine: str, ids: Iterable[str]) -> dict[str, list[Problem]]:
        """Return the kind of each problem. Its text, which a handler may fill with anything, is always redacted."""
        found = self._engine.problems(self._demand_view(machine), ids)
        return {id: [replace(one, text=MASK if one.text else "") for one in wrong] for id, wrong in found.items()}


def redacted_engine(request: HttpRequest) -> RedactedEngine:
    """Return the engine as the person of this request may see it."""
    return RedactedEngine(Actor.of(request))
