"""Presents an instance: the result of an action that failed or was previewed, timers and children, the repairs, and its
events with the transitions that each would take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol
from urllib.parse import urlencode

from django.http import QueryDict

from dashboard.shared.addresses import find_page_address
from dashboard.shared.errors.statuses import MISTAKE
from dashboard.shared.version_view import VersionView
from machines.audit.redaction import Redactor
from machines.engine import (
    Because,
    Candidate,
    Explanation,
    Instance,
    NotAllowed,
    Preview,
    Step,
    Wait,
    errors,
    expressions,
)
from machines.engine.records import NOT_REPLICATED
from machines.instances import queries
from machines.instances.forms import TypedForm
from machines.people.actor import Actor
from machines.people.errors import GuessedTooOften
from machines.people.mirrors import MethodFailed, MethodRefused, row_methods
from machines.people.redaction import redactor_of
from machines.people.transition_groups import Groups, is_allowed

MAX_CONFLICT_STEPS = 20  # steps shown of what happened since the operator looked
STATUS = {"refused": 422, "failed": 422, "held": 409, "conflict": 409, "mistake": 400, "preview": 200}
HEADINGS = {
    "held": ("‖", "Blocked: {}. No change was made"),
    "refused": ("⊘", "Refused: {}. No change was made"),
    "failed": ("✕", "Failed: {}"),
    "mistake": ("✕", "Not sent: {}"),
}
"""Kind of a result -> its sign, and its heading about what was asked for."""


class BlamedForm(Protocol):
    """A form that takes an error of the engine."""

    def blame(self, field: str | None, message: str) -> None: ...


@dataclass(frozen=True, slots=True)
class ActionResult:
    """Holds the result of an action that failed or was previewed.

    ``kind``: refused, failed (a method that raised), held (suspended), conflict, mistake or preview. ``sent``: the
    posted fields, to send them again. ``changes``: the data fields that a preview would change, None where one would
    be unset.
    """

    kind: str
    what: str
    url: str
    message: str = ""
    code: str = ""
    event: str = ""
    form: TypedForm | None = None
    explanation: Explanation | None = None
    routes: list[Route] = field(default_factory=list)
    expected: int | None = None
    meanwhile: list[Step] = field(default_factory=list)
    sent: list[tuple[str, str]] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)
    reason: str = ""

    def redact(self, redactor: Redactor) -> ActionResult:
        """Return the result without values that are hidden from the viewer."""
        return replace(self, meanwhile=redactor.steps(self.meanwhile), changes=redactor.data(self.changes))

    @property
    def status(self) -> int:
        return STATUS[self.kind]

    @property
    def sign(self) -> str:
        return HEADINGS.get(self.kind, ("", ""))[0]

    @property
    def heading(self) -> str:
        """Return the heading of the notice; "" for a conflict and a preview, which have notices of their own."""
        return HEADINGS.get(self.kind, ("", ""))[1].format(self.what)

    @property
    def submitted(self) -> tuple[str, TypedForm] | None:
        """Return the event whose form stays filled, and the form."""
        return (self.event, self.form) if self.event and self.form is not None else None


def explain_mistake(asked: ActionResult) -> ActionResult:
    """Describe a form with invalid fields."""
    return replace(asked, kind="mistake", message="Correct the marked fields.", code=MISTAKE)


def explain_failure(
    asked: ActionResult, actor: Actor, view: VersionView, id: str, error: errors.SignalboxError, post: QueryDict,
    form: BlamedForm,
) -> ActionResult:  # fmt: skip
    """Describe why an event or a repair was not done. A field that the engine did not accept is marked in ``form``.
    Raise any other error again."""
    redactor = redactor_of(actor, view.machine).of(id)
    fail = partial(replace, asked, code=error.code)
    if isinstance(error, errors.Refused):
        seen = redactor.explanation(error.explanation)
        routes = list(list_routes(view, seen, payload_known=True))
        message = f"{_explain(seen)} {_explain_texts(asked, view)}".strip()
        return fail(kind="refused", message=message, explanation=seen, routes=routes)
    if isinstance(error, MethodRefused | MethodFailed):
        kind = "failed" if isinstance(error, MethodFailed) else "refused"
        return fail(kind=kind, what=asked.what.replace("fire", "call", 1), message=error.message)
    if isinstance(error, NotAllowed):
        leads = f" ({error.transition}{f' to {error.target}' if error.target else ''})" if error.transition else ""
        return fail(kind="refused", message=f"Allowed only for members of {' or '.join(error.groups)}{leads}.")
    if isinstance(error, errors.Suspended):
        return fail(kind="held", message="The instance is suspended. No events are accepted until it is resumed.")
    if isinstance(error, errors.Conflict):
        return fail(
            kind="conflict", message=error.message, expected=error.expected, meanwhile=_list_steps_since(actor, error),
            sent=_list_resent_fields(post),
        )  # fmt: skip
    if isinstance(error, errors.BadInput):
        message = redactor.error(error)
        form.blame(getattr(error, "field", None), message)
        return fail(kind="mistake", message=message)
    raise error


def _list_steps_since(actor: Actor, error: errors.Conflict) -> list[Step]:
    """List the steps since the form was shown."""
    try:
        steps = queries.history(actor, error.machine, error.id, limit=MAX_CONFLICT_STEPS)
    except errors.LookupFailed:
        return []
    return [step for step in steps if step.revision > error.expected]


def show_preview(asked: ActionResult, view: VersionView, instance: Instance, explanation: Explanation) -> ActionResult:
    """Describe what would happen to ``instance``. Nothing was changed."""
    after = (explanation.outcome or {}).get("data", instance.data)
    return replace(
        asked, kind="preview", explanation=explanation,
        message=f"{'' if explanation.taken else _explain(explanation)} {_explain_texts(asked, view)}".strip(),
        routes=list(list_routes(view, explanation, payload_known=True)),
        changes={name: after.get(name) for name in instance.data | after if after.get(name) != instance.data.get(name)},
    )  # fmt: skip


RENEWED_FIELDS = ("csrfmiddlewaretoken", "expect", "version", "key", "check")


def _list_resent_fields(post: QueryDict) -> list[tuple[str, str]]:
    """Return the posted fields, without those that a second attempt renews."""
    return [(name, text) for name, texts in post.lists() if name not in RENEWED_FIELDS for text in texts]


def _explain(explanation: Explanation) -> str:
    """Return the refusal in one sentence. The candidates have the details."""
    where = f"in state {explanation.state}"
    if explanation.why == "unknown event":
        return f"The machine has no event {explanation.event}."
    if explanation.why == "final":
        return f"No events are accepted {where}: the state is final."
    if explanation.why == "no transition":
        return f"The event {explanation.event} is not accepted {where}."
    if explanation.why == "error":
        return f"An action fails {where}: {explanation.error}."
    return f"No transition for {explanation.event} is available {where}."


def _explain_texts(asked: ActionResult, view: VersionView) -> str:
    """Say which fields of the payload are texts that expressions compare with a number; "" for none."""
    compared = view.outline.find_compared(asked.event) if asked.form and asked.event else {}
    sent = asked.form.values() if compared and asked.form else {}
    texts = [name for name, value in sent.items() if isinstance(value, str) and "number" in compared.get(name, ())]
    words = "is a text, and is" if len(texts) == 1 else "are texts, and are"
    return f"{', '.join(texts)} {words} compared with a number." if texts else ""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Holds a timer. ``due``: ms; ``what``: its cause; ``where``: the state that waits; ``to``: the target."""

    due: int
    what: str
    where: str = ""
    to: str = ""


