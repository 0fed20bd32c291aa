"""A person's own pages: preferences, rights, saved views, API tokens and their sessions."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard.models import Preferences, SavedView
from dashboard.serving.cache import get_shared_cache
from dashboard.shared import themes, times
from dashboard.shared.errors.redis_outage import Panels
from dashboard.shared.form_views import go_back, make_key
from dashboard.shared.permissions import require
from dashboard.shared.rendering import render_page
from machines.catalog.builtin_machines import split_system
from machines.instances.forms import PageForm
from machines.models import Machine, Token
from machines.patterns import Held
from machines.people import actions as tokens
from machines.people.actor import Actor
from machines.people.permissions import MEANINGS, anywhere, rights_of, scope_of
from machines.people.tokens import MAX_DAYS, Unmakeable, list_sessions


class PreferencesForm(forms.ModelForm):
    default_renderer = PageForm.default_renderer

    time_zone = forms.ChoiceField(label="time zone", choices=times.choices)

    class Meta:
        model = Preferences
        fields = ("theme", "time_zone", "clock", "calm", "keys")
        labels = {"theme": "theme", "clock": "clock", "calm": "reduced motion", "keys": "keyboard shortcuts"}
        help_texts = {
            "calm": "Numbers update every five seconds, without animation.",
            "keys": "Press ? to list them. Turn them off if voice control or a screen reader uses single keys.",
        }


class TokenForm(PageForm):
    name = forms.CharField(
        label="name", max_length=80, widget=forms.TextInput({"autocomplete": "off"}),
        help_text="Describes the use of the token. Shown in lists and in the audit.",
        error_messages={"required": "Enter a name."},
    )  # fmt: skip
    rights = forms.MultipleChoiceField(label="rights", required=False, widget=forms.CheckboxSelectMultiple)
    machines = forms.MultipleChoiceField(
        label="machines", required=False, widget=forms.SelectMultiple({"size": "6"}),
        help_text="None selected: all machines you have access to, including future ones.",
    )  # fmt: skip
    days = forms.IntegerField(
        label="valid for (days)", min_value=1, max_value=MAX_DAYS, initial=90,
        widget=forms.TextInput({"inputmode": "numeric", "autocomplete": "off"}), help_text="Max 365.",
    )  # fmt: skip
    key = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(self, user: Any, data: Any = None) -> None:
        super().__init__(data, auto_id="token-%s", label_suffix="", initial={"rights": ["view"], "key": make_key()})
        held = [(right, f"{right}: {meaning}") for right, meaning in MEANINGS.items() if anywhere(user, right)]
        self.fields["rights"].choices = held
        scope, names = scope_of(user), Machine.objects.values_list("name", flat=True)
        own, system = split_system(name for name in names if name in scope)
        groups = [("System", [(name, name) for name in system])] if system else []
        self.fields["machines"].choices = [*((name, name) for name in own), *groups]


@login_required
def show(request: HttpRequest) -> HttpResponse:
    """Show the account page. A POST saves the preferences."""
    kept = request.preferences
    initial = {"time_zone": kept.time_zone or times.zone_of("").key}
    form = PreferencesForm(request.POST if request.method == "POST" else None, instance=kept, initial=initial)
    if form.is_valid():
        form.save()
        messages.success(request, "Settings saved")
        response: HttpResponse = redirect("signalbox:account")
        themes.remember(response, kept.theme)
        return response
    status = 400 if form.is_bound else 200
    return render_page(
        request,
        "signalbox/account/account.html",
        {"form": form, **_make_context(request)},
        status=status,
    )


@require_POST
@login_required
def choose_zone(request: HttpRequest) -> HttpResponse:
    """Save the time zone that the browser reported, and return to the page where it was offered."""
    name, kept = request.POST.get("time_zone", ""), request.preferences
    if times.is_zone(name):
        kept.time_zone = name
        kept.save()
        messages.success(request, f"Times are now shown in {name}. You can change this in your account.")
    else:
        messages.error(request, "Unknown time zone. Choose one in your account.")
    return go_back(request, "account")


@require_POST
@login_required
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Save the theme, and return to the page where it was chosen."""
    theme, kept = request.POST.get("theme", ""), request.preferences
    if theme not in themes.CHOICES:
        messages.error(request, "Unknown theme: choose light, dark or as the system.")
        return go_back(request, "account")
    kept.theme = theme
    kept.save()
    response = go_back(request, "account")
    themes.remember(response, theme)
    return response


@require_POST
@login_required
def end_tour(request: HttpRequest) -> HttpResponse:
    """End the tour of the demo for this person."""
    request.preferences.toured = True
    request.preferences.save()
    return go_back(request, "overview")


@dataclass(frozen=True, slots=True)
class HeldRight:
    """Holds a right of a person. ``machines``: where it applies, empty for all machines."""

    right: str
    meaning: str
    machines: tuple[str, ...] = ()


def _list_rights(user: Any) -> list[HeldRight]:
    held = {right: scope for right in MEANINGS if (scope := scope_of(user, right))}
    return [
        HeldRight(right, MEANINGS[right], () if scope.all else tuple(sorted(scope.names)))
        for right, scope in held.items()
    ]


def _list_sessions(user: Any) -> list[tuple[Held, Token]]:
    """List the sessions of the active tokens, each with its token. Those of other tokens open nothing, and expire."""
    owned = {token.handle: token for token in Token.holding(user)}
    return [(held, owned[held.subject]) for held in list_sessions(owned.values())]


