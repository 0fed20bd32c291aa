"""The engine as one person sees it: whatever it tells of a machine's instances and jobs, without what is hidden."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from machines.connections import get_engine
from machines.engine import Engine, Explanation, Instance, Job, Page, Step
from machines.masking import Veil, closed
from machines.services import Actor, instances, jobs
from machines.services.reading import veil_of


class Sight:
    """Stands in for the engine where a page reads one machine: what holds data is asked of the services, all under one
    veil; what holds none is the engine's own answer."""

    def __init__(self, engine: Engine, actor: Actor, veil: Veil) -> None:
        self._engine = engine
        self._actor = actor
        self.veil = veil

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def get(self, machine: str, id: str) -> Instance:
        return instances.get(self._actor, machine, id, veil=self.veil)

    def history(self, machine: str, id: str, **asked: Any) -> list[Step]:
        return instances.history(self._actor, machine, id, veil=self.veil, **asked)

    def explain(self, machine: str, id: str, event: str, payload: Any = None) -> Explanation:
        return instances.explain(self._actor, machine, id, event, payload, veil=self.veil)

    def find(self, machine: str, **asked: Any) -> Page:
        """Lists on pages show no data, so that nobody is given any."""
        return instances.find(self._actor, machine, veil=closed(machine), **asked)

    def job(self, machine: str, id: str) -> Job:
        return jobs.get(self._actor, machine, id, veil=self.veil)

    def jobs(self, machine: str, queue: str, **asked: Any) -> list[Job]:
        return jobs.listed(self._actor, machine, queue, veil=self.veil, brief=True, **asked)


def sight(request: HttpRequest, machine: str) -> Sight:
    """What the person behind a request sees of a machine."""
    actor = Actor.of(request)
    return Sight(get_engine(), actor, veil_of(actor, machine))
