"""ETag and If-Match: an instance's version over HTTP, so that nobody moves what they have not seen."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse

from machines.engine import Instance

TAG = re.compile(r'"?([0-9]{1,15})"?', re.ASCII)


class BadTag(Exception):
    """If-Match names no version of an instance."""

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


def tagged(response: HttpResponse, instance: Instance) -> None:
    response["ETag"] = f'"{instance.version}"'