def _make_context(request: HttpRequest) -> dict[str, Any]:
    panels = Panels()
    return {
        "rights": frozenset(right for right in MEANINGS if scope_of(request.user, right).all),
        "held": _list_rights(request.user),
        "views": SavedView.objects.filter(owner=request.user),
        "sessions": panels.read("sessions", lambda: len(_list_sessions(request.user)), 0),
        "groups": [group.name for group in request.user.groups.order_by("name")],
        "away": panels.away,
    }


@require("view")
@require_POST
def save_view(request: HttpRequest) -> HttpResponse:
    """Save a view from a POST with ``name``, ``page``, ``query`` and ``shared``, and return to its page."""
    asked = request.POST
    view = SavedView(
        owner=request.user,
        name=asked.get("name", "").strip(),
        page=asked.get("page", "")[:300],
        query=asked.get("query", "")[:2000],
        shared=bool(asked.get("shared")),
    )
    return _save_view(request, view, "keep")


@require("view")
@require_POST
def rename_view(request: HttpRequest, id: int) -> HttpResponse:
    view = _get_own_view(request, id)
    view.name = request.POST.get("name", "").strip()
    view.shared = bool(request.POST.get("shared"))
    return _save_view(request, view, "rename")


@require("view")
@require_POST
def delete_view(request: HttpRequest, id: int) -> HttpResponse:
    view = _get_own_view(request, id)
    view.delete()
    return redirect(view.url)


def _get_own_view(request: HttpRequest, id: int) -> SavedView:
    """Return the view, or raise Http404. Views of other people are answered like missing ones."""
    view = SavedView.objects.filter(pk=id, owner_id=request.user.pk).first()
    if view is None:
        raise Http404("View not found.")
    return view


def _save_view(request: HttpRequest, view: SavedView, what: str) -> HttpResponse:
    """Save the view. Show the form again with its errors; without a valid page there is no page to return to."""
    try:
        view.save()
    except ValidationError as error:
        said = error.message_dict
    else:
        return redirect(view.url)
    context = {
        "section": "",
        "view": view,
        "what": what,
        "mistakes": [text for texts in said.values() for text in texts],
        "known": "page" not in said,
    }
    return render_page(request, "signalbox/account/saved_view.html", context, status=400)


DAY = 86_400  # seconds a form that was sent is remembered
ENDED_SHOWN = timedelta(days=30)


@login_required
def show_tokens(request: HttpRequest) -> HttpResponse:
    """Show the tokens and the form. A POST creates a token and shows its text, only once."""
    form = TokenForm(request.user, request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return _render_tokens(request, form, status=400 if form.is_bound else 200)
    given = form.cleaned_data
    cache = get_shared_cache()
    if not cache.add(f"token-form:{request.user.pk}:{given['key']}", 1, DAY):
        messages.info(
            request, "This token was already created. It is shown only once; if you lost it, create a new one."
        )
        return redirect("signalbox:tokens")
    try:
        made, text = tokens.make(
            Actor.of(request), given["name"], given["rights"], machines=given["machines"], days=given["days"]
        )
    except Unmakeable as error:
        cache.delete(f"token-form:{request.user.pk}:{given['key']}")
        form.add_error(error.field if error.field in form.fields else None, str(error))
        return _render_tokens(request, form, status=400)
    return _render_tokens(request, TokenForm(request.user), made=made, text=text)


@require_POST
@login_required
def revoke_token(request: HttpRequest, handle: str) -> HttpResponse:
    """Revoke a token of the person who is logged in. Tokens of others are revoked in the admin."""
    token = Token.objects.filter(owner=request.user, handle=handle).first()
    if token is None:
        raise Http404("Token not found.")
    tokens.revoke(Actor.of(request), token)
    messages.success(request, f"Token {token.name} revoked")
    return redirect("signalbox:tokens")


def _render_tokens(
    request: HttpRequest, form: TokenForm, *, made: Token | None = None, text: str = "", status: int = 200
) -> HttpResponse:
    now, panels = timezone.now(), Panels()
    rows = [
        (token, token.state(now))
        for token in Token.objects.filter(owner=request.user)
        if token.state(now) == "active" or max(token.created, token.revoked or token.expires) > now - ENDED_SHOWN
    ]
    context = {
        "form": form, "rows": rows, "made": made, "text": text, "rights": rights_of(request.user),
        "sessions": panels.read("sessions", lambda: _list_sessions(request.user), []),
        "away": panels.away,
    }  # fmt: skip
    return render_page(request, "signalbox/account/tokens.html", context, status=status)


@require_POST
@login_required
def end_session(request: HttpRequest, handle: str) -> HttpResponse:
    if tokens.revoke_session(Actor.of(request), list(Token.holding(request.user)), handle) is None:
        raise Http404("Session not found.")
    messages.success(request, f"Session {handle} ended")
    return _go_to_sessions()


@require_POST
@login_required
def end_sessions(request: HttpRequest) -> HttpResponse:
    ended = tokens.revoke_sessions(Actor.of(request), list(Token.holding(request.user)))
    messages.success(request, f"{ended} session{'s are' if ended != 1 else ' is'} ended.")
    return _go_to_sessions()


def _go_to_sessions() -> HttpResponse:
    return redirect(reverse("signalbox:tokens") + "#sessions")
