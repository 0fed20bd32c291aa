"""Computes the shape of an error message, and the key of the group that a failure belongs to."""

from __future__ import annotations

import re
import unicodedata

from django.utils.crypto import salted_hmac

MAX_MESSAGE = 1_000  # characters of a message that are read
MAX_SHAPE = 300
MAX_NAME = 200  # characters of a handler and of an exception

_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_DIGITS = r"\d{1,40}(?:[.,]\d{1,40}){0,8}"
_PLACEHOLDERS = (
    (re.compile(r"(?<!\w)'[^']{0,300}'(?!\w)|(?<!\w)\"[^\"]{0,300}\"(?!\w)|`[^`]{0,300}`"), "<text>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s<>\"']{1,500}", re.I), "<address>"),
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){0,8}"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I), "<uuid>"),
    (re.compile(rf"\b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_TIME}(?:Z|[+-]\d{{2}}:?\d{{2}})?)?\b"), "<time>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"), "<address>"),
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}(?![\w:])", re.I), "<address>"),
    (re.compile(rf"\b{_TIME}\b"), "<time>"),
    (re.compile(r"\b0x[0-9a-f]{1,64}\b", re.I), "<hex>"),
    (re.compile(r"\b(?=[a-f]{0,63}\d)[0-9a-f]{8,64}\b(?!\.)", re.I), "<hex>"),
    (re.compile(rf"(?<![\w.-])[+-]?{_DIGITS}(?:e[+-]?\d{{1,4}})?(?=(?:[a-zµ]{{1,2}}|%)?(?![\w-]))", re.I),
     "<number>"),
    (re.compile(r"(?<![\w<-])[\w-]{0,100}\d[\w-]{0,100}"), "<id>"),
)  # fmt: skip
"""Pattern -> placeholder, applied in this order. Every repetition is bounded: a hostile message costs no more time."""
_REPEATED = re.compile(r"(<[a-z]+>)(?:, ?\1)+")


def compute_shape(message: str) -> str:
    """Return a message with the parts that differ from one failure to the next replaced by placeholders."""
    text = " ".join("".join(map(_make_printable, message[:MAX_MESSAGE])).split())
    for pattern, placeholder in _PLACEHOLDERS:
        text = pattern.sub(placeholder, text)
    return _REPEATED.sub(r"\1, …", text)[:MAX_SHAPE]


def clean_name(text: str) -> str:
    """Return a handler's or an exception's name as one line that SQL can hold."""
    return " ".join("".join(map(_make_printable, text[:MAX_NAME])).split())


def compute_key(handler: str, kind: str, shape: str, machine: str = "") -> str:
    """Return the key of a group, 64 hexadecimal digits. ``machine``: for a group of one machine alone. The secret key
    of the site goes in, so that nobody can try out messages against a key."""
    return salted_hmac("machines.failures", "\0".join((machine, handler, kind, shape)), algorithm="sha256").hexdigest()


def _make_printable(sign: str) -> str:
    """Replace control characters, invisible marks and halves of surrogate pairs by spaces."""
    return " " if unicodedata.category(sign)[0] == "C" else sign
