"""Renders docs/message-reference.md from the declarations of the live protocol.

python -m tests.docs.message_reference docs/message-reference.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dashboard.live import messages, topics
from tests.docs import live_protocol
from tests.docs.live_protocol import Message

INTRODUCTION = """\
# Message reference

<!-- Written by `python -m tests.docs.message_reference` from tests/docs/live_protocol.py. Do not edit. -->

`/ws/live/` is a websocket with JSON text frames, one message each. The page must come from this site, and its user must
be signed in. Each command is checked against the user's rights when it arrives; all subscriptions are checked again
every few seconds.

The server queues no values: a socket gets the latest value of each topic, so a slow client skips values, and a client
that is much too slow is closed. For each topic a client keeps `epoch` and `seq` of the last message. It merges a delta
with the same epoch and the next seq; after any other it asks for a `resync`. After a reconnect it subscribes again and
takes the snapshot.
"""

LOST = """\
While a shard of a cluster does not answer, a machine or queue has the figures of its other partitions, `missing` (the
numbers of the partitions that they are without) and `partitions` (how many it has), in an overview too. A value of
which nothing answers has `"unavailable": true`, beside what was known last.
"""

TWIN = """\
## The same over HTTP

`GET /api/v1/live/?topic=<topic>` answers with the `snapshot` that a socket would get, with epoch `http` and seq 1, for
a page without a socket. Errors are the `error` message, with a status:
"""


def render() -> str:
    return "\n".join(_write_lines()) + "\n"


def _write_lines() -> Iterator[str]:
    yield INTRODUCTION
    yield "## Topics\n"
    yield from _write_table(("topic", "right", "value"), _list_topics())
    yield '\nThe value of a machine, instance or queue that does not exist is `{"gone": true}`.\n'
    yield LOST
    yield "## From the client\n"
    yield from _write_messages(live_protocol.CLIENT_MESSAGES)
    yield "## From the server\n"
    yield from _write_messages(live_protocol.SERVER_MESSAGES)
    yield "## Errors\n"
    yield from _write_codes(live_protocol.ERRORS)
    yield "\n## Close codes\n"
    yield from _write_codes(live_protocol.CLOSES)
    yield ""
    yield TWIN
    statuses = [("401", "nobody is signed in")]
    statuses += [(str(status), f"`{code.value}`") for code, status in messages.HTTP_STATUS.items()]
    yield from _write_table(("status", "error"), statuses)


def _write_codes(meanings: Mapping[Any, str]) -> Iterator[str]:
    yield from _write_table(("code", "meaning"), ((f"`{code.value}`", text) for code, text in meanings.items()))


def _list_topics() -> Iterator[tuple[str, str, str]]:
    for kind, form, meaning in live_protocol.FORMS:
        yield f"`{form}`", topics.RIGHTS[kind], meaning


def _write_messages(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        yield f"### `{message.kind}`\n\n{message.meaning}\n"
        rows = ((f"`{f.name}`", f.type, f.meaning + ("" if f.required else " (optional)")) for f in message.fields)
        yield from _write_table(("field", "type", "meaning"), rows)
        yield f"\n```json\n{message.example}\n```\n"


def _write_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
