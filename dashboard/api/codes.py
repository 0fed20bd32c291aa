"""Every error code the API may answer with: its HTTP status, its title, and what it means.

The engine's come from its classes, so that none is forgotten; those of the API itself stand here:

    SB712 too many of one's own at a time      SB713 the request is too large
    SB714 the site has too much to do
    SB708 a session sent no CSRF token         SB720 nobody is known by these credentials
    SB721 the request does not fit             SB722 a method that is not there
    SB723 the same Idempotency-Key, another request     SB724 the first request of that key is still under way
    SB725 the budget of requests is spent      SB726 a header or cursor is none
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dashboard.pages.verdicts import (
    BAD_REQUEST,
    BUSY,
    COOKIES_TOO_LARGE,
    CROWDED,
    FAULT,
    FORBIDDEN,
    NO_PAGE,
    STALE_FORM,
    TOO_LARGE,
    status_of,
    title_of,
)
from machines.engine.errors import NARROWER, SignalboxError

NOBODY, UNFIT, NO_METHOD, OTHER_REQUEST, UNDER_WAY, OVER_BUDGET, BAD_HEADER = (f"SB{n}" for n in range(720, 727))


@dataclass(frozen=True, slots=True)
class Code:
    code: str
    status: int
    title: str
    meaning: str


OWN = (
    Code(BAD_REQUEST, 400, "Bad request", "The request is malformed or too large."),
    Code(FORBIDDEN, 403, "Permission denied", "The account or the token does not have the required permission."),
    Code(NO_PAGE, 404, "Not found", "This address does not exist."),
    Code(
        STALE_FORM,
        403,
        "CSRF token missing",
        "Requests that use a login session must send X-CSRFToken with every change.",
    ),
    Code(FAULT, 500, "Internal server error", "The error is logged. Whether anything changed is unknown."),
    Code(COOKIES_TOO_LARGE, 431, "Cookies too large", "The Cookie header exceeds the limit."),
    Code(CROWDED, 429, "Too many concurrent requests", "The caller has too many requests in progress."),
    Code(TOO_LARGE, 413, "Request body too large", "The body exceeds `limit` bytes."),
    Code(BUSY, 503, "Server busy", "The server is overloaded; retry after `Retry-After` seconds."),
    Code(NOBODY, 401, "Authentication required", "No credentials, or invalid ones: a wrong, expired or revoked token."),
    Code(UNFIT, 422, "Validation failed", "`errors` lists each invalid field with a JSON pointer."),
    Code(NO_METHOD, 405, "Method not allowed", "`Allow` lists the supported methods."),
    Code(OTHER_REQUEST, 422, "Idempotency key reused", "The same Idempotency-Key was used with a different request."),
    Code(
        UNDER_WAY,
        409,
        "Request in progress",
        "The first request with this Idempotency-Key has not finished; try again.",
    ),
    Code(OVER_BUDGET, 429, "Too many requests", "Retry after `Retry-After` seconds."),
    Code(
        BAD_HEADER,
        400,
        "Invalid header or cursor",
        "A header or a cursor is malformed, or was not issued by this server.",
    ),
)
BY_CODE = {one.code: one for one in OWN}


def every() -> list[Code]:
    """In the order of their codes."""
    found = dict(BY_CODE)
    for code in (*_classes(SignalboxError), *_narrower()):
        found.setdefault(code.code, code)
    return [found[name] for name in sorted(found)]


def _classes(kind: type[SignalboxError]) -> Iterator[Code]:
    for one in kind.__subclasses__():
        meaning = " ".join((one.__doc__ or "").split()) or title_of(one)
        yield Code(one.code, status_of(one), title_of(one), meaning)
        yield from _classes(one)


def _narrower() -> Iterator[Code]:
    classes = {one.__name__: one for one in _all(SignalboxError)}
    for code, text in NARROWER.items():
        name, _, meaning = text.partition(": ")
        yield Code(code, status_of(classes[name]), title_of(classes[name]), meaning)


def _all(kind: type[SignalboxError]) -> Iterator[type[SignalboxError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _all(one)
