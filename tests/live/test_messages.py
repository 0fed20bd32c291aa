from __future__ import annotations

import json
from typing import Any

import pytest

from dashboard.live import messages
from dashboard.live.messages import COMMANDS, CloseCode, ErrorCode
from dashboard.live.topics import Topic
from tests.cases import for_each
from tests.docs.live_protocol import CLIENT, CLOSES, ERRORS, SERVER, Message

PYTHON_TYPES = {"string": str, "integer": int, "object": dict}
BUILT = {
    "snapshot": messages.value("snapshot", Topic("overview"), epoch="e", seq=1, data={}, at=1),
    "delta": messages.value("delta", Topic("overview"), epoch="e", seq=2, data={}, at=1),
    "status": messages.status("live", epoch="e", at=1, every=2.0),
    "error": messages.error(ErrorCode.FORBIDDEN, "no", "overview"),
}


def fits(message: Message, frame: dict[str, Any]) -> None:
    assert frame.pop("type") == message.kind
    fields = {field.name: field for field in message.fields}
    assert frame.keys() <= fields.keys()
    assert {name for name, field in fields.items() if field.required} <= frame.keys()
    for name, value in frame.items():
        assert isinstance(value, PYTHON_TYPES[fields[name].type])


@for_each("message", [*CLIENT.values(), *SERVER.values()])
def test_each_example_is_such_a_message(message: Message) -> None:
    fits(message, json.loads(message.example))


@pytest.mark.parametrize("kind", SERVER)
def test_what_the_server_builds_is_as_declared(kind: str) -> None:
    fits(SERVER[kind], dict(BUILT[kind]))


def test_every_code_and_command_has_a_meaning() -> None:
    assert set(CLIENT) == set(COMMANDS)
    assert set(ERRORS) == set(ErrorCode)
    assert set(CLOSES) == set(CloseCode)
    assert set(messages.HTTP_STATUS) <= set(ErrorCode)
