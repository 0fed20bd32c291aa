"""The table that follows a machine: one row for each instance, with its state and the revision of that state."""

from __future__ import annotations

import sqlite3

TABLE = "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, state TEXT NOT NULL, revision INTEGER NOT NULL)"
WRITE = """
INSERT INTO orders (id, state, revision) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, revision = excluded.revision
WHERE orders.revision < excluded.revision
"""
"""An earlier revision never replaces a later one, so steps may come twice and in any order."""


def open_table(path: str) -> sqlite3.Connection:
    """Open the database, and make the table where there is none."""
    connection = sqlite3.connect(path, timeout=20.0, check_same_thread=False)
    connection.execute(TABLE)
    return connection


def write(connection: sqlite3.Connection, id: str, state: str, revision: int) -> bool:
    """Write a step, unless a later one was written; tell whether it was."""
    return connection.execute(WRITE, (id, state, revision)).rowcount > 0
