"""Remembers addresses of pages: ``reverse`` takes 25 µs, and a page of lists asks for a hundred and more.

An address depends on its name, its arguments and on where the pages are mounted, and on nothing else: neither on the
person nor on what there is. Whether somebody may open it is asked elsewhere, each time.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

from django.conf import settings
from django.urls import get_script_prefix, get_urlconf, reverse
from django.utils.http import RFC3986_SUBDELIMS

from .converters import InstanceId

MOST = 4096
"""Addresses a process remembers; those not asked for longest make room."""
PLACE = "instance"
SAFE = RFC3986_SUBDELIMS + "/~:@"  # what ``reverse`` leaves as it is
_instances = InstanceId()


def find_page_address(name: str, *args: str | int, current_app: str | None = None) -> str:
    """Return what ``reverse`` gives for a name such as ``signalbox:machine``. Raise NoReverseMatch as it does."""
    return _find(get_urlconf() or settings.ROOT_URLCONF, get_script_prefix(), current_app, name, args)


def find_instance_address(machine: str, id: str, current_app: str | None = None) -> str:
    """Return the address of an instance. Ids are too many to remember: only what stands in front of them is."""
    front, _, behind = find_page_address("signalbox:instance", machine, PLACE, current_app=current_app).rpartition(
        PLACE
    )
    return f"{front}{quote(_instances.to_url(id), safe=SAFE)}{behind}"


@lru_cache(maxsize=MOST, typed=True)
def _find(urlconf: str, script: str, current_app: str | None, name: str, args: tuple[str | int, ...]) -> str:
    return reverse(name, urlconf=urlconf, args=args, current_app=current_app)
