"""Formats log lines. Text from outside stays within its line and cannot move the cursor of a terminal."""

import logging
import re

from django.core.exceptions import PermissionDenied

from machines.audit.request_context import given_id, request_id
from machines.engine.tracing import read_ids

# The public part of an API token, or of a session, and its secret.
SECRET = re.compile(r"(sb_[0-9a-f]{12}_|(?<!\d)\d{1,2}\.[0-9a-f]{16}\.)[A-Za-z0-9_-]{8,}", re.ASCII)


def plain(text: str) -> str:
    """Write out all characters that cannot be seen, as Python does in a string: controls, ends of lines, what reorders
    or hides text, halves of surrogate pairs."""
    return text if text.isprintable() else _escape(text)


def hide_tokens(text: str) -> str:
    """Remove the secrets of tokens that are part of an address."""
    return SECRET.sub(r"\1...", text)


def _escape(text: str, kept: str = "") -> str:
    return "".join(
        letter if letter.isprintable() or letter in kept else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


class Line(logging.Formatter):
    """A message is one line; a traceback below it keeps its own, without what moves a cursor."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = hide_tokens(plain(record.message))
        return super().formatMessage(record)

    def formatException(self, ei) -> str:  # type: ignore[no-untyped-def]
        return hide_tokens(_escape(super().formatException(ei), kept="\t\n"))


class RequestFilter(logging.Filter):
    """Gives a line the request it was written for, with what its sender calls it behind, and the trace:
    `` [0b5c2jw000c07]``, `` [trace 0af7651916cd43dd8448eb211c80319c]``."""

    def filter(self, record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)
        ours, theirs = (kept.get() or getattr(request, kept.name, "") for kept in (request_id, given_id))
        trace = getattr(record, "trace_id", "") or getattr(request, "trace_id", "") or read_ids()["trace_id"]
        words = [ours, f"given {theirs}" if ours and theirs else "", f"trace {trace}" if trace else ""]
        record.asked = f" [{' '.join(filter(None, words))}]" if ours or trace else ""
        return True


class Refusals(logging.Filter):
    """Logs a missing permission in one line, with account, permission and place, and without a traceback: it is not a
    fault of the site."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        request = getattr(record, "request", None)
        if isinstance(error, PermissionDenied) and request is not None:
            who = getattr(getattr(request, "user", None), "get_username", str)() or "somebody"
            right, machine = getattr(error, "right", "") or "access", getattr(error, "machine", "")
            of = f" on {machine}" if machine else ""
            record.msg, record.args = "%s lacks the right %s%s: %s", (who, right, of, request.path)
            record.exc_info = None
        return True
