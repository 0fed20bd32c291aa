"""Streams CSV and JSON: a page of rows is in memory at a time, and each chunk is sent when it is there."""

from __future__ import annotations

import csv
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextvars import Context, copy_context
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.text import get_valid_filename

from .concurrency_limits import another_turn

Columns = Mapping[str, Callable[[Any], Any]]
"""The name of each column -> what a row says in it."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def stream_csv(request: HttpRequest, chunks: Iterator[str], name: str) -> StreamingHttpResponse:
    """Send pieces of CSV as a file called ``name``, each as soon as it is there."""
    chunks = _run_in_context(copy_context(), chunks)
    # Either server wants the kind of iterator it can wait on, and would gather all of the other kind first.
    content = _read_in_thread(chunks) if isinstance(request, ASGIRequest) else chunks
    response = StreamingHttpResponse(content, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


def stream_json(request: HttpRequest, chunks: Iterator[str], name: str) -> StreamingHttpResponse:
    """Send pieces of JSON in the same way."""
    response = stream_csv(request, chunks, name)
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


def list_lines(columns: Columns, pages: Iterable[Iterable[Any]], *, head: bool = True) -> Iterator[str]:
    """Yield the names of the columns as the ``head``, then each page of rows."""
    write = csv.writer(_Echo(), quoting=csv.QUOTE_ALL).writerow
    if head:
        yield write(columns)
    for rows in pages:
        yield "".join(write([escape_cell(_format_value(read(row))) for read in columns.values()]) for row in rows)


def _format_value(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | dict | list) else str(value)


def _run_in_context(context: Context, chunks: Iterator[str]) -> Iterator[str]:
    """Yield the chunks in the context of the request, which is over by then: for the log and the audit."""
    while (chunk := context.run(next, chunks, None)) is not None:
        yield chunk


async def _read_in_thread(chunks: Iterator[str]) -> AsyncIterator[str]:
    """Yield the chunks, each read in the thread of the request's database connection and in a turn of its own."""
    while True:
        async with another_turn():
            chunk = await sync_to_async(next)(chunks, None)
        if chunk is None:
            return
        yield chunk
