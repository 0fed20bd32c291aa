"""The actions on a run of map-reduce, from the page of its instance."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from dashboard.shared.form_views import answer_form
from dashboard.shared.permissions import View
from machines.engine import errors
from machines.mapreduce import actions as runs
from machines.mapreduce.store import RUN
from machines.people.actor import Actor

SUCCESS = {"retry": "Retrying what is not finished", "remove": "A worker removes the run"}


def _make_view(name: str) -> View:
    @answer_form("instance", "operate", f"run.{name}", refused=(errors.Refused, errors.Suspended), instance="id")
    def view(request: HttpRequest, machine: str, id: str) -> str:
        if machine != RUN:
            raise Http404("Runs are of map_reduce alone.")
        runs.act(Actor.of(request), id, name)
        return SUCCESS[name]

    return view


ACTION_VIEWS = {name: _make_view(name) for name in SUCCESS}
