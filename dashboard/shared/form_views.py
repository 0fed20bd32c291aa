"""Views that do what a form of a page asks for, and return to the page."""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.http import url_has_allowed_host_and_scheme

from machines.approvals import actions as approvals
from machines.catalog.errors import ApprovalNeeded
from machines.engine.errors import LookupFailed, SignalboxError
from machines.people.actor import Actor

from .addresses import find_page_address
from .errors.statuses import status_of
from .permissions import Action, View, require_audited

Act = Callable[..., str | HttpResponse]
"""Does what the form asks for. Returns what to say of it, or an answer of its own. Raises Mistake."""


class Mistake(Exception):
    """A form that cannot be taken as it is; ``str()`` says why. The view of the form shows its page again."""


def answer_form(
    page: str,
    right: str,
    action: Action,
    *,
    refused: tuple[type[SignalboxError], ...] = (),
    shown: tuple[type[SignalboxError], ...] = (),
    render: Callable[..., HttpResponse] | None = None,
    takes: tuple[str, ...] | None = None,
    **more: Any,
) -> Callable[[Act], View]:
    """Make the view of a form that stands on ``page``. A GET leads there.

    ``refused``: the errors that the page then shows, since nothing was done. ``render``: the function that shows the
    page with a ``mistake`` and a ``status``, for a Mistake and the errors ``shown``: what was typed is kept. ``takes``:
    the names in the address of the page; None for those of the view. ``more``: as ``require_audited`` takes it. What
    needs the approval of a second person is filed as a request.
    """

    def decorate(act: Act) -> View:
        @require_audited(right, action, **more)
        @wraps(act)
        def view(request: HttpRequest, **names: Any) -> HttpResponse:
            if request.method == "POST":
                try:
                    done = _carry_out(act, request, names)
                except (Mistake, *shown) as error:
                    if render is None:
                        raise
                    return render(request, *names.values(), **_describe_mistake(error))
                except refused as error:
                    if isinstance(error, LookupFailed) and type(error) not in refused:
                        raise
                    messages.error(request, f"Not done: {error.message} ({error.code})")
                else:
                    if isinstance(done, HttpResponse):
                        return done
                    messages.success(request, done)
            return go_back(request, page, *(names.values() if takes is None else (names[name] for name in takes)))

        return view

    return decorate


def _carry_out(act: Act, request: HttpRequest, names: Mapping[str, Any]) -> str | HttpResponse:
    try:
        return act(request, **names)
    except ApprovalNeeded as needed:
        return redirect_to_request(request, needed)


def _describe_mistake(error: Mistake | SignalboxError) -> dict[str, Any]:
    if isinstance(error, SignalboxError):
        return {"mistake": f"{error.message} ({error.code})", "status": status_of(type(error))}
    return {"mistake": str(error), "status": 400}


def list_action_paths(address: str, prefix: str, actions: Mapping[str, View]) -> list[URLPattern]:
    """Return the addresses of the actions on what a page shows, named by the prefix and the action."""
    words = {name.replace("_", "-"): view for name, view in actions.items()}
    return [path(f"{address}{name}/", view, name=f"{prefix}{name}") for name, view in words.items()]


def go_back(request: HttpRequest, page: str, *names: Any) -> HttpResponse:
    """Redirect to the address that the form names, if it is one of this site, else to ``page``."""
    back = request.POST.get("next", "")
    # As an address, not by ``redirect``: that looks a text without a slash up as the name of a view.
    ours = url_has_allowed_host_and_scheme(back, {request.get_host()})
    return HttpResponseRedirect(back if ours else find_page_address(f"signalbox:{page}", *names))


def redirect_to_request(request: HttpRequest, needed: ApprovalNeeded) -> HttpResponse:
    """Ask for the approval of a second person, and redirect to the page of the request."""
    approval = approvals.ask(Actor.of(request), needed)
    messages.info(
        request,
        f"Approval requested: {approval.action} on {approval.subject}. It runs once another person approves it.",
    )
    return redirect("signalbox:approval", approval.pk)


def make_key() -> str:
    """Return an idempotency key for one rendered form."""
    return secrets.token_urlsafe(12)


def key_of_content(key: str, sent: QueryDict) -> str | None:
    """Return the key of this form with this content, or None where the form has no key.

    The same form sent twice counts once. A form sent again with other content (after the browser's Back button) is
    another call, and the expected revision decides.
    """
    if not key:
        return None
    content = sorted((name, text) for name, texts in sent.lists() for text in texts if name != "csrfmiddlewaretoken")
    return f"{key}:{hashlib.sha256(repr(content).encode()).hexdigest()[:16]}"
