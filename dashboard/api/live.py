"""``GET /api/v1/live/?topic=…``: the snapshot that a socket gets, for a page that has no socket.

It is read when asked for, so it stands alone: its epoch is its own and its number is 1.
"""

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis.exceptions import RedisError

from dashboard.live import messages, topics
from dashboard.live.hub.reading import Command, LibraryMissing, read_once
from dashboard.live.hub.sources import Value, find_disclosed
from dashboard.live.messages import HTTP_STATUS, ErrorCode
from dashboard.live.sockets.permissions import Rights, viewer
from dashboard.live.topics import BadTopic, Topic
from machines.audit.reveals import RevealAudit
from machines.connections import get_engine, is_spread
from machines.engine import Engine
from machines.engine.connection import routing
from machines.engine.connection.server_permissions import find_denial
from machines.engine.errors import SignalboxError

EPOCH = "http"


@never_cache
@require_safe
def show(request: HttpRequest) -> JsonResponse:
    if not request.user.is_authenticated:
        return JsonResponse(messages.error(ErrorCode.FORBIDDEN, "authentication required"), status=401)
    name = request.GET.get("topic", "")
    try:
        topic = topics.parse(name)
    except BadTopic as error:
        return _refuse(ErrorCode.BAD_TOPIC, str(error), name[: messages.ECHO])
    permitted = Rights.of(request.user).permit(topic)
    if permitted is None:
        return _refuse(ErrorCode.FORBIDDEN, f"you may not watch {topic}", str(topic))
    try:
        value, at = read(get_engine(), permitted)
    except (SignalboxError, RedisError, OSError) as error:
        return _refuse(ErrorCode.UNAVAILABLE, str(find_denial(error) or "Redis does not answer"), str(topic))
    _note(request, permitted, value)
    return JsonResponse(messages.value("snapshot", topic, epoch=EPOCH, seq=1, data=value, at=at))


def _note(request: HttpRequest, permitted: Topic, value: Value) -> None:
    """Record in the audit which sensitive fields the value shows in clear."""
    if permitted.kind in topics.REDACTED and not permitted.redacted:
        seen = RevealAudit(viewer(request.user, request.META.get("REMOTE_ADDR")), permitted.machine)
        instance = permitted.name if permitted.kind == "instance" else str(value.get("instance", ""))
        seen.note(find_disclosed(permitted, value, seen.hidden_from_others), instance)


def read(engine: Engine, topic: Topic) -> tuple[Value, int]:
    """Read the topic's value. Return it with the Redis time of the read, ms."""

    def send(commands: Iterable[Command]) -> list[Any]:
        return routing.send(engine.client, [(key or engine.keys.machines, words) for key, words in commands])

    directory = engine.list_partition_counts if is_spread() else dict
    try:
        return read_once(engine.keys, topic, send, directory)
    except LibraryMissing:
        engine.load_missing_library()
        return read_once(engine.keys, topic, send, directory)


def _refuse(code: ErrorCode, message: str, topic: str) -> JsonResponse:
    return JsonResponse(messages.error(code, message, topic), status=HTTP_STATUS[code])