def list_deadlines(view: VersionView, instance: Instance) -> list[Deadline]:
    """List the timers, the next one first."""
    return sorted(_list_deadlines(view, instance), key=lambda deadline: deadline.due)


def _list_deadlines(view: VersionView, instance: Instance) -> Iterator[Deadline]:
    for timer in instance.timers:
        if timer.state:
            delay = view.delay_of(timer.event)
            yield Deadline(timer.due, f"after {delay}" if delay else timer.event, where=timer.state)
        else:
            yield Deadline(timer.due, timer.event, to=timer.target)


@dataclass(frozen=True, slots=True)
class RepairKind:
    """Describes a repair. ``ready``: it can be previewed before the form is filled; ``of_job``: it concerns a job."""

    name: str
    title: str
    label: str
    about: str
    danger: bool = False
    ready: bool = True
    of_job: bool = False


REPAIR_KINDS = {
    kind.name: kind
    for kind in (
        RepairKind(
            "retry", "Retry job", "Retry job",
            "A dead job becomes ready again with its attempts reset; a delayed job runs immediately.", of_job=True,
        ),
        RepairKind(
            "skip", "Skip job", "Skip job",
            "Removes the job and continues as if it had completed with the given result. Transitions and actions run as"
            " usual.", of_job=True,
        ),
        RepairKind(
            "cancel", "Cancel job", "Cancel job",
            "Removes the job. The instance receives error.invoke with the kind Withdrawn.",
            danger=True, of_job=True,
        ),
        RepairKind(
            "edit", "Edit data", "Save changes",
            "Changes data fields, by their declared types; blank ones stay as they are. No transitions run.",
            ready=False,
        ),
        RepairKind(
            "force", "Force state", "Force state",
            "Sets the state, ignoring the transitions. No entry or exit actions run.",
            danger=True, ready=False,
        ),
        RepairKind(
            "reset", "Reset instance", "Reset instance",
            "Returns to the initial state and initial data. No actions run; jobs, timers and child instances end.",
            danger=True,
        ),
        RepairKind(
            "suspend", "Suspend instance", "Suspend instance",
            "No events are accepted, timers are paused and messages are queued until the instance is resumed.",
        ),
        RepairKind(
            "resume", "Resume instance", "Resume instance",
            "Delivers the queued messages in order and restarts the timers.",
        ),
        RepairKind(
            "delete", "Delete instance", "Delete instance",
            "Deletes the instance with its history and open jobs. This cannot be undone.", danger=True,
        ),
    )
}  # fmt: skip


