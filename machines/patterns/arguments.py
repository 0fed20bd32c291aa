"""Checks the arguments of patterns before anything is sent. Each function raises BadInput with what is allowed.

A boolean is not a number here, and neither is NaN or infinity.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from machines.engine.errors import BadInput

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
PREFIX = re.compile(r"[A-Za-z0-9_.-]{1,64}:")
MAX_KEY = 512  # characters: a user name, an address, a digest
MAX_EXACT = 2**53  # up to here Lua, JavaScript and JSON readers count whole numbers exactly
MAX_NOW = 10**14  # ms: the year 5138
ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


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
