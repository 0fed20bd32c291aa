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
    Code(BAD_REQUEST, 400, "This request does not make sense", "Something in it is malformed or too large."),
    Code(FORBIDDEN, 403, "Not with this account", "The account or the token does not have the right for this."),
    Code(NO_PAGE, 404, "Nothing here", "Nothing lives at this address."),
    Code(
        STALE_FORM, 403, "The CSRF token is missing", "A session has to send X-CSRFToken with what changes something."
    ),
    Code(FAULT, 500, "The site failed", "It is logged; nobody knows whether anything was changed."),
    Code(COOKIES_TOO_LARGE, 431, "The cookies are too large", "The Cookie header is longer than this site reads."),
    Code(CROWDED, 429, "Too many at a time", "More of the caller's requests are under way than may at a time."),
    Code(TOO_LARGE, 413, "Too large", "The body is larger than may be sent; `limit` says how many bytes may be."),
    Code(
        BUSY, 503, "The site is busy", "It has more to do than it can at the moment; `Retry-After` says when to come."
    ),
    Code(NOBODY, 401, "Who is asking?", "No credentials, or none that hold: a token that is wrong, ended or revoked."),
    Code(UNFIT, 422, "The request does not fit", "`errors` lists each field, with a pointer to it."),
    Code(NO_METHOD, 405, "No such method here", "`Allow` lists those there are."),
    Code(OTHER_REQUEST, 422, "The key is taken", "The same Idempotency-Key came before with another request."),
    Code(UNDER_WAY, 409, "Still under way", "The first request of this Idempotency-Key has not ended: ask again."),
    Code(OVER_BUDGET, 429, "Too many requests", "`Retry-After` says in how many seconds one is allowed again."),
    Code(BAD_HEADER, 400, "A header or a cursor is none", "It is not written as it has to be, or not from here."),
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
