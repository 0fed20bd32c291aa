"""Machine fields in Django REST framework, which has to be installed. See ``docs/rest-framework.md``.

::

    REST_FRAMEWORK = {"EXCEPTION_HANDLER": "machines.integrations.rest_framework.exception_handler"}
"""

import math
from typing import Any

from rest_framework import serializers, views
from rest_framework.response import Response

from machines.engine import SignalboxError

from .binding import delivery, reading
from .binding.bound_state import BoundState
from .binding.errors import status_of


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Answer an error of a machine with its status, code and message: 409 for Refused. All others as the framework
    does. A transaction of the request is rolled back."""
    status = status_of(error) if isinstance(error, SignalboxError) else None
    if not isinstance(error, SignalboxError) or status is None:
        answer: Response | None = views.exception_handler(error, context)
        return answer
    views.set_rollback()
    machine = getattr(error, "machine", None) or getattr(getattr(error, "explanation", None), "machine", None)
    message = delivery.redact_message(machine, error) if machine else error.message
    headers = {"Retry-After": str(max(1, math.ceil(wait)))} if (wait := getattr(error, "retry_after", 0)) else {}
    return Response({"detail": message, "code": error.code}, status=status, headers=headers)


class MachineStateField(serializers.Field):
    """The state of a row, read only: ``{"state", "revision"}``; with ``events=True`` also the names of the events that
    its state accepts and the user of the request may fire, whose guards are not asked."""

    def __init__(self, *, events: bool = False, **options: Any) -> None:
        self.events = events
        super().__init__(**{**options, "read_only": True})

    def to_representation(self, value: BoundState) -> dict[str, Any]:
        found: dict[str, Any] = {"state": str(value), "revision": value.revision}
        if self.events:
            user = getattr(self.context.get("request"), "user", None)
            (accepted,) = reading.available_events([value], user)
            found["events"] = [event.name for event in accepted]
        return found
