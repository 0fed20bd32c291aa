"""What the actions on alarms and routes refuse."""

from machines.engine import BadInput
from machines.engine.errors import LookupFailed
from machines.webhooks.errors import BadReceiver


class UnknownAlarm(LookupFailed):
    """No such alarm stands now, or none that the person sees."""

    code = "SB660"

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"no alarm {key[:250]!r} stands now: its cause may be gone. Reload the list")


class BadAlarmInput(BadInput):
    """A reason, a duration or an owner does not fit."""

    code = "SB661"


class BadRoute(BadReceiver):
    """A field of a route does not fit."""

    code = "SB662"


class UnknownRoute(LookupFailed):
    """There is no such route of alarms."""

    code = "SB663"
