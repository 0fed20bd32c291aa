"""Machines in the admin, with their versions, their diagram and their instances: those of a machine, by state, oldest
first, or one by its id; and one instance, with its events."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path

from machines.audit.redaction import strict_redactor
from machines.catalog.admin import (
    GroupGrants,
    UserGrants,
    drawing,
    instance_url,
    instances_url,
    machine_of,
    may_grant,
    moment,
    screen,
    write_log_entry,
)
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.models import Machine, MachineVersion
from machines.catalog.publishing import find_unrecorded
from machines.catalog.queries import find_version, get_version
from machines.connections import get_engine
from machines.diagrams import EventWords
from machines.engine import (
    BadInput,
    BadPayload,
    Conflict,
    EngineUnavailable,
    Instance,
    Live,
    LookupFailed,
    NotAllowed,
    Refused,
    SignalboxError,
    Suspended,
    UnknownMachine,
)
from machines.people.actor import Actor
from machines.people.admin import SCRIPTS, STYLES, ReadOnly, may
from machines.people.errors import TooFast
from machines.people.redaction import redactor_of

from . import actions as instances
from .event_forms import EventForm, fill_event_form, list_event_actions

PAGE = 50  # instances


@admin.register(Machine)
class MachineAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["name", "current", "description", "created_at", "adopted"]
    search_fields = ["name", "description"]
    fields = ["name", "description", "current", "version_policy", "created_at", "adopted"]
    readonly_fields = fields
    change_form_template = "admin/machines/machine/change_form.html"
    change_list_template = "admin/machines/change_list.html"
    inlines = [UserGrants, GroupGrants]
    ask: Callable[[Actor, ApprovalNeeded], Any]
    """Files a request for approval; the admin of ``machines.approvals`` sets it."""

    class Media:
        css = {"all": STYLES}
        js = SCRIPTS

    def has_change_permission(self, request: HttpRequest, obj: Machine | None = None) -> bool:
        """Allow what can be changed here: who has rights on the machine. The machine itself changes by publishing."""
        return self.has_view_permission(request) and may_grant(request)

    def save_model(self, request: HttpRequest, obj: Machine, form: object, change: bool) -> None:
        """Write nothing: the form holds no input, and a version may have been published meanwhile."""

    def get_urls(self) -> list[URLPattern]:
        guarded, page = self.admin_site.admin_view, partial(show_instance, ask=self.ask)
        own = [
            path("<int:machine>/instances/", guarded(show), name="machines_machine_instances"),
            path("<int:machine>/instance/", guarded(page), name="machines_machine_instance"),
        ]
        return own + super().get_urls()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Warn of machines that scripts have published and no worker has recorded yet."""
        if self.has_view_permission(request):
            _name_unrecorded(request)
        return super().changelist_view(request, extra_context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().change_view(
            request, object_id, form_url, (extra_context or {}) | _make_context(request, object_id)
        )


def _name_unrecorded(request: HttpRequest) -> None:
    try:
        new = [name for name in find_unrecorded() if may(request, "view", name)]
        if new:
            messages.info(request, f"Published by scripts, and recorded here by the next worker: {', '.join(new)}")
    except SignalboxError as error:
        messages.warning(request, f"Machines in Redis could not be looked up: {error.message} ({error.code})")


def _make_context(request: HttpRequest, object_id: str) -> dict[str, Any]:
    """Return what stands beside the fields. Nothing when there is no such machine: the admin says so itself."""
    machine = Machine.objects.filter(pk=object_id).first() if object_id.isdecimal() else None
    if machine is None or not may(request, "view", machine.name):
        return {}
    version = machine.versions.filter(number=machine.current).first()
    return {
        "machine": machine,
        "drawing": drawing(version) if version else "",
        "versions": machine.versions.select_related("published_by").defer("drawing", "definition")[:20],
    }


def show(request: HttpRequest, machine: int) -> HttpResponse:
    found = machine_of(request, machine)
    wanted = request.GET.get("id", "").strip()
    if wanted:
        return _jump(request, found, wanted)
    try:
        context, status = _list_instances(request, found), 200
    except EngineUnavailable:
        raise
    except SignalboxError as error:
        context, status = {"problem": error}, 404 if isinstance(error, LookupFailed) else 400
    return screen(request, "instances.html", found, f"Instances of {found}", status=status, **context)


def _jump(request: HttpRequest, machine: Machine, id: str) -> HttpResponse:
    """Redirect to the instance with this id, or back to the list with a message about it."""
    try:
        get_engine().get(machine.name, id)
    except (LookupFailed, BadInput) as error:
        messages.error(request, f"{error.message} ({error.code})")
        return HttpResponseRedirect(instances_url(machine))
    return HttpResponseRedirect(instance_url(machine, id))


def _list_instances(request: HttpRequest, machine: Machine) -> dict[str, Any]:
    engine = get_engine()
    live = engine.live(machine.name)
    state = request.GET.get("state") or None
    page = engine.find(machine.name, state=state, limit=PAGE, cursor=request.GET.get("cursor") or None)
    further = {"cursor": page.cursor} | ({"state": state} if state else {}) if page.cursor else None
    return {
        "state": state,
        "states": [(name, count, instances_url(machine, state=name)) for name, count in _count_states(machine, live)],
        "total": live.total,
        "everything": instances_url(machine),
        "rows": [_row(machine, instance) for instance in page],
        "further": instances_url(machine, **further) if further else "",
    }


def _count_states(machine: Machine, live: Live) -> list[tuple[str, int]]:
    """Return states in the order of the current definition, those around others with their sums; then those that only
    older versions have."""
    try:
        outline = get_version(machine.name, live.version).outline
    except UnknownMachine:
        return list(live.counts.items())
    states = [state.name for state in outline.states if state.type != "history" and state.name != outline.root]
    counted = outline.sum_counts(live.counts)
    past = [(name, count) for name, count in live.counts.items() if name not in counted]
    return [(name, counted[name]) for name in states] + past


def _row(machine: Machine, instance: Instance) -> dict[str, Any]:
    return {"instance": instance, "url": instance_url(machine, instance.id), "entered": moment(instance.entered)}


def show_instance(request: HttpRequest, machine: int, *, ask: Callable[..., Any]) -> HttpResponse:
    """Show an instance, and fire an event at it on POST. ``?id=`` names the instance."""
    found = machine_of(request, machine)
    id = request.GET.get("id", "")
    if request.method != "POST":
        return panel(request, found, _instance(found, id))
    Actor.of(request).demand("fire", found.name, action="fire", instance=id, target=request.POST.get("event", ""))
    return _fire(request, found, _instance(found, id), ask)


def _instance(machine: Machine, id: str) -> Instance:
    try:
        return get_engine().get(machine.name, id)
    except (LookupFailed, BadInput) as error:
        raise Http404(error.message) from error


def _fire(request: HttpRequest, machine: Machine, seen: Instance, ask: Callable[..., Any]) -> HttpResponse:
    event = request.POST.get("event", "")
    version = find_version(seen)
    form = fill_event_form(version, seen, event, request.POST)
    if not form.is_valid():
        return panel(request, machine, seen, form, status=400)
    actor = Actor.of(request)
    try:
        after = instances.fire(
            actor, machine.name, seen.id, event, form.payload(), expect=form.expect, reason=form.reason
        )
    except ApprovalNeeded as needed:
        try:
            filed = ask(actor, needed)
        except BadInput as error:
            return _show_failure(request, machine, seen, form, error)
        messages.warning(
            request,
            f"Approval requested: {filed.action} on {filed.subject} (request {filed.pk})."
            " It runs once another person approves it.",
        )
        return HttpResponseRedirect(instance_url(machine, seen.id))
    except TooFast:
        raise  # a refused person may repeat it any number of times, and the audit has it
    except SignalboxError as error:
        word = "Refused" if isinstance(error, Refused) else "Conflict" if isinstance(error, Conflict) else "Failed"
        said = strict_redactor(machine.name).error(error)
        write_log_entry(request, machine, f"{word}: {event} at {seen.id}: {said} ({error.code})", seen.id)
        return _show_failure(request, machine, seen, form, error)
    moved = f"{seen.state} → {after.state}" if seen.state != after.state else f"stays in {after.state}"
    write_log_entry(request, machine, f"Fired {event} at {after.id}: {moved}, revision {after.revision}.", after.id)
    messages.success(request, f"Fired {event}: {seen.id} is in {after.state}, revision {after.revision}.")
    return HttpResponseRedirect(instance_url(machine, seen.id))


def _show_failure(
    request: HttpRequest, machine: Machine, seen: Instance, form: EventForm, error: SignalboxError
) -> HttpResponse:
    """Return the page as things stand now, with the reason on top and what was entered still in its form."""
    if isinstance(error, BadPayload):
        text = redactor_of(Actor.of(request), machine.name).error(error)
        form.blame(error.field, f"{text} ({error.code})")
        return panel(request, machine, seen, form, status=400)
    if isinstance(error, LookupFailed):
        raise Http404(error.message) from error
    if not isinstance(error, Refused | Conflict | Suspended | NotAllowed | BadInput):
        raise error
    status = 400 if isinstance(error, BadInput) else 403 if isinstance(error, NotAllowed) else 409
    return panel(request, machine, _instance(machine, seen.id), form, error, status=status)


STEPS = 25  # of the history


@dataclass(frozen=True, slots=True)
class Field:
    """A data field, set or not."""

    name: str
    hint: str
    is_set: bool
    value: Any


def panel(
    request: HttpRequest,
    machine: Machine,
    instance: Instance,
    submitted: EventForm | None = None,
    error: SignalboxError | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """Render the page of an instance. ``submitted`` is the form that was sent and did not succeed, ``error`` what the
    engine said about it."""
    version = find_version(instance)
    may_fire = may(request, "fire", machine.name)
    redacted = redactor_of(Actor.of(request), machine.name).of(instance.id)
    instance = redacted.instance(instance)
    steps = redacted.steps(get_engine().history(machine.name, instance.id, limit=STEPS))
    return screen(
        request,
        "instance.html",
        machine,
        instance.id,
        status=status,
        instance=instance,
        entered=moment(instance.entered),
        created=moment(instance.created),
        drawing=drawing(version, instance.configuration) if version else "",
        data=_data(version, instance),
        may_fire=may_fire,
        suspended=moment(instance.suspended) if instance.suspended else None,
        waits=_waits(version, instance),
        kin=_list_kin(request, instance),
        actions=list_event_actions(version, instance, submitted) if may_fire else [],
        submitted=submitted,
        error=error,
        error_text=redacted.error(error) if error else "",
        is_conflict=isinstance(error, Conflict),
        is_refused=isinstance(error, Refused),
        candidates=redacted.explanation(error.explanation).candidates if isinstance(error, Refused) else [],
        steps=[(step, moment(step.at)) for step in steps],
        words=EventWords(version.outline if version else None),
    )


@dataclass(frozen=True, slots=True)
class Kin:
    """An instance that runs this one, or that it runs, as ``word`` says."""

    word: str
    machine: str
    id: str
    url: str


def _list_kin(request: HttpRequest, instance: Instance) -> list[Kin]:
    """Return those of machines that may be seen."""
    found = [("parent", instance.parent)] if instance.parent else []
    found += [(f"child {invoke}", child) for invoke, child in instance.children.items()]
    names = [kin["machine"] for _, kin in found]
    machines = {machine.name: machine for machine in Machine.objects.filter(name__in=names)}
    return [
        Kin(word, kin["machine"], kin["id"], instance_url(machines[kin["machine"]], kin["id"]))
        for word, kin in found
        if kin["machine"] in machines and may(request, "view", kin["machine"])
    ]


def _waits(version: MachineVersion | None, instance: Instance) -> list[tuple[str, str, datetime]]:
    """Return what each timer is, the state that waits, and when it is due; the next one first."""
    states = version.outline.states if version else ()
    delays = {event: f"after {t.delay}" for state in states for t in state.transitions if t.delay for event in t.events}
    timers = sorted(instance.timers, key=lambda timer: timer.due)
    return [(delays.get(timer.event, timer.event), timer.state, moment(timer.due)) for timer in timers]


def _data(version: MachineVersion | None, instance: Instance) -> list[Field]:
    """List declared fields in document order, set or not; then whatever else there is."""
    hints = {field.name: field.description for field in version.outline.data} if version else {}
    names = dict.fromkeys([*hints, *instance.data])
    return [Field(name, hints.get(name, ""), name in instance.data, instance.data.get(name)) for name in names]
