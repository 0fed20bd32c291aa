"""The base of all patterns: one client, one prefix, one way to call the functions library, checks and errors.

Errors have a stable ``code``. Arguments are checked before anything is sent; a check raises BadInput with what is
allowed.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from machines.engine.connection.calls import Arg, Caller
from machines.engine.connection.client import Client
from machines.engine.connection.replies import Status, require_ok
from machines.engine.errors import BadInput, LookupFailed, SignalboxError
from machines.engine.keys import PREFIX
from machines.engine.pattern_keys import PatternKeys

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_PREFIX_FORM = re.compile(r"[A-Za-z0-9_.-]{1,64}:")
MAX_KEY = 512  # characters: a user name, an address, a digest
MAX_EXACT = 2**53  # up to here Lua, JavaScript and JSON readers count whole numbers exactly
MAX_NOW = 10**14  # ms: the year 5138
ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
OK = Status.OK.value  # looking up the member of an enum costs more than the comparison


class Pattern:
    """A pattern on one client. ``redis``: a client of ``machines.engine.connection.client.connect(url)``, or any
    other that decodes its responses. Safe to share between threads. Opens no connection by itself."""

    def __init__(self, redis: Client, prefix: str = PREFIX) -> None:
        if not isinstance(prefix, str) or not _PREFIX_FORM.fullmatch(prefix):
            expected = "1 to 64 letters, digits, '_', '.' or '-', and a ':' at the end"
            raise BadInput(f"a prefix is {expected}, not {prefix!r:.80}", code="SB401")
        _check_client(redis)
        self._caller = Caller(redis, prefix)
        self._keys = PatternKeys(prefix)

    def _ask(self, function: str, root: str, *args: Arg, also: tuple[str, ...] = ()) -> list[Any]:
        """Call a function; return the reply, whose status is OK or one of ``also``.

        Raises BadInput for what the function refuses, EngineUnavailable when Redis cannot be used, EngineFault for
        anything else, such as a key of another type.
        """
        reply = self._caller.call(function, root, *args)
        return reply if reply[0] in also else require_ok(function, reply)

    def _ask_all(self, calls: Sequence[tuple[str, str, Sequence[Arg]]]) -> list[list[Any]]:
        """Send several calls in one round trip, all of which have to be OK; raise as ``_ask`` does."""
        replies = self._caller.many(calls)
        return [require_ok(function, reply) for (function, *_), reply in zip(calls, replies, strict=True)]


def _check_client(redis: Any) -> None:
    if not hasattr(redis, "execute_command"):
        raise BadInput(f"redis is a client of redis-py, not {type(redis).__name__}", code="SB408")
    given = redis.get_connection_kwargs() if hasattr(redis, "get_connection_kwargs") else {}
    given = given or getattr(getattr(redis, "connection_pool", None), "connection_kwargs", {})
    if not given.get("decode_responses"):
        raise BadInput("redis is a client made with decode_responses=True: patterns read texts", code="SB408")


class PatternError(SignalboxError):
    """A pattern refused; nothing was changed."""

    code = "SB489"


class Changed(PatternError):
    """Another client wrote first. ``expected`` and ``actual``: revisions, None where there are none. ``tried``:
    number of tries. ``found``: the current contents, where the refusal carries them."""

    code = "SB481"
    shown = ("expected", "actual")

    def __init__(
        self, what: str, *, expected: int | None, actual: int | None, tried: int = 1, found: Any = None
    ) -> None:
        self.what, self.expected, self.actual, self.tried, self.found = what, expected, actual, tried, found
        subject = f"{what} is at revision {actual}, not {expected}" if (expected, actual) != (None, None) else what
        often = f", {tried} times in a row" if tried > 1 else ""
        super().__init__(f"{subject}: someone else wrote it first{often}")


class Gone(LookupFailed):
    """The object does not exist: it has expired, was revoked, or never existed."""

    code = "SB482"


class Overflow(BadInput):
    """A number would leave the range of exact integers. Nothing was changed."""

    code = "SB483"


class Full(PatternError):
    """There is no room for another item, and nothing may be removed to make room."""

    code = "SB484"


class Taken(PatternError):
    """Another client holds the object. ``retry_after``: seconds until it is free at the latest, if not renewed."""

    code = "SB485"

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class Lost(PatternError):
    """The object is no longer held: its time ran out, or another client holds it now."""

    code = "SB486"


def check_name(value: Any, what: str = "a name") -> str:
    """Return a name, which is part of a hash tag: no braces, no colon."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        expected = "1 to 64 letters, digits, '_', '.' or '-', the first no digit, '.' or '-'"
        raise BadInput(f"{what} is {expected}, not {value!r:.80}", code="SB401")
    return value


def check_key(value: Any, what: str = "a key", *, most: int = MAX_KEY) -> str:
    """Return a key of the caller's own data, which stands behind the hash tag."""
    if not isinstance(value, str) or not 0 < len(value) <= most or _is_broken(value):
        raise BadInput(f"{what} is a text of 1 to {most} characters, not {value!r:.80}", code="SB401")
    return value


def check_whole(value: Any, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadInput(f"{what} is a whole number from {least} to {most}, not {value!r:.80}", code="SB402")
    return value


def check_number(value: Any, what: str, least: float, most: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not least <= value <= most:
        raise BadInput(f"{what} is a number from {least:g} to {most:g}, not {value!r:.80}", code="SB402")
    return float(value)


def check_seconds(value: Any, what: str, *, most: float, least: float = 0.001) -> int:
    """Return a duration in seconds as whole ms."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not least <= value <= most:
        raise BadInput(f"{what} is in seconds, from {least:g} to {most:g}, not {value!r:.80}", code="SB402")
    return round(float(value) * 1000)


def check_flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{what} is True or False, not {value!r:.80}", code="SB402")
    return value


def check_now(value: Any) -> str:
    """Return ms since the epoch as text, "" for the server's own clock."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MAX_NOW:
        raise BadInput(f"now is in ms since the epoch, not {value!r:.80}", code="SB402")
    return str(value)


def encode_document(value: Any, what: str, *, most: int) -> str:
    """Return a value as JSON text of at most ``most`` bytes. Raises BadInput for what JSON cannot represent, NaN and
    infinity included."""
    try:
        text = repr(value) if type(value) is int else ENCODER.encode(value)
        size = len(text) if text.isascii() else len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"{what} cannot be represented as JSON: {error}", code="SB408") from error
    if size > most:
        raise BadInput(f"{what} has {size} bytes as JSON; {most} is the most", code="SB411")
    return text


def _is_broken(text: str) -> bool:
    """Tell whether a text holds half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
