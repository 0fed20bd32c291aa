"""Empty the database after a test that commits, and keep what migrations put there.

Django's flush empties every table and then makes content types, permissions and roles anew, which takes longer than
most tests. Here the rows of these stay; a test that changed them gets them put back.
"""

from __future__ import annotations

from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

FROM_MIGRATIONS = ("django_content_type", "auth_permission", "auth_group", "auth_group_permissions")
"""Tables whose rows come with the migrations."""
UNTOUCHED = ("django_migrations",)

_kept: dict[str, dict[str, list[tuple[Any, ...]]]] = {}


def keep_rows(alias: str = "default") -> None:
    """Remember the rows that migrations made, to be called before any test."""
    connection = connections[alias]
    _kept[alias] = {table: _rows(connection, table) for table in FROM_MIGRATIONS}


def empty(alias: str) -> bool:
    """Empty the tables, in one transaction; False where that is left to Django."""
    connection = connections[alias]
    if connection.vendor != "sqlite" or alias not in _kept:
        return False
    changed = [table for table in FROM_MIGRATIONS if _rows(connection, table) != _kept[alias][table]]
    tables = [name for name in connection.introspection.django_table_names(only_existing=True) if name not in UNTOUCHED]
    with transaction.atomic(using=alias), connection.cursor() as cursor:  # references are checked at its end
        for table in _with_rows(cursor, [table for table in tables if table not in FROM_MIGRATIONS]):
            cursor.execute(f'DELETE FROM "{table}"')
        for table in changed:
            cursor.execute(f'DELETE FROM "{table}"')
        for table in changed:
            _insert(cursor, table, _kept[alias][table])
    if changed:
        ContentType.objects.clear_cache()
    return True


def _rows(connection: BaseDatabaseWrapper, table: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{table}" ORDER BY id')
        return cursor.fetchall()


def _with_rows(cursor: Any, tables: list[str]) -> list[str]:
    asked = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM \"{table}\")" for table in tables)
    cursor.execute(asked)
    return [row[0] for row in cursor.fetchall()]


def _insert(cursor: Any, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        places = ", ".join(["%s"] * len(rows[0]))
        cursor.executemany(f'INSERT INTO "{table}" VALUES ({places})', rows)
