"""The engine's side of limits: one call of ``sb_throttle``. ``machines.patterns.throttle`` is what callers use."""

from __future__ import annotations

from .calls import Caller
from .client import Client
from .errors import BadInput, EngineFault
from .keys import PREFIX, Keys
from .replies import Status


class Limits:
    """Asks for parts of limits on one Redis, each by its own key."""

    def __init__(self, redis: Client, prefix: str = PREFIX) -> None:
        self._caller = Caller(redis)
        self._keys = Keys(prefix)

    def ask(
        self, kind: str, name: str, key: str, limit: int, per: int, cost: int, now: int | None
    ) -> tuple[bool, int, int, int]:
        """Allowed, remaining, ms until all is there again, ms until this call would be allowed.

        ``kind``: pace or window. ``per`` in ms. Raises BadInput for what the function refuses.
        """
        at = self._keys.pace(name, key) if kind == "pace" else self._keys.window(name, key)
        reply = self._caller.call("sb_throttle", at, kind, limit, per, cost, "" if now is None else str(now))
        if reply[0] == Status.BAD_ARGUMENT:
            raise BadInput(str(reply[1]))
        if reply[0] != Status.OK:
            raise EngineFault(f"sb_throttle answered {reply[0]!r}")
        allowed, remaining, reset, retry = (int(part) for part in reply[1:5])
        return allowed == 1, remaining, reset, retry

    def forget(self, name: str, key: str) -> None:
        for at in (self._keys.pace(name, key), self._keys.window(name, key)):
            self._caller.command("DEL", at)
