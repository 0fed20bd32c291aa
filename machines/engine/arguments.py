"""Checks the arguments of engine calls and encodes them as the functions library takes them.

Each function raises BadInput or BadPayload with a sentence that names the argument and what is allowed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from math import isfinite
from typing import Any

from . import limits, permits
from .errors import BadInput, BadPayload
from .records import Fire

PLAIN = 1000  # characters of a name and its value that need no size check: far below every limit in any alphabet

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_quote = json.encoder.encode_basestring


def check_name(kind: str, value: object, why: str | None) -> str:
    """Return ``value`` as text; raise BadInput when ``why`` says what is wrong with it."""
    if why is not None:
        raise BadInput(f"{kind} {show(value)} {why}", code="SB401")
    return str(value)


def check_machine(value: object) -> str:
    return check_name("machine name", value, limits.check_machine_name(value))


def check_instance(value: object) -> str:
    return check_name("instance id", value, limits.check_instance_id(value))


def check_event(value: object) -> str:
    if isinstance(value, str) and _sound_event(value):
        return value
    return check_name("event", value, limits.check_external_event_name(value))


@lru_cache(maxsize=4096)
def _sound_event(value: str) -> bool:
    """Tell whether a value is an event name. Cached: a machine has few event names and sends them often."""
    return limits.check_external_event_name(value) is None


def check_state(value: object) -> str:
    return check_name("state", value, limits.check_state_name(value))


def join_states(value: object) -> str:
    """Return one state, or several of different regions joined by newlines."""
    if isinstance(value, list | tuple):
        if not value:
            raise BadInput("no state is named", code="SB401")
        return "\n".join(check_state(one) for one in value)
    return check_state(value)


def check_queue(value: object) -> str:
    return check_name("queue", value, limits.check_queue_name(value))


def encode_whole(what: str, value: object, *, least: int = 0) -> str:
    """Return a whole number as text, "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= limits.MAX_INTEGER:
        raise BadInput(f"{what} is a whole number of at least {least}, not {show(value)}", code="SB402")
    return str(value)


def check_count(what: str, value: object, most: int) -> int:
    """Return a number of things: a whole number from 1 to ``most``."""
    return check_between(what, value, 1, most)


def check_between(what: str, value: object, least: int, most: int) -> int:
    """Return a whole number within a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadInput(f"{what} is a whole number from {least} to {most}, not {show(value)}", code="SB402")
    return value


def check_unique(value: object) -> str:
    """Return a unique key, "" for None."""
    return "" if value is None else check_name("unique key", value, limits.check_unique_key(value))


def check_group(value: object) -> str:
    """Return a group of jobs, "" for None; as long as a unique key."""
    return "" if value is None else check_name("group", value, limits.check_unique_key(value))


def check_weight(value: object) -> float:
    """Return the weight of a group of jobs."""
    least, most = limits.MIN_WEIGHT, limits.MAX_WEIGHT
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise BadInput(f"weight is a number from {least} to {most}, not {show(value)}", code="SB402")
    return value


def join_kinds(value: object) -> str:
    """Return names of exception classes joined by spaces."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) > limits.MAX_STOPS:
        raise BadInput(f"stop is a list of at most {limits.MAX_STOPS} exception names, not {show(value)}", code="SB401")
    return " ".join(check_name("exception", one, limits.check_exception_kind(one)) for one in value)


def check_seconds(what: str, value: object, most: float | None = None) -> float:
    """Return a finite number of seconds, from 0 to ``most`` where that is given."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise BadInput(f"{what} is a number of seconds, not {show(value)}", code="SB402")
    if most is not None and not 0 <= value <= most:
        raise BadInput(f"{what} is a number of seconds from 0 to {most:g}, not {show(value)}", code="SB402")
    return value


def encode_amount(what: str, value: object) -> str:
    """Return any number from 0 as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= limits.MAX_INTEGER:
        raise BadInput(f"{what} is a number from 0, not {show(value)}", code="SB402")
    return str(value)


def require_text(what: str, value: object) -> str:
    """Return text of any length and characters."""
    if not isinstance(value, str):
        raise BadInput(f"{what} is text, not {type(value).__name__}", code="SB403")
    return value


def check_text(what: str, value: object, most: int) -> str:
    """Return free text of at most ``most`` characters, "" for None."""
    if value is None or value == "":
        return ""
    value = require_text(what, value)
    if len(value) > most:
        raise BadInput(f"{what} has at most {most} characters, not {len(value)}", code="SB403")
    if "\x00" in value:
        raise BadInput(f"{what} holds a NUL character", code="SB403")
    return _utf8(what, value)


def check_actor(value: object) -> str:
    return check_text("actor", value, limits.MAX_ACTOR)


def check_reason(value: object) -> str:
    return check_text("reason", value, limits.MAX_REASON)


