"""Streams CSV and JSON: a page of rows is in memory at a time, and each chunk is sent when it is there. The audit has
an entry of each file, which is written at its end."""

import csv
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.text import get_valid_filename

from machines.audit.entries import DONE, FAILED, record, source_of
from machines.audit.redaction import MASK, available_redactor

from .concurrency_limits import another_turn

Columns = Mapping[str, Callable[[Any], Any]]
"""The name of each column -> what a row says in it."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
MAX_TERM = 200  # characters of a term that the audit keeps
VALUES = ("query", "data", "is", "text", "run")
"""Terms of an address that may hold a value of a field."""


@dataclass(slots=True)
class Export:
    """Records a file that a person takes along. ``fields``: the names of its columns; ``rows``: how many were sent so
    far; ``about``: ``machine`` and ``instance`` of the audit entry; ``is_cut``: more rows were left out."""

    request: HttpRequest
    fields: Iterable[str]
    rows: int = 0
    about: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False
    terms: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        # Read before the first byte is sent: Django refuses an address with too many terms.
        self.terms = {name: term[:MAX_TERM] for name, term in self.request.GET.items() if term}

    def count(self, pages: Iterable[Iterable[Any]]) -> Iterator[list[Any]]:
        """Yield the pages of rows, and count these."""
        for page in pages:
            rows = list(page)
            self.rows += len(rows)
            yield rows

    def write(self, name: str, outcome: str = DONE) -> None:
        """Write the audit entry of the file called ``name``."""
        detail = {"fields": list(self.fields), "count": self.rows, "filter": self._read_filter()}
        record(
            self.request.user, "export", target=name, outcome=outcome, detail=detail, source=source_of(self.request),
            **self.about,
        )  # fmt: skip

    def follow(self, chunks: Iterator[str], name: str) -> Iterator[str]:
        """Yield the chunks, then write the entry: *failed* where the file broke off."""
        outcome = FAILED
        try:
            yield from chunks
            outcome = DONE
        finally:
            self.write(name, outcome)

    def _read_filter(self) -> dict[str, str]:
        """Return the terms of the address, without values of a machine that has sensitive fields."""
        machine = self.about.get("machine", "")
        redactor = available_redactor(machine) if machine else None
        if machine and (redactor is None or not redactor.open):
            return self.terms | {name: MASK for name in VALUES if name in self.terms}
        return self.terms


def stream_csv(export: Export, chunks: Iterator[str], name: str) -> StreamingHttpResponse:
    """Send pieces of CSV as a file called ``name``, each as soon as it is there."""
    chunks = _run_in_context(copy_context(), export.follow(chunks, name))
    # Either server wants the kind of iterator it can wait on, and would gather all of the other kind first.
    content = _read_in_thread(chunks) if isinstance(export.request, ASGIRequest) else chunks
    response = StreamingHttpResponse(content, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


def stream_json(export: Export, chunks: Iterator[str], name: str) -> StreamingHttpResponse:
    """Send pieces of JSON in the same way."""
    response = stream_csv(export, chunks, name)
    response["Content-Type"] = "application/json"
    return response


def name_file(title: str) -> str:
    """Return a title, with its ending, as the name of a file."""
    return str(get_valid_filename("".join(letter if letter.isascii() else "_" for letter in title)))


def escape_cell(value: str) -> str:
    """Escape a text that a spreadsheet would run as a formula, by an apostrophe in front."""
    return f"'{value}" if value.startswith(FORMULA) or value.lstrip().startswith(FORMULA) else value


class _Echo:
    """Returns what ``csv`` writes, row by row."""

    def write(self, row: str) -> str:
        return row


def list_lines(columns: Columns, pages: Iterable[Iterable[Any]]) -> Iterator[str]:
    """Yield the names of the columns, then each page of rows."""
    write = csv.writer(_Echo(), quoting=csv.QUOTE_ALL).writerow
    yield write(columns)
    for rows in pages:
        yield "".join(write([escape_cell(_format_value(read(row))) for read in columns.values()]) for row in rows)


def list_json(
    head: Mapping[str, Any], name: str, pages: Iterable[Iterable[Any]], tail: Callable[[], Mapping[str, Any]] = dict
) -> Iterator[str]:
    """Yield an object: what ``head`` says, each page of rows in a list called ``name``, and what ``tail`` says then."""
    yield json.dumps(head, ensure_ascii=False)[:-1] + f', "{name}": ['
    between = "\n"
    for rows in pages:
        if lines := [json.dumps(row, ensure_ascii=False) for row in rows]:
            yield between + ",\n".join(lines)
            between = ",\n"
    yield "\n]" + "".join(f', "{name}": {json.dumps(value)}' for name, value in tail().items()) + "}\n"


def _format_value(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | dict | list) else str(value)


def _run_in_context(context: Context, chunks: Iterator[str]) -> Iterator[str]:
    """Yield the chunks in the context of the request, which is over by then: for the log and the audit."""
    try:
        while (chunk := context.run(next, chunks, None)) is not None:
            yield chunk
    finally:
        context.run(chunks.close)  # type: ignore[attr-defined]


async def _read_in_thread(chunks: Iterator[str]) -> AsyncIterator[str]:
    """Yield the chunks, each read in the thread of the request's database connection and in a turn of its own."""
    try:
        while True:
            async with another_turn():
                chunk = await sync_to_async(next)(chunks, None)
            if chunk is None:
                return
            yield chunk
    finally:  # the reader may have gone in the middle of the file
        await sync_to_async(chunks.close)()  # type: ignore[attr-defined]
