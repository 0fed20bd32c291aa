"""The actions on a run of map-reduce, from the page of its instance."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.shared.access import View
from dashboard.shared.permissions import require_audited
from machines.engine import errors
from machines.mapreduce import actions as runs
from machines.mapreduce.builtin_machines import RUN
from machines.people.actor import Actor

SUCCESS = {"retry": "Retrying what is not finished", "remove": "A worker removes the run"}


def _make_view(name: str) -> View:
    @require_audited("operate", f"run.{name}", instance="id")
    def view(request: HttpRequest, machine: str, id: str) -> HttpResponse:
        if machine != RUN:
            raise Http404("Runs are of map_reduce alone.")
        if request.method != "POST":
            return redirect("signalbox:instance", machine, id)
        try:
            runs.act(Actor.of(request), id, name)
        except (errors.Refused, errors.Suspended) as error:
            messages.error(request, f"Not done: {error.message} ({error.code})")
        else:
            messages.success(request, SUCCESS[name])
        return redirect("signalbox:instance", machine, id)

    return view


retry = _make_view("retry")
remove = _make_view("remove")
