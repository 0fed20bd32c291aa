"""Decodes bytes to text, and names places in a text."""

from __future__ import annotations

import re
from pathlib import Path

from machines.engine import limits
from machines.engine.definitions.findings import Finding, make_finding

MAX_FINDINGS = 100  # in one text: each costs a walk to its line
_BOM = "\ufeff"


def decode(text: str | bytes) -> str | Finding:
    """Return the text without a byte order mark, or what is wrong with it."""
    if not isinstance(text, str | bytes | bytearray | memoryview):
        return make_finding("SB134", "", f"expected text or bytes, found {type(text).__name__}")
    if len(text) > limits.MAX_DEFINITION:
        return _too_large()
    try:
        raw = text.encode() if isinstance(text, str) else bytes(text)
        decoded = text if isinstance(text, str) else raw.decode()
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode()
        return make_finding("SB134", place(good, len(good)), f"not UTF-8: {error.reason}", _encoding_hint(raw))
    except UnicodeEncodeError as error:
        return make_finding("SB134", place(str(text), error.start), "the text holds half of a surrogate pair")
    if len(raw) > limits.MAX_DEFINITION:
        return _too_large()
    nul = decoded.find("\0")
    if nul >= 0:
        return make_finding("SB134", place(decoded, nul), "the text holds NUL", _encoding_hint(raw))
    return decoded.removeprefix(_BOM)


def describe_unreadable(error: OSError) -> Finding:
    """Say why a file cannot be read."""
    return make_finding("SB136", "", f"the file cannot be read: {error.strerror}", "check that it exists, and its mode")


def stem(base: str | Path | None) -> str:
    """Return the file name of a text as a machine name; an empty text if there is no file."""
    file = Path(base) if base is not None else None
    if file is None or not file.is_file():
        return ""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", file.name.split(".")[0]).lstrip("-0123456789").rstrip("-")
    return name[: limits.MAX_NAME]


def place(text: str, offset: int) -> str:
    """Return ``line 3, column 7``. Both count from 1, as editors do."""
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    return f"line {line}, column {column}"


def _encoding_hint(raw: bytes) -> str:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or raw[1:2] == b"\0" or raw[:1] == b"\0":
        return "it looks like UTF-16; save it as UTF-8"
    return "save the file as UTF-8"


def _too_large() -> Finding:
    return make_finding("SB111", "", f"the text is larger than {limits.MAX_DEFINITION} bytes")
