"""Who may do what: the five rights, the roles made of them, and the decorator that asks.

One place answers for pages, sockets and the API alike. A right without ``view`` is worth nothing:
whoever may not see a machine may not move its instances either.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

RIGHTS = {
    "view": "machines.view_machine",
    "fire": "machines.fire_machine",
    "operate": "machines.operate_machine",
    "publish": "machines.publish_machine",
    "audit": "machines.view_auditentry",
}
"""right -> the Django permission that grants it."""

MEANINGS = {
    "view": "see machines, instances, queues and workers",
    "fire": "create instances and fire events",
    "operate": "force, suspend, resume and delete instances, and direct queues and workers",
    "publish": "publish definitions",
    "audit": "see in the audit who did what",
}
"""right -> what it lets a person do, in the words of a 403 page."""

ROLES = {
    "viewer": ("view",),
    "operator": ("view", "fire"),
    "supervisor": ("view", "fire", "operate", "audit"),
    "publisher": ("view", "publish"),
}
"""role -> its rights; each role becomes a Django group of that name."""

View = Callable[..., HttpResponse]


class Forbidden(PermissionDenied):
    """``right``: the name of the right that is missing; the 403 page says it in words."""

    def __init__(self, right: str) -> None:
        super().__init__(f"you may not {MEANINGS[right]}")
        self.right = right


def allows(user: Any, right: str) -> bool:
    """Whether the user holds the right, and ``view`` with it. Inactive users hold none."""
    return bool(user.has_perm(RIGHTS["view"]) and user.has_perm(RIGHTS[right]))


def rights_of(user: Any) -> frozenset[str]:
    """Every right the user holds: what templates ask before they show a lever."""
    return frozenset(right for right in RIGHTS if allows(user, right))


def require(right: str) -> Callable[[View], View]:
    """Anonymous visitors go to the login page and come back; others without the right get a 403.

    The question comes before any look-up, so that a page does not tell who may not see it what exists.
    """
    if right not in RIGHTS:
        raise ValueError(f"no right {right!r}; there are {', '.join(RIGHTS)}")

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return redirect_to_login(_way_back(request))
            if not allows(request.user, right):
                raise Forbidden(right)
            return view(request, *args, **kwargs)

        guarded.right = right  # type: ignore[attr-defined]
        return guarded

    return decorate


def _way_back(request: HttpRequest) -> str:
    """Where to return after login. A POST cannot be repeated by a redirect: it returns to the start page."""
    return request.get_full_path() if request.method in ("GET", "HEAD") else "/"
