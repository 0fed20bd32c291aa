"""Remembers in a session when it began and when its person last proved who they are.

A login proves it. ``dashboard.account.sign_in`` notes second factors, repeated passwords, and what a provider says.
"""

import time
from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest

STARTED, CONFIRMED = "signalbox_started", "signalbox_confirmed"


def connect() -> None:
    """Begin to listen. Called once, when the app is ready."""
    user_logged_in.connect(note_login, dispatch_uid="machines.people.sign_in_times")


def note_login(sender: Any, request: HttpRequest | None, **signal: Any) -> None:
    if hasattr(request, "session"):
        request.session[STARTED] = request.session[CONFIRMED] = time.time()


def note_confirmation(request: HttpRequest, at: float | None = None) -> None:
    """Note that the person proved who they are, now or at a time that their provider names."""
    request.session[CONFIRMED] = time.time() if at is None else at


def read_confirmed(request: HttpRequest) -> float:
    """Return when the person last proved who they are; 0 where that is unknown."""
    session = getattr(request, "session", None)
    return float(session.get(CONFIRMED, 0)) if session is not None else 0.0
