"""Builds and reads addresses: of pages, of an id that a page names, of saved views; and ids and numbers in them."""

import hashlib
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import islice
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, get_script_prefix, get_urlconf, register_converter, reverse
from django.urls.converters import StringConverter
from django.utils.http import RFC3986_SUBDELIMS

from dashboard.models import SavedView
from dashboard.site.mount_point import find_page
from machines.engine import Job
from machines.people.permissions import anywhere, scope_of


def page_of(name: str, *arguments: str) -> str:
    """Return the address of a page, or "" for names that can have none.

    Workers, definitions that compute names and old audit entries may contain any text.
    """
    try:
        if name == "instance":
            return find_instance_address(*arguments)
        return find_page_address(f"signalbox:{name}", *arguments)
    except NoReverseMatch:
        return ""


def job_url(job: Job) -> str:
    """Return the address of a job. ``of`` names the instance whose history has its trace once the job has ended."""
    address = find_page_address("signalbox:job", job.machine, job.id)
    return f"{address}?{urlencode({'of': job.instance})}" if job.instance else address


MOST = 4096
"""Addresses a process remembers; those not asked for longest make room."""
PLACE = "instance"
SAFE = RFC3986_SUBDELIMS + "/~:@"  # what ``reverse`` leaves as it is


class InstanceId:
    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        return value.replace("~2F", "/").replace("~2E", ".").replace("~7E", "~")

    def to_url(self, value: str) -> str:
        escaped = value.replace("~", "~7E").replace("/", "~2F")
        return f"~2E{escaped[1:]}" if escaped.startswith(".") else escaped


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


class Name(StringConverter):
    """Matches a machine or queue name, as the engine accepts them."""

    regex = "[A-Za-z_][A-Za-z0-9_.-]{0,63}"


class JobId(Name):
    """Matches ``<partition>-<number>``, as the engine numbers jobs."""

    regex = "[0-9]{1,5}-[0-9]{1,16}"


@cache
def register() -> None:
    """Register ``<instance:id>``, ``<name:machine>``, ``<job:id>``. Every module with such URL patterns calls it."""
    register_converter(JobId, "job")
    register_converter(InstanceId, "instance")
    register_converter(Name, "name")


DIGITS = 9  # of the number of a version, an object or a place
REVISION_DIGITS = 15


def parse_number(text: str, digits: int = DIGITS) -> int | None:
    """Return a whole number from 0 with at most so many digits; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


Headers = Iterable[tuple[bytes, bytes]]


def caller_of(headers: Headers) -> str:
    """Return a hash of the session or token in the headers; "" without any."""
    found = dict(headers)
    shown = found.get(b"authorization", b"") or session_of(found.get(b"cookie", b""))
    return hashlib.sha256(shown).hexdigest()[:16] if shown else ""


def session_of(cookies: bytes) -> bytes:
    """Return the session's cookie as it was sent; empty if there is none."""
    name = settings.SESSION_COOKIE_NAME.encode()
    for cookie in cookies.split(b";"):
        key, _, value = cookie.strip().partition(b"=")
        if key == name:
            return value
    return b""


def _link_in_machine(name: str) -> Callable[..., str]:
    """Return a function that makes the address of a page of a machine, its name first."""

    def address(user: Any, machine: str, *names: str) -> str:
        return page_of(name, machine, *names) if machine in scope_of(user) else ""

    return address


def _link_without_machine(name: str) -> Callable[..., str]:
    """Return a function that makes the address of a page that has no machine in it, of something of a machine."""

    def address(user: Any, machine: str, id: str) -> str:
        return page_of(name, id) if machine in scope_of(user) else ""

    return address


def _link_worker(user: Any, id: str) -> str:
    return f"{find_page_address('signalbox:workers')}#{worker_anchor(id)}" if anywhere(user, "view") else ""


def _request(user: Any, id: str) -> str:
    return f"{find_page_address('signalbox:audit')}?{urlencode({'request': id})}" if anywhere(user, "audit") else ""


def _link_webhook(user: Any, id: str) -> str:
    return page_of("webhook", id) if scope_of(user, "operate").all else ""


ADDRESSES: dict[str, Callable[..., str]] = {
    "machine": _link_in_machine("machine"),
    "instance": _link_in_machine("instance"),
    "job": _link_in_machine("job"),
    "queue": _link_in_machine("queue"),
    "bulk": _link_without_machine("bulk"),
    "approval": _link_without_machine("approval"),
    "worker": _link_worker,
    "request": _request,
    "webhook": _link_webhook,
}
"""Kind of an id -> a function of the person and the names that makes its address, "" for none."""


def find_address(user: Any, kind: str, *names: str) -> str:
    """Return the address of what an id names, or "" where it has no page or the person may not open it.

    ``names``: of an instance, job or queue its machine and its id; of a bulk action or an approval the machine that it
    is about and its id; of the others the id.
    """
    return ADDRESSES[kind](user, *(str(name) for name in names)) if all(names) else ""


def worker_anchor(id: str) -> str:
    """Return the fragment of a worker's panel on the page of workers."""
    return f"worker-{quote(id, safe='')}"


SHOWN = 30  # on one page


def list_saved_views(request: HttpRequest, own: str, query: str) -> dict[str, object]:
    """Return the context of the list of views of the page at ``own``, and of the form that saves ``query``."""
    views = list(islice(SavedView.list_for(request.user, page=find_page(own)[0]), SHOWN))
    return {"views": views, "page": own, "query": query}
