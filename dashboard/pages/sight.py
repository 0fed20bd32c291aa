"""The engine as one person sees it: whatever it tells of a machine's instances and jobs, without what is hidden."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpRequest

from machines.access import Scope, among, scope_of
from machines.connections import get_engine
from machines.engine import Engine, Explanation, Instance, Job, Page, Preview, Step
from machines.masking import Veil, veil


class Sight:
    """Stands in for the engine where a page reads one machine. What holds no data is the engine's own answer."""

    def __init__(self, engine: Engine, veil: Veil, scope: Scope) -> None:
        self._engine = engine
        self._scope = scope
        self.veil = veil

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def get(self, machine: str, id: str) -> Instance:
        return self.veil.instance(among(self._engine.get(machine, id), self._scope))

    def history(self, machine: str, id: str, **asked: Any) -> list[Step]:
        return self.veil.steps(self._engine.history(machine, id, **asked))

    def explain(self, machine: str, id: str, event: str, payload: Any = None, **asked: Any) -> Explanation:
        self.veil.learn(payload)
        return self.veil.explanation(self._engine.explain(machine, id, event, payload, **asked))

    def preview(self, machine: str, id: str, repair: str, **asked: Any) -> Preview:
        with self.veil.raising():
            return self.veil.preview(self._engine.preview(machine, id, repair, **asked))

    def find(self, machine: str, **asked: Any) -> Page:
        found = self._engine.find(machine, **asked)
        return found if self.veil.open else replace(found, instances=self.veil.instances(found.instances))

    def job(self, machine: str, id: str) -> Job:
        return self.veil.job(self._engine.job(machine, id))

    def jobs(self, machine: str, queue: str, **asked: Any) -> list[Job]:
        return [self.veil.job(job) for job in self._engine.jobs(machine, queue, **asked)]


def sight(request: HttpRequest, machine: str) -> Sight:
    """What the person behind a request sees of a machine."""
    return Sight(get_engine(), veil(request.user, machine), scope_of(request.user))
