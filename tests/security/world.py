"""One world for the whole matrix: built once for a module, put back after whatever a request changed in it.

In SQL that is a savepoint around each request. In Redis it is a copy of every key of the test, taken with DUMP.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from unittest import mock

import redis
from django.conf import settings as django_settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings

from dashboard.shared.errors import pages
from dashboard.site import stores
from machines import diagrams
from machines.catalog.publishing import adopt_published
from machines.connections import get_engine
from machines.engine import Engine
from machines.engine.definitions import outline
from machines.models import Machine
from tests.api.conftest import BUILDERS
from tests.api.table import DOOR as API_DOOR
from tests.api.table import KEY
from tests.conftest import remove
from tests.pages.conftest import TOKEN, example, furnish
from tests.pages.table import OF_KEY, OF_WORKER

#: limits have tests of their own, and nobody reaches them here
NO_LIMITS = {"API_RATE": "off", "FIRE_RATE": "off", "LOGIN_ATTEMPTS": 10_000}


class Keys:
    """What the keys of a test hold."""

    def __init__(self, client: redis.Redis, prefix: str) -> None:
        self.client = client
        self.patterns = [f"{prefix}*", f"{stores.web_prefix(prefix)}*"]
        self.others = [OF_KEY["key"], KEY]  # of the SM commands, which are under no prefix
        self.kept: dict[bytes, tuple[bytes, int]] = {}

    def read(self) -> dict[bytes, tuple[bytes, int]]:
        """Each key with its content, and when it ends (ms, -1 for never)."""
        names = [name for pattern in self.patterns for name in self.client.scan_iter(match=pattern, count=5000)]
        names += [key.encode() for key in self.others]
        with self.client.pipeline(transaction=False) as asked:
            for name in names:
                asked.dump(name)
                asked.execute_command("PEXPIRETIME", name)
            found = asked.execute()
        pairs = zip(found[::2], found[1::2], strict=True)
        return {name: pair for name, pair in zip(names, pairs, strict=True) if pair[0] is not None}

    def keep(self) -> None:
        self.kept = self.read()

    def put_back(self) -> None:
        now = self.read()
        with self.client.pipeline(transaction=False) as change:
            for name in now.keys() - self.kept.keys():
                change.delete(name)
            for name, (content, ends) in self.kept.items():
                if now.get(name) != (content, ends):
                    change.restore(name, max(ends, 0), content, replace=True, absttl=ends >= 0)
            change.execute()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def kind(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0]


class World:
    """``engine`` on the keys of this world."""

    def __init__(self, engine: Engine, keys: Keys) -> None:
        self.engine = engine
        self.keys = keys

    def settle(self) -> None:
        """What is there now is what there is from here on. Its worker lives for ever, though it never reports."""
        self.engine.client.persist(self.engine.keys.worker(OF_WORKER["worker"]))
        self.keys.keep()

    def ask(self, client: Client, method: str, address: str, *, settled: bool = False, **given: Any) -> Answer:
        """The answer to one request, which has not happened afterwards. What is refused has changed nothing; nor has
        what is ``settled`` to do so, and a test looks."""
        cookies = client.cookies
        client.cookies = SimpleCookie({name: one.value for name, one in cookies.items()})
        with _undone():
            found = _sent(client, method, address, **given)
            body = b"".join(found.streaming_content) if found.streaming else found.content
        client.cookies = cookies
        if not settled and method not in ("get", "head", "options", "trace") and found.status_code < 400:
            self.keys.put_back()
        return Answer(found.status_code, dict(found.headers), body)

    @contextmanager
    def standing(self, *words: str) -> Iterator[dict[str, Any]]:
        """What operations of the API need to be there, by the words of their cases; what paths are filled with."""
        filled: dict[str, Any] = {}
        before = self.keys.kept
        with _undone():
            for word in words:
                filled |= BUILDERS[word](self.engine, _a_user) or {}
            self.settle()
            try:
                yield filled
            finally:
                self.keys.kept = before
                self.keys.put_back()


def _sent(client: Client, method: str, address: str, **given: Any) -> Any:
    """Bytes as they are: Django's client would write them in the encoding that they name."""
    if isinstance(given.get("data"), bytes):
        return client.generic(method.upper(), address, **given)
    return getattr(client, method)(address, **given)


@contextmanager
def _undone() -> Iterator[None]:
    with transaction.atomic():
        try:
            yield
        finally:
            transaction.set_rollback(True)


def _a_user(name: str, *rights: str, **_: Any) -> Any:
    """As what the builders ask for people; what these hold matters to nobody here."""
    return get_user_model().objects.get_or_create(username=name)[0]


def _forget(*_: Any, **__: Any) -> None:
    """In place of what copies every context for tests that look into it: of thousands of pages nobody does."""


@contextmanager
def short_refusals() -> Iterator[None]:
    """Answer refusals by their status and code alone, after each account has been shown the whole page of each code,
    and somebody that of each right: thousands of the same pages would take a third of the time."""
    render = pages.render
    seen: set[tuple[Any, ...]] = set()

    def answer(request: HttpRequest, template: str, context: dict[str, Any], status: int) -> HttpResponse:
        kinds = {(request.user.pk, status, context["code"]), (status, context["code"], context.get("right"))}
        if kinds <= seen:
            return HttpResponse(context["code"], status=status)
        seen.update(kinds)
        return render(request, template, context, status=status)

    with mock.patch.object(pages, "render", answer):
        yield


@contextmanager
def made(redis_url: str, build: Callable[[Engine], None]) -> Iterator[World]:
    """A world on a prefix of its own, in a transaction that is never committed."""
    prefix = f"t{secrets.token_hex(4)}:"
    ours = django_settings.SIGNALBOX | NO_LIMITS | {"REDIS_URL": redis_url, "PREFIX": prefix}
    with ExitStack() as held:
        held.enter_context(override_settings(SIGNALBOX=ours, CACHES=stores.caches(redis_url, prefix)))
        held.enter_context(mock.patch("django.test.client.store_rendered_templates", _forget))
        client = held.enter_context(redis.Redis.from_url(redis_url))
        keys = Keys(client, prefix)
        for start in (prefix, stores.web_prefix(prefix), *keys.others):
            held.callback(remove, client, start)
        engine = get_engine()
        held.enter_context(_undone())
        build(engine)
        keys.keep()
        yield World(engine, keys)


def build(engine: Engine) -> None:
    """Something at each address of pages and API, and one machine that none of them is about."""
    for name in ("activation", "new_device", "payment"):
        engine.publish(example(name))
    engine.create("activation", "ATV-123:NBCSports")
    engine.fire("activation", "ATV-123:NBCSports", "activate", TOKEN)
    engine.create("payment", "P-1", {"amount": 20})
    furnish(engine)
    published = engine.publish(API_DOOR)
    row = Machine.objects.create(name="door", current=1)
    drawn = {"drawing": diagrams.draw(outline(API_DOOR)), "drawing_format": diagrams.DRAWING}
    row.versions.create(number=1, definition=API_DOOR, digest=published.digest, **drawn)
    engine.create("door", "front", {"serial": "D-1", "pin": "4711"})
    adopt_published({})
