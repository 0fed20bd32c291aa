"""Streams CSV: a page of rows is in memory at a time, and each chunk is sent when it is there."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextvars import Context, copy_context

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from dashboard.serving.concurrency_limits import another_turn

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def stream_csv(request: HttpRequest, chunks: Iterator[str], name: str) -> StreamingHttpResponse:
    """Pieces of CSV as a file called ``name``, each sent when it is there."""
    chunks = _in_context(copy_context(), chunks)
    # Either server wants the kind of iterator it can wait on, and would gather all of the other kind first.
    content = _read_in_thread(chunks) if isinstance(request, ASGIRequest) else chunks
    response = StreamingHttpResponse(content, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


def escape_cell(value: str) -> str:
    """As a spreadsheet shows it and does not run it: what begins like a formula gets an apostrophe in front."""
    return f"'{value}" if value.startswith(FORMULA) or value.lstrip().startswith(FORMULA) else value


class _Echo:
    """What ``csv`` writes into: each row is given straight back."""

    def write(self, row: str) -> str:
        return row


def make_writer() -> Callable[[Iterable[str]], str]:
    """Makes a line of CSV of the texts of a row."""
    return csv.writer(_Echo(), quoting=csv.QUOTE_ALL).writerow


def _in_context(context: Context, chunks: Iterator[str]) -> Iterator[str]:
    """The same, made for the request that asked for them, which is over by then: in the log and in the audit."""
    while (chunk := context.run(next, chunks, None)) is not None:
        yield chunk


async def _read_in_thread(chunks: Iterator[str]) -> AsyncIterator[str]:
    """The same, each chunk read in the thread that has the request's database connection, and in a turn of its own."""
    while True:
        async with another_turn():
            chunk = await sync_to_async(next)(chunks, None)
        if chunk is None:
            return
        yield chunk