def list_changes(preview: Preview, held: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """List each data field that would change with its current value and its new one. ``held``: the data as redacted."""
    return [
        (name, {"was_set": name in held, "old": held.get(name), "new": new}) for name, new in preview.changes.items()
    ]


@dataclass(frozen=True, slots=True)
class RepairChoice:
    """Holds a repair that is possible now. ``of``: the handler of the job it concerns."""

    kind: RepairKind
    url: str
    of: str = ""


def list_repairs(instance: Instance, waits: Iterable[Wait]) -> list[RepairChoice]:
    """List the repairs in the order of the page, those of jobs first."""
    return list(_list_repairs(instance, list(waits)))


def _list_repairs(instance: Instance, waits: list[Wait]) -> Iterator[RepairChoice]:
    for name, kind in REPAIR_KINDS.items():
        url = find_page_address(f"signalbox:{name}", instance.machine, instance.id)
        if kind.of_job:
            for wait in waits:
                if name in wait.repairs:
                    yield RepairChoice(kind, f"{url}?{urlencode({'invoke': wait.invoke})}", wait.src)
        elif _makes_sense(name, instance):
            yield RepairChoice(kind, url)


def _makes_sense(name: str, instance: Instance) -> bool:
    if name == "suspend":
        return not instance.done and not instance.suspended
    return name != "resume" or bool(instance.suspended)


def describe_durability(after: Instance) -> str:
    """Say that the replicas that a step waited for did not have it in time; empty otherwise."""
    late = after.outcome is not None and after.outcome.durability == NOT_REPLICATED
    return f" ({NOT_REPLICATED})" if late else ""


def describe_repair(name: str, before: Instance, after: Instance) -> str:
    """Describe the result of a repair in one line."""
    if after.outcome and after.outcome.replayed:
        return f"Already applied: {after.id} is at revision {after.revision}"
    if name == "suspend":
        return f"{after.id} suspended until it is resumed"
    if name == "resume":
        return f"{after.id} resumed in {after.state}, revision {after.revision}"
    if name == "delete":
        return f"{after.id} deleted; last state: {after.state}"
    moved = after.state if before.configuration == after.configuration else f"{before.state} → {after.state}"
    word = {"force": "Forced", "edit": "Changed", "reset": "Reset", "retry": "Retried", "skip": "Skipped"}
    return f"{word.get(name, 'Cancelled')}: {moved}, revision {after.revision}{describe_durability(after)}"


MAX_EXPLAINED = 60  # events explained on one page

Explanations = Mapping[str, Explanation | errors.SignalboxError]


@dataclass(frozen=True, slots=True)
class Route:
    """Holds one candidate transition as an operator reads it.

    ``kind``: holds, fails, depends, error, later (only if none above applies), outdone (a transition of another
    region leaves the same states), or denied (reserved for groups that the person is not in). ``source``: the source
    state, if there are several to tell apart. ``sure``: it would be taken with any payload.
    """

    id: str
    kind: str
    target: str | None
    guard: str | None
    description: str
    why: list[str] = field(default_factory=list)
    source: str = ""
    sure: bool = False


@dataclass(frozen=True, slots=True)
class EventAction:
    """Holds an event with its form.

    ``verdict``: open, depends (on the payload), refused (with any payload), held (suspended), idle (not accepted in
    this state). ``refusal``: the refusal in words; ``asked``: it was just submitted; ``number``: its place on the page.
    """

    event: str
    number: int
    description: str
    form: TypedForm
    asked: bool = False
    verdict: str = "depends"
    routes: list[Route] = field(default_factory=list)
    refusal: str = ""


def list_event_actions(
    explained: Explanations,
    view: VersionView,
    instance: Instance,
    submitted: tuple[str, TypedForm] | None = None,
    *,
    steps: Iterable[Step] = (),
    groups: Groups = None,
) -> list[EventAction]:
    """List events of the current state first, then the others.

    ``explained``: what ``list_events`` would do; ``submitted``: an event whose form stays filled; ``steps``: earlier
    ones, newest first; ``groups``: those of the person, None if they may take any transition.
    """
    names = list_events(view, instance.configuration)
    earlier: dict[str, Mapping[str, Any]] = {}
    for step in steps:
        earlier.setdefault(step.event, step.payload)
    actions = [
        _make_action(view, instance, name, number, submitted, earlier.get(name)) for number, name in enumerate(names)
    ]
    return [_explain_action(explained.get(action.event), view, instance, action, groups) for action in actions]


def judge_methods(actions: Iterable[EventAction], view: VersionView, id: str, user: Any) -> list[EventAction]:
    """Judge events that call methods of a row: by its state, its conditions and the permission of each method. Of a
    process without the model they stay as declared."""
    found = list(actions)
    refusals = row_methods().find_refusals(view.machine, id, [one.event for one in found], user)
    return [_judge_method(one, refusals.get(one.event)) for one in found]


def _judge_method(action: EventAction, refusal: str | None) -> EventAction:
    routes = [replace(route, guard=None, kind="holds", why=[]) for route in action.routes]
    if refusal is None:
        return replace(action, routes=routes)
    if not refusal:
        return replace(action, verdict="open", routes=routes, refusal="")
    verdict = "idle" if action.verdict == "idle" else "refused"
    return replace(action, verdict=verdict, routes=[], refusal=f"{refusal[0].upper()}{refusal[1:]}.")


def list_events(view: VersionView, configuration: Iterable[str] = ()) -> list[str]:
    """List the events that a page explains, those of these states first; "" stands for a name pattern."""
    return view.event_names(configuration)[:MAX_EXPLAINED]


def _make_action(
    view: VersionView,
    instance: Instance,
    name: str,
    number: int,
    submitted: tuple[str, TypedForm] | None,
    earlier: Mapping[str, Any] | None,
) -> EventAction:
    description = view.event_description(name) if name else "This state accepts events by a name pattern."
    if submitted and submitted[0] == name:
        return EventAction(name, number, description, submitted[1], asked=True)
    form = view.payload_form(name, instance.configuration, id_prefix=f"e{number}", earlier=earlier)
    return EventAction(name, number, description, form)


def _explain_action(
    explanation: Explanation | errors.SignalboxError | None,
    view: VersionView,
    instance: Instance,
    action: EventAction,
    groups: Groups,
) -> EventAction:
    if not action.event:
        return action
    if instance.suspended or isinstance(explanation, errors.Suspended):  # the latter: since we looked
        return _judge_suspended(view, instance, action)
    if explanation is None:
        return action
    # A required field, so that the empty payload does not reach the guards; or they read what is hidden, too often.
    if isinstance(explanation, errors.BadPayload | GuessedTooOften):
        return _judge_unfilled(view, instance, action, groups)
    if isinstance(explanation, errors.SignalboxError):
        raise explanation
    routes = list(list_routes(view, explanation, groups=groups))
    return replace(
        action,
        verdict=_judge_availability(explanation, routes),
        routes=routes,
        refusal="" if explanation.taken else str(explanation),
    )


def _judge_unfilled(view: VersionView, instance: Instance, action: EventAction, groups: Groups) -> EventAction:
    """Judge an event whose payload the engine did not accept, by the events that the active states accept."""
    listened = view.list_accepted_events(instance.configuration)
    if not instance.done and (action.event in listened or "" in listened):
        heard = list(view.transitions_on(action.event, instance.configuration))
        if heard and not any(is_allowed(groups, transition.allow) for transition in heard):
            needed = dict.fromkeys(group for transition in heard for group in transition.allow)
            return replace(action, verdict="refused", refusal=f"Blocked: {describe_groups(needed)}.")
        return action
    return replace(action, verdict="idle", refusal="" if instance.done else f"Not accepted in {instance.state}.")


def _judge_suspended(view: VersionView, instance: Instance, action: EventAction) -> EventAction:
    """Judge an event of a suspended instance, by the events that the active states accept."""
    here = action.event in view.list_accepted_events(instance.configuration)
    return replace(action, verdict="held" if here else "idle", refusal="The instance is suspended. Resume it first.")


def list_routes(
    view: VersionView, explanation: Explanation, *, payload_known: bool = False, groups: Groups = None
) -> Iterator[Route]:
    """Yield the candidates in document order. With ``payload_known`` no result depends on the payload any more.
    ``groups``: those of the person, None if they may take any transition."""
    for candidate in explanation.candidates:
        kind = _name_kind(candidate, payload_known)
        why = [str(because) for because in candidate.because] if kind in ("fails", "error") or payload_known else []
        if kind == "holds" and candidate.guard and not payload_known:
            why = [str(because) for because in candidate.because if not _reads_event(because)]
        sure = kind == "holds"
        if kind in ("holds", "depends", "later") and not is_allowed(groups, candidate.allow):
            kind, why = "denied", [*why, describe_groups(candidate.allow)]
        transition = view.transition(candidate.id)
        source = transition.source if transition and view.is_nested and transition.source != view.outline.root else ""
        described = transition.description if transition else ""
        yield Route(candidate.id, kind, candidate.target, candidate.guard, described, why, source, sure)


def _name_kind(candidate: Candidate, payload_known: bool) -> str:
    if candidate.verdict in ("not reached", "pre-empted"):
        return "later" if candidate.verdict == "not reached" else "outdone"
    if not payload_known and _depends(candidate):
        return "depends"
    return {"taken": "holds", "guard": "fails"}.get(candidate.verdict, "error")


def _depends(candidate: Candidate) -> bool:
    """Return whether another payload could change the result: the guard read something of the event."""
    if not candidate.guard:
        return False
    if candidate.because:
        return any(_reads_event(because) for because in candidate.because)
    return _mentions_event(candidate.guard)


def _reads_event(because: Because) -> bool:
    return any(name.split(".")[0].split("[")[0] == "event" for name in because.values) or _mentions_event(because.text)


def _mentions_event(text: str) -> bool:
    try:
        return "event" in expressions.references(expressions.parse(text))
    except expressions.ExpressionError:
        return "event" in text


def _judge_availability(explanation: Explanation, routes: list[Route]) -> str:
    if explanation.why in ("no transition", "final", "unknown event"):
        return "idle"
    kinds = {route.kind for route in routes}
    denied = next((place for place, route in enumerate(routes) if route.kind == "denied" and route.sure), None)
    if denied is not None:  # the engine refuses the event, unless a transition before this one is taken
        return "depends" if any(route.kind == "depends" for route in routes[:denied]) else "refused"
    if "holds" in kinds:
        return "open"
    return "depends" if kinds & {"depends", "later", "outdone"} else "refused"


def describe_groups(groups: Iterable[str]) -> str:
    """Return ``needs the group board or treasury``."""
    return f"needs the group {' or '.join(groups)}"
