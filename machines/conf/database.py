"""Helpers for the SQL database: connections of workers, retries of background duties, which must not end during an
outage, prepared queries, and the field of JSON.

Django builds the SQL of a query anew each time, which takes several times as long as running one that reads a few rows.
A prepared query keeps the SQL that each request asks with another number or time in it. The SQL is Django's, made once
for each database; the rows are read anew each time.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from django.db import Error, OperationalError, close_old_connections, connection, connections, router
from django.db.models import Model, QuerySet, TextField

KEPT = 60  # seconds
LOCKED = re.compile("database .*is locked")  # as SQLite says it; an account of MySQL may be locked, too


class DocumentField(TextField):
    """JSON kept as text, because ``jsonb`` of PostgreSQL reorders keys, and transitions count in document order.

    Everything outside ASCII is escaped: text columns refuse NUL and lone surrogates, JSON allows both.
    """

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def value_to_string(self, obj: Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""


def keep_files_open() -> None:
    """Keep connections to SQLite for a minute where the settings close each after its use: opening one takes several
    times as long as a duty's query. Those to a server stay as the settings have them. For a worker's process."""
    for settings in connections.settings.values():
        if settings["ENGINE"].endswith("sqlite3") and settings["CONN_MAX_AGE"] == 0:
            settings["CONN_MAX_AGE"] = KEPT


def delete_some(rows: QuerySet, most: int) -> int:
    """Delete the first ``most`` rows and return their number. Small portions keep transactions and locks short."""
    found = list(rows.values_list("pk", flat=True)[:most])
    return rows.model._default_manager.filter(pk__in=found).delete()[0] if found else 0


@contextmanager
def wait_briefly(seconds: float) -> Iterator[None]:
    """Wait no longer than this for the write lock of SQLite in a transaction that begins in the block. In one that has
    begun before, and on servers, nothing is different."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    connection.ensure_connection()
    handle: Any = connection.connection
    (before,) = handle.execute("PRAGMA busy_timeout").fetchone()
    handle.execute(f"PRAGMA busy_timeout = {min(before, round(seconds * 1000))}")
    try:
        yield
    finally:
        handle.execute(f"PRAGMA busy_timeout = {before}")


def is_locked(error: BaseException | None) -> bool:
    """Tell whether an error, or its cause, says that another process held the write lock of SQLite for too long."""
    while error is not None:
        if isinstance(error, OperationalError) and LOCKED.match(str(error)):
            return True
        error = error.__cause__
    return False


class DatabaseDuty:
    """A duty of workers that needs the database, and waits while that is away. ``MESSAGE``: logged once for each
    outage; its ``%s`` takes the error."""

    MESSAGE: str
    LEVEL = logging.WARNING
    EVERY = 5.0  # seconds between two passes that find nothing
    is_away = False

    def run_once(self) -> bool:
        """Make one pass, with connections that work; tell whether there may be more to do at once. An error of the
        database ends the pass and is not passed on."""
        close_old_connections()
        try:
            found = self.look()
        except Error as error:
            if not self.is_away:
                logging.getLogger(type(self).__module__).log(self.LEVEL, self.MESSAGE, error)
            self.is_away, found = True, False
        else:
            self.is_away = False
        finally:
            close_old_connections()
        return found

    def look(self) -> bool:
        """Make one pass; raise errors of the database."""
        raise NotImplementedError

    def pause(self) -> float:
        """Return seconds to wait after a pass that found nothing."""
        return self.EVERY


MARKS = (1_000_000_007, 1_000_000_009)
TIMES = (datetime(2001, 1, 1, tzinfo=UTC), datetime(2001, 1, 2, tzinfo=UTC))
"""Two values that a query is built with: the parameters in which it then differs are the places of the value."""


class PreparedQuery:
    """A ``values_list`` of texts and numbers, by one value: a number such as a primary key, or a time."""

    def __init__(
        self, model: type[Model], make: Callable[[Any], QuerySet[Any, Any]], marks: tuple[Any, Any] = MARKS
    ) -> None:
        """Prepare a query. ``make``: returns the query of ``model`` for a value, and has no other condition that
        changes.

        ``marks``: ``TIMES`` where the value is a time.
        """
        self._model = model
        self._make = make
        self._marks = marks
        self._kept: dict[tuple[str, str], tuple[str, list[Any], frozenset[int]]] = {}  # one for each database

    def rows(self, value: Any) -> list[tuple[Any, ...]]:
        """Return the rows for a value. For a key of another type, as users of a project may have, Django builds it."""
        if type(value) is not type(self._marks[0]):
            return [tuple(row) for row in self._make(value)]
        alias = router.db_for_read(self._model)
        key = (alias, connections[alias].vendor)
        if key not in self._kept:
            self._kept[key] = self._prepare(alias)
        sql, params, places = self._kept[key]
        if isinstance(value, datetime):
            value = connections[alias].ops.adapt_datetimefield_value(value)
        with connections[alias].cursor() as cursor:
            cursor.execute(sql, [value if place in places else param for place, param in enumerate(params)])
            return list(cursor.fetchall())

    def _prepare(self, alias: str) -> tuple[str, list[Any], frozenset[int]]:
        (sql, params), (_, others) = (self._make(mark).query.get_compiler(alias).as_sql() for mark in self._marks)
        differing = [place for place, pair in enumerate(zip(params, others, strict=True)) if pair[0] != pair[1]]
        return sql, list(params), frozenset(differing)


def prepare_check(rows: QuerySet[Any, Any]) -> Callable[[], bool]:
    """Return a function that tells whether ``rows`` has any now; Django builds its SQL once, for duties that ask again
    and again."""
    query = PreparedQuery(rows.model, lambda _: rows.order_by().values_list("pk")[:1])
    return lambda: bool(query.rows(0))
