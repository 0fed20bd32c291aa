"""What an operator just tried, and why it did not happen (or what would): it stands on top of the page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from django.http import QueryDict

from dashboard.shared.errors.statuses import MISTAKE
from dashboard.shared.version_view import Plan
from machines.access.redaction import Redactor
from machines.engine import Explanation, Instance, NotAllowed, Step, errors
from machines.forms import TypedForm
from machines.services import Actor, instances

from .events import Route, routes_of

MEANWHILE = 20  # steps shown of what happened since the operator looked

STATUS = {"refused": 422, "held": 409, "conflict": 409, "mistake": 400, "preview": 200}


@dataclass(frozen=True, slots=True)
class Attempt:
    """``kind``: refused, held (suspended), conflict, mistake or preview.

    ``sent``: the fields as posted, to send them again knowingly.

    ``changes`` are the data fields a preview would change, None where one would be unset.
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

    def redacted(self, redactor: Redactor) -> Attempt:
        """Without what is hidden from whoever tried it, in what the instance holds and held."""
        return replace(self, meanwhile=redactor.steps(self.meanwhile), changes=redactor.data(self.changes))

    @property
    def status(self) -> int:
        return STATUS[self.kind]

    @property
    def tried(self) -> tuple[str, TypedForm] | None:
        """The event whose form stays filled."""
        return (self.event, self.form) if self.event and self.form is not None else None


def held(what: str, url: str, error: errors.Suspended, **facts: Any) -> Attempt:
    message = "The instance is suspended. No events are accepted until it is resumed."
    return Attempt("held", what, url, message, error.code, **facts)


def denied(what: str, url: str, error: NotAllowed, **facts: Any) -> Attempt:
    leads = f" ({error.transition}{f' to {error.target}' if error.target else ''})" if error.transition else ""
    message = f"Allowed only for members of {' or '.join(error.groups)}{leads}."
    return Attempt("refused", what, url, message, error.code, **facts)


def mistake(
    what: str, url: str, error: errors.SignalboxError | None = None, redactor: Redactor | None = None, **facts: Any
) -> Attempt:
    """Something in the form cannot be taken; ``error`` is the engine's word on it, if it got that far."""
    if error is None:
        message = "Correct the marked fields."
        return Attempt("mistake", what, url, message, MISTAKE, **facts)
    told = redactor.error(error) if redactor else error.message
    return Attempt("mistake", what, url, told, error.code, **facts)


def refused(plan: Plan, url: str, error: errors.Refused, redactor: Redactor, **facts: Any) -> Attempt:
    explanation = redactor.explanation(error.explanation)
    return Attempt(
        "refused", f"fire {explanation.event}", url, _why(explanation), error.code,
        explanation=explanation, routes=list(routes_of(plan, explanation, payload_known=True)), **facts,
    )  # fmt: skip


def preview(plan: Plan, url: str, instance: Instance, explanation: Explanation, **facts: Any) -> Attempt:
    """What would happen to ``instance``; nothing did."""
    routes = list(routes_of(plan, explanation, payload_known=True))
    message = "" if explanation.taken else _why(explanation)
    what = f"fire {explanation.event}"
    after = (explanation.outcome or {}).get("data", instance.data)
    changes = {name: after.get(name) for name in instance.data | after if after.get(name) != instance.data.get(name)}
    return Attempt("preview", what, url, message, explanation=explanation, routes=routes, changes=changes, **facts)


def conflict(actor: Actor, what: str, url: str, error: errors.Conflict, post: QueryDict, **facts: Any) -> Attempt:
    """Someone moved the instance since the form was shown: what they did, and the same form for the version of now."""
    try:
        steps = instances.history(actor, error.machine, error.id, limit=MEANWHILE)
    except errors.LookupFailed:
        steps = []
    return Attempt(
        "conflict", what, url, error.message, error.code, expected=error.expected,
        meanwhile=[step for step in steps if step.version > error.expected],
        sent=_kept(post), **facts,
    )  # fmt: skip


RENEWED = ("csrfmiddlewaretoken", "expect", "key", "check")


def _kept(post: QueryDict) -> list[tuple[str, str]]:
    """The posted fields but those that a second, knowing try gets anew."""
    return [(name, text) for name, texts in post.lists() if name not in RENEWED for text in texts]


def _why(explanation: Explanation) -> str:
    """One sentence; the candidates say the rest."""
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
