"""ETag and If-Match: the version of an instance, session or note, so that nobody changes what they never saw."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse

from machines.engine import Instance
from machines.patterns import Session
from machines.services.notes import Note

TAG = re.compile(r'"?([0-9]{1,15})"?', re.ASCII)


class BadTag(Exception):
    """If-Match names no version."""

    def __init__(self) -> None:
        super().__init__('If-Match takes one version, as ETag gave it: "7"')


def expected(request: HttpRequest) -> int | None:
    """The version the caller saw; None where it does not matter. Raises BadTag."""
    header = request.headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    found = TAG.fullmatch(header)
    if found is None:
        raise BadTag
    return int(found[1])


def tagged(response: HttpResponse, found: Instance | Session | Note) -> None:
    response["ETag"] = f'"{found.version}"'
