"""Middleware: ends a session that nobody used for ``SESSION_IDLE`` seconds, or that began ``SESSION_MAX`` seconds ago.

What a page asks by itself is no use. The store drops the session at its end, so that open sockets close with it.
"""

import time

from django.contrib.auth import logout
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from machines.conf import conf
from machines.people.sign_in_times import STARTED

USED = "signalbox_used"
STEP = 20  # a use is noted when this part of the idle time has passed: pages come in bursts


class SessionLimits(MiddlewareMixin):
    def process_request(self, request: HttpRequest) -> None:
        if request.COOKIES:
            limit_session(request)


def limit_session(request: HttpRequest) -> None:
    """Log out where the session is over; otherwise set its end, if the request is a use of it."""
    if not request.user.is_authenticated:
        return
    session, now = request.session, time.time()
    ends = session.setdefault(STARTED, now) + conf.SESSION_MAX
    idle = conf.SESSION_IDLE or conf.SESSION_MAX
    used = session.get(USED, 0)
    if now >= ends or (used and now >= used + idle):
        logout(request)
    elif now - used >= idle / STEP and not _is_background(request):
        session[USED] = now
        session.set_expiry(max(1, int(min(idle, ends - now))))


def _is_background(request: HttpRequest) -> bool:
    return request.method == "GET" and request.headers.get("Sec-Fetch-Dest") == "empty"
