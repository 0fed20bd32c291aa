"""Shows the machine of a row in the project's admin: a filter by state, events to fire, the history and the diagram.

::

    @admin.register(Order)
    class OrderAdmin(MachineAdminMixin, admin.ModelAdmin):
        list_display = ["number", "status"]

It works without script, has no inline style, and fires by the same service as the product's own pages: permissions, the
groups of transitions, approvals, rate limits and the audit are the same.
"""

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from machines.approvals import actions as approvals
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.queries import find_version
from machines.connections import get_engine
from machines.diagrams import EventWords
from machines.engine import BadPayload, EngineUnavailable, Instance, LookupFailed, SignalboxError
from machines.instances import actions as instances
from machines.instances.event_forms import EventAction, EventForm, fill_event_form, list_event_actions
from machines.people import permissions
from machines.people.actor import Actor
from machines.people.admin import ReadOnly
from machines.people.redaction import redactor_of

from . import fire, reading, registry
from .errors import status_of
from .models import OutboxEntry

STEPS = 25  # of the history
FOLDER = "admin/machines/bound"
LIST = "admin/machines/change_list.html"
"""In place of Django's, behind those that a project may have for the app or the model."""


class MachineAdminMixin:
    """For a ModelAdmin of a model with a machine field, before ``admin.ModelAdmin``.

    ``machine_field``: the field's name, where the model has several. A ModelAdmin with a ``change_form_template`` of
    its own includes ``admin/machines/bound/panel.html`` there.
    """

    machine_field = ""
    change_form_template = f"{FOLDER}/change_form.html"

    def _find_bound_field(self) -> Any:
        found = registry.fields_of(self.model)  # type: ignore[attr-defined]
        return next(field for field in found if self.machine_field in ("", field.name))

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """Add a filter of the states that rows have."""
        given, name = list(super().get_list_filter(request)), self._find_bound_field().name  # type: ignore[misc]
        return given if name in given else [*given, name]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Add the state, and of a saved row the field with the instance's id."""
        given, field = list(super().get_readonly_fields(request, obj)), self._find_bound_field()  # type: ignore[misc]
        fixed = [field.name] if obj is None or field.id_field.primary_key else [field.name, field.id_field.name]
        return [*given, *(name for name in fixed if name not in given)]

    def get_urls(self) -> list[Any]:
        meta = self.model._meta  # type: ignore[attr-defined]
        guarded = self.admin_site.admin_view(self.machine_view)  # type: ignore[attr-defined]
        name = f"{meta.app_label}_{meta.model_name}_machine"
        own = path("<path:object_id>/machine/", transaction.non_atomic_requests(guarded), name=name)
        return [own, *super().get_urls()]  # type: ignore[misc]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Name the environment above the list, where the project has no template of its own for it."""
        answer: HttpResponse = super().changelist_view(request, extra_context)  # type: ignore[misc]
        if isinstance(answer, TemplateResponse) and isinstance(answer.template_name, list):
            answer.template_name = [*answer.template_name[:-1], LIST]
        return answer

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the panel of the machine below the form."""
        context = dict(extra_context or {})
        row = self.get_object(request, unquote(object_id))  # type: ignore[attr-defined]
        if row is not None and request.method == "GET" and self._may_see(request, row):
            context["bound"] = self._panel(request, row)
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)  # type: ignore[misc]
        return answer

    def machine_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the machine of a row by itself; a POST fires."""
        row = self.get_object(request, unquote(object_id))  # type: ignore[attr-defined]
        if row is None:
            raise Http404("no such row")
        if not self._may_see(request, row):
            raise PermissionDenied
        request.current_app = self.admin_site.name  # type: ignore[attr-defined]
        if request.method != "POST":
            return self._page(request, row)
        return self._fire(request, row)

    def _may_see(self, request: HttpRequest, row: Model) -> bool:
        return bool(self.has_view_or_change_permission(request, row))  # type: ignore[attr-defined]

    # Firing

    def _fire(self, request: HttpRequest, row: Model) -> HttpResponse:
        field, event = self._find_bound_field(), request.POST.get("event", "")
        actor = Actor.of(request)
        try:
            instance = get_engine().get(field.machine, field.instance_id(row))
            actor.demand("fire", field.machine, action="fire", instance=instance.id, target=event)
            form = fill_event_form(find_version(instance), instance, event, request.POST)
            if not form.is_valid():
                return self._page(request, row, form, status=400)
            return self._send(request, row, instance, form)
        except (EngineUnavailable, LookupFailed) as error:
            return self._page(request, row, error=error, status=status_of(error) or 400)

    def _send(self, request: HttpRequest, row: Model, seen: Instance, form: EventForm) -> HttpResponse:
        field, actor, event = self._find_bound_field(), Actor.of(request), form.outline.name
        try:
            after = instances.fire(
                actor, field.machine, seen.id, event, form.payload(), expect=form.expect, reason=form.reason
            )
        except ApprovalNeeded as needed:
            try:
                asked = approvals.ask(actor, needed)
            except SignalboxError as error:
                return self._page(request, row, form, error, status=400)
            messages.warning(request, f"Approval requested for {event}: it runs once another person approves it"
                             f" (request {asked.pk}).")  # fmt: skip
        except SignalboxError as error:
            if isinstance(error, BadPayload):
                form.blame(error.field, f"{redactor_of(actor, field.machine).error(error)} ({error.code})")
            return self._page(request, row, form, error, status=status_of(error) or 400)
        else:
            fire.write_through(field, row, after, fire.alias_of(row))
            message = f"Fired {event}: {after.state}, revision {after.revision}."
            self.log_change(request, row, message)  # type: ignore[attr-defined]
            messages.success(request, message)
        return HttpResponseRedirect(self._url(row, "change"))

    # Showing

    def _url(self, row: Model, what: str) -> str:
        meta = self.model._meta  # type: ignore[attr-defined]
        site = self.admin_site.name  # type: ignore[attr-defined]
        return reverse(f"{site}:{meta.app_label}_{meta.model_name}_{what}", args=[quote(row.pk)])

    def _page(
        self, request: HttpRequest, row: Model, submitted: EventForm | None = None, error: SignalboxError | None = None,
        *, status: int = 200,
    ) -> HttpResponse:  # fmt: skip
        context = {
            **self.admin_site.each_context(request),  # type: ignore[attr-defined]
            "opts": self.model._meta,  # type: ignore[attr-defined]
            "title": str(row),
            "row_url": self._url(row, "change"),
            "bound": self._panel(request, row, submitted, error),
        }
        return TemplateResponse(request, f"{FOLDER}/machine.html", context, status=status)

    def _panel(
        self, request: HttpRequest, row: Model, submitted: EventForm | None = None, error: SignalboxError | None = None
    ) -> dict[str, Any]:
        """Return what the templates show. Without the right to see the machine it is the state alone."""
        field = self._find_bound_field()
        state = getattr(row, field.attname)
        panel: dict[str, Any] = {
            "machine": field.machine, "state": str(state), "revision": state.revision, "url": self._url(row, "machine"),
            "problem": None, "steps": [], "actions": [], "drawing": "",
        }  # fmt: skip
        actor = Actor.of(request)
        if not permissions.allows(request.user, "view", field.machine):
            return panel
        if isinstance(error, EngineUnavailable | LookupFailed):  # they repeat no values of the instance
            return panel | {"problem": f"{error.message} ({error.code})"}
        try:
            redacted = redactor_of(actor, field.machine).of(state.id)
            if error is not None:
                panel["problem"] = f"{redacted.error(error)} ({error.code})"
            panel["drawing"] = reading.diagram(field.machine, str(state))
            instance = get_engine().get(field.machine, state.id)
            steps = redacted.steps(get_engine().history(field.machine, state.id, limit=STEPS))
            panel["actions"] = _list_event_actions(field, instance, request.user, submitted)
        except (EngineUnavailable, LookupFailed) as away:
            return panel | {"problem": panel["problem"] or f"{away.message} ({away.code})"}
        timed_steps = [(step, datetime.fromtimestamp(step.at / 1000, tz=UTC)) for step in steps]
        version = find_version(instance)
        words = EventWords(version.outline if version else None)
        return panel | {"instance": instance, "steps": timed_steps, "words": words, "state": instance.state}


def _list_event_actions(field: Any, instance: Instance, user: Any, submitted: EventForm | None) -> list[EventAction]:
    """Return the events that the state takes and this user may fire; and the one that was just tried."""
    names = {event.name for event in reading.available(field, instance.id, user)}
    found = list_event_actions(find_version(instance), instance, submitted)
    return [action for action in found if action.event.name in names or action.submitted]


@admin.register(OutboxEntry)
class OutboxEntryAdmin(ReadOnly, admin.ModelAdmin):
    machine_field = "machine"
    list_display = ["made_at", "kind", "event", "machine", "instance", "state", "outcome", "tries", "actor"]
    list_filter = ["state", "kind", "outcome"]
    search_fields = ["machine__exact", "instance__exact", "event__exact", "actor__exact"]
    search_help_text = "exact machine, instance, event or actor"
    list_per_page = 50
    ordering = ["-pk"]
    fields = [
        "made_at", "kind", "event", "field", "machine", "instance", "actor", "reason", "expect", "state", "outcome",
        "message", "revision", "tries", "tried_at", "due", "ended_at",
    ]  # fmt: skip
    readonly_fields = fields
    actions = None
