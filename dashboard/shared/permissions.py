"""Requires a right before a page is made, and audits refused changes. The rights themselves:
``machines.people.permissions``."""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse

from dashboard.site.mount_point import mount_path
from machines.audit.entries import REFUSED, record, source_of
from machines.audit.redaction import Concealed
from machines.models import Draft, StoredPlan
from machines.people.actor import Actor
from machines.people.permissions import RIGHTS, Forbidden, allows, anywhere

Action = str | Callable[[HttpRequest], str]
View = Callable[..., HttpResponse]
Row = TypeVar("Row", Draft, StoredPlan)


def require(right: str, *, globally: bool | None = None) -> Callable[[View], View]:
    """Send anonymous visitors to the login page, and answer 403 to others without the right.

    A view that takes a ``machine`` needs the right on that machine. Any other view may show no more than the scope of
    the viewer (``scope_of``), and the right on one machine opens it. ``globally``: the view concerns no machine, so it
    needs the right on all of them; this is the default for ``publish``.

    The check comes before any look-up, so that the answer does not reveal what exists.
    """
    if right not in RIGHTS:
        raise ValueError(f"no right {right!r}; there are {', '.join(RIGHTS)}")
    of_all = right == "publish" if globally is None else globally

    def decorate(view: View) -> View:
        @wraps(view)
        def check_right(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return redirect_to_login(_find_way_back(request))
            machine = kwargs.get("machine", "")
            if not (allows(request.user, right, machine) if machine or of_all else anywhere(request.user, right)):
                raise Forbidden(right, machine)
            if machine or of_all:
                request.actor = Actor.of(request).holding(right, machine)  # type: ignore[attr-defined]
            return view(request, *args, **kwargs)

        check_right.right = right  # type: ignore[attr-defined]
        return check_right

    return decorate


def find_of_machine(find: Callable[[], Row], machine: str, what: str) -> Row:
    """Return what ``find`` returns. Raise Http404 where it is not there, or is another machine's."""
    with suppress(ObjectDoesNotExist):
        if (found := find()).machine == machine:
            return found
    raise Http404(f"Machine {machine} has no such {what}.")


def _find_way_back(request: HttpRequest) -> str:
    """Return the address to open after login. A POST cannot be repeated by a redirect: it leads to the start page."""
    return request.get_full_path() if request.method in ("GET", "HEAD") else mount_path()


def require_audited(
    right: str, action: Action, *, globally: bool | None = None, **columns: str
) -> Callable[[View], View]:
    """Require a right as ``require`` does, and audit a POST or an export without it as refused.

    ``action``: the action in the audit, or a function that reads it from the request. ``columns``: column of the audit
    -> the argument of the address that belongs there.
    """

    def decorate(view: View) -> View:
        guarded = require(right, globally=globally)(view)

        @wraps(guarded)
        def record_refusals(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                return guarded(request, *args, **kwargs)
            except (Forbidden, Concealed) as error:
                if request.method == "POST" or action == "export":
                    about = {"machine": error.machine} | {column: str(kwargs[name]) for column, name in columns.items()}
                    record_refusal(request, action if isinstance(action, str) else action(request), error, **about)
                raise

        return record_refusals

    return decorate


def record_refusal(request: HttpRequest, action: str, error: Forbidden | Concealed, **about: str) -> None:
    """Record a refusal in the audit. ``about``: as ``machines.audit.entries.record`` takes it."""
    record(
        request.user, action, reason=request.POST.get("reason", ""), source=source_of(request), outcome=REFUSED,
        detail={"error": error.message, "code": error.code}, **about,
    )  # fmt: skip
