"""Limits of what is kept, and where it is archived: those of the installation, ``SIGNALBOX_RETAIN``, and those of each
machine's definition.

``SIGNALBOX_RETAIN`` is a list of words: ``finished=30d,most=1000000,audit=730d,audit_most=5000000``. A definition's
``retain`` takes precedence over the words for machines. Without a word, nothing of that kind is deleted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from machines.engine import limits
from machines.engine.definitions.durations import parse_duration
from machines.engine.definitions.reading.machine_settings import Retention

MACHINE = ("finished", "most", "dead", "log")
"""Words for every machine whose definition does not say otherwise."""
TABLES = ("audit", "statistics", "webhooks", "archive", "failures", "alarms")
"""Tables of the database; ``<table>=<age>`` bounds the age of its rows, ``<table>_most=<count>`` their number."""
WANTED = (
    "words such as finished=30d,most=1000000,dead=90d,log=7d,audit=730d,audit_most=5000000; the tables are "
    f"{', '.join(TABLES)}"
)
ARCHIVES = "sql, none or parquet:/path"
ARCHIVE_FOLDER = "parquet:"


def is_archive(text: str) -> bool:
    """Tell whether a text names an archive, as ``SIGNALBOX_ARCHIVE`` does."""
    folder = text.removeprefix(ARCHIVE_FOLDER)
    return text in ("sql", "none") or (folder != text and folder.startswith("/") and len(folder) > 1)


@dataclass(frozen=True, slots=True)
class TableBound:
    """The limits of one table: ``age`` in ms, ``most`` in rows; None: no limit."""

    age: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """What ``SIGNALBOX_RETAIN`` says."""

    machines: Retention = field(default_factory=Retention)
    tables: Mapping[str, TableBound] = field(default_factory=dict)

    def table(self, name: str) -> TableBound:
        return self.tables.get(name, TableBound())


class BadPolicy(ValueError):
    """A text is not a policy; the message names the wrong word."""


def parse_policy(text: str) -> Policy:
    """Parse ``SIGNALBOX_RETAIN``. Raises BadPolicy."""
    machines: dict[str, int] = {}
    tables: dict[str, dict[str, int]] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, separator, value = (part.strip() for part in word.partition("="))
        table = name.removesuffix("_most")
        if not separator or (name not in MACHINE and table not in TABLES):
            raise BadPolicy(f"{word!r} is none of the words")
        by_number = name == "most" or name != table
        bound = _parse_count(value) if by_number else parse_duration(value)
        if bound is None:
            wanted = "a whole number" if by_number else 'an age such as "30d"'
            raise BadPolicy(f"{word!r} has no value that fits: {wanted}")
        if name in MACHINE:
            machines[name] = bound
        else:
            tables.setdefault(table, {})["most" if by_number else "age"] = bound
    return Policy(Retention(**machines), {name: TableBound(**bounds) for name, bounds in tables.items()})


def is_policy(text: str) -> bool:
    try:
        parse_policy(text)
    except BadPolicy:
        return False
    return True


def _parse_count(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        return None
    return number if (number := int(text)) <= limits.MAX_RETAINED else None
