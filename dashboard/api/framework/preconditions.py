"""ETag and If-Match: the revision of an instance, draft, session or note that the caller saw."""

from __future__ import annotations

import re
from typing import TypeVar

from django.http import HttpRequest, HttpResponse

from machines.engine import Instance
from machines.models import Draft
from machines.patterns import Session
from machines.people.notes import Note

TAG = re.compile(r'"?([0-9]{1,15})"?', re.ASCII)


class BadTag(Exception):
    """If-Match names no revision."""

    def __init__(self) -> None:
        super().__init__('If-Match takes one number, as ETag gave it: "7"')


def read_expected(request: HttpRequest) -> int | None:
    """Return the revision that the caller saw; None if any revision will do. Raises BadTag."""
    header = request.headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    found = TAG.fullmatch(header)
    if found is None:
        raise BadTag
    return int(found[1])


Tagged = TypeVar("Tagged", Instance, Session, Note, Draft)


def set_etag(response: HttpResponse, found: Tagged) -> Tagged:
    """Write the revision of what is answered into the ETag."""
    response["ETag"] = f'"{found.revision}"'
    return found
