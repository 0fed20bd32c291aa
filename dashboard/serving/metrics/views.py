"""``/metrics``: reads the engine's counters at the moment of the request."""

import hmac
import logging
import time

from django.db import Error
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from dashboard.live.hub.hub import sockets
from machines.approvals import queries as approval_queries
from machines.conf import conf
from machines.connections import get_engine, get_pattern
from machines.duties import DUTIES
from machines.engine import EngineUnavailable
from machines.models import AuditHead, SamplingTurn
from machines.patterns import Locks
from machines.people.permissions import EVERYTHING, NOTHING, Scope, scope_of
from machines.worker.duties.exclusive_duties import read_lock_holders

from .families import Snapshot, registry

log = logging.getLogger(__name__)

CHALLENGE = 'Bearer realm="signalbox"'


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer 200, 401 or 403 as the setting demands, 404 if it is off; 503 with ``signalbox_up 0`` while Redis is
    away."""
    if conf.METRICS == "off":
        raise Http404("Metrics are disabled.")
    scope = _find_scope(request)
    if not scope:
        return _refuse(request)
    try:
        return _answer_text(read_snapshot(scope))
    except EngineUnavailable as error:
        log.warning("metrics: %s", error)
        return _answer_text(Snapshot(None), status=503)


def read_snapshot(scope: Scope) -> Snapshot:
    """Read the figures of the machines in a scope. Raises EngineUnavailable."""
    survey = get_engine().at_once().survey().only(scope)
    kept = {duty: holder is not None for duty, holder in read_lock_holders(get_pattern(Locks), DUTIES).items()}
    stored, head = _read_stored(), _read_head() if scope.all else None
    return Snapshot(survey, time.time() * 1000, sockets(), *stored, kept, head)


def _read_stored() -> tuple[dict[str, int] | None, int | None]:
    """Read what is in SQL: open approvals by machine, and when statistics were last taken, ms. If the database is away,
    only these figures are missing."""
    try:
        waiting = approval_queries.find_open().order_by().values_list("machine").annotate(Count("pk"))
        return dict(waiting), SamplingTurn.objects.filter(at__gt=0).values_list("at", flat=True).first()
    except Error as error:
        log.warning("metrics: %s", error)
        return None, None


def _read_head() -> tuple[int, str] | None:
    """Read number and digest of the newest audit entry."""
    try:
        return AuditHead.objects.values_list("number", "digest").first()
    except Error as error:
        log.warning("metrics: %s", error)
        return None


def _find_scope(request: HttpRequest) -> Scope:
    """Return the machines to report. The token is checked first: a request with a token needs no session, and so no
    cache."""
    mode = conf.METRICS
    if mode == "open" or has_token(request):
        return EVERYTHING
    return scope_of(request.user) if mode == "login" else NOTHING


def _refuse(request: HttpRequest) -> HttpResponse:
    """Answer 403 to an account without the permission, 401 without an account."""
    if conf.METRICS == "login" and request.user.is_authenticated:
        return HttpResponse("permission denied\n", content_type="text/plain; charset=utf-8", status=403)
    answer = HttpResponse("a bearer token is required\n", content_type="text/plain; charset=utf-8", status=401)
    answer["WWW-Authenticate"] = CHALLENGE
    return answer


def _answer_text(snapshot: Snapshot, status: int = 200) -> HttpResponse:
    return HttpResponse(generate_latest(registry(snapshot)), content_type=CONTENT_TYPE_PLAIN_0_0_4, status=status)


def has_token(request: HttpRequest) -> bool:
    """Tell whether the request carries the token; never where none is set."""
    expected = conf.METRICS_TOKEN
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return bool(expected) and scheme.lower() == "bearer" and hmac.compare_digest(given.encode(), expected.encode())
