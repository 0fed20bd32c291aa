"""Retries work on the SQL database in background duties, which must not end during an outage."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, close_old_connections
from django.db.models import QuerySet


def delete_some(rows: QuerySet, most: int) -> int:
    """Delete the first ``most`` rows and return their number. Small portions keep transactions and locks short."""
    found = list(rows.values_list("pk", flat=True)[:most])
    return rows.model._default_manager.filter(pk__in=found).delete()[0] if found else 0


class DatabaseRetry:
    """The retries of one duty. ``message``: logged once for each outage of the database; its ``%s`` takes the error."""

    def __init__(self, log: logging.Logger, message: str, *, level: int = logging.WARNING) -> None:
        self._log = log
        self._message = message
        self._level = level
        self.away = False

    @contextmanager
    def around(self) -> Iterator[None]:
        """Wrap one pass so that its database connections work. A database error ends the block and is not passed on."""
        close_old_connections()
        try:
            yield
        except Error as error:
            if not self.away:
                self._log.log(self._level, self._message, error)
            self.away = True
        else:
            self.away = False
        finally:
            close_old_connections()