def require_reason(value: object) -> str:
    """Return a reason that is not empty."""
    given = check_reason(value)
    if not given.strip():
        raise BadInput("a repair needs a reason: say why, for the history", code="SB404")
    return given


def check_key(value: object) -> str:
    return check_text("idempotency key", value, limits.MAX_IDEMPOTENCY_KEY)


def encode_fields(what: str, value: object, most: int) -> str:
    """Return a mapping as compact JSON, "" for None or an empty one. Raises BadPayload."""
    if value is None or value == {}:
        return ""
    if not isinstance(value, Mapping):
        raise BadPayload(f"{what} is an object of fields, not {type(value).__name__}")
    if type(value) is dict and len(value) == 1:
        # Nearly every event carries one field of plain text: skip the check of each value.
        ((name, text),) = value.items()
        if (
            type(name) is str
            and type(text) is str
            and len(name) + len(text) < PLAIN
            and name.isprintable()
            and text.isprintable()
        ):
            return f"{{{_quote(name)}:{_quote(text)}}}"
    return encode_document(what, dict(value), most)


def encode_document(what: str, value: object, most: int) -> str:
    """Return any JSON value as compact text. Raises BadPayload, which names the field at fault."""
    _check(what, value, (), 1)
    try:
        encoded = _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadPayload(f"{what} is not JSON: {error}") from error
    size = len(_utf8(what, encoded).encode())
    if size > most:
        raise BadPayload(f"{what} has {size} bytes of JSON; {most} are allowed", code="SB411")
    return encoded


def _check(what: str, value: object, path: tuple[str, ...], depth: int) -> None:
    """Refuse what JSON or a double cannot carry: odd types, NaN, huge integers, NUL, depth."""
    if isinstance(value, (Mapping, list, tuple)) and depth > limits.MAX_JSON_DEPTH:
        raise _make_error(what, path, f"is nested deeper than {limits.MAX_JSON_DEPTH}")
    if isinstance(value, Mapping):
        for inner, item in value.items():
            if not isinstance(inner, str):
                raise _make_error(what, path, f"has a key that is not text: {show(inner)}")
            _check(what, inner, path, depth)
            _check(what, item, (*path, inner), depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check(what, item, (*path, str(index)), depth + 1)
    elif (why := _explain_misfit(value)) is not None:
        raise _make_error(what, path, why)


def _explain_misfit(value: object) -> str | None:
    """Return why a single value cannot be sent, or None."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return "holds a NUL character" if "\x00" in value else None
    if isinstance(value, int):
        big = abs(value) > limits.MAX_INTEGER
        return "is an integer past 2**53, which a double cannot carry; send it as text" if big else None
    if isinstance(value, float):
        return None if isfinite(value) else f"is {value}, which JSON cannot carry"
    return f"is a {type(value).__name__}, which JSON cannot carry"


def _make_error(what: str, path: tuple[str, ...], why: str) -> BadPayload:
    where = f"{what} field {'.'.join(path)!r}" if path else what
    return BadPayload(f"{where} {why}", field=path[0] if path else None)


def _utf8(what: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadPayload(f"{what} is not valid Unicode: {error.reason}") from error
    return value


def show(value: object) -> str:
    """Return a value as an error shows it: long ones are cut."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


REVISION_ALONE = "version"  # the argument of ``sb_fire`` that asks for it


def encode_fire(call: Fire, revision_only: bool = False) -> tuple[Any, ...]:
    """Encode the arguments of ``sb_fire``, in its order. Raises BadInput or BadPayload."""
    found = (
        call.id,
        check_event(call.event),
        encode_fields("payload", call.payload, limits.MAX_PAYLOAD),
        "" if call.expect is None else encode_whole("expect", call.expect),
        "" if call.key is None else check_key(call.key),
        "" if call.actor == "" else check_actor(call.actor),
        "" if call.reason == "" else check_reason(call.reason),
        "" if call.now is None else encode_whole("now", call.now),
    )
    if call.permit is None and not revision_only:
        return found
    permit = "" if call.permit is None else permits.encode_permit(call.permit)
    return (*found, permit, REVISION_ALONE) if revision_only else (*found, permit)


def read_fire(item: Fire | Mapping[str, Any] | Sequence[Any]) -> Fire:
    """Return one item of ``Engine.fire_many``, a Fire, its fields by name or the first five in order, as a Fire."""
    try:
        call = item if isinstance(item, Fire) else Fire(**item) if isinstance(item, Mapping) else Fire(*item)
    except TypeError as error:
        allowed = ", ".join(asdict(Fire("", "", "")))
        raise BadInput(f"a call for fire_many() has the fields {allowed}: {error}", code="SB407") from error
    check_machine(call.machine)
    check_instance(call.id)
    return call
