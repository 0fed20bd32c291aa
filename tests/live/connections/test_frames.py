from __future__ import annotations

import json

import pytest

from dashboard.live import messages
from dashboard.live.messages import BadFrame, Command, ErrorCode, read_command
from dashboard.live.topics import Topic
from tests.cases import for_each

LIMIT = 4096


@pytest.mark.parametrize("kind", ["subscribe", "unsubscribe", "resync"])
def test_a_command_is_read_from_text_and_from_bytes(kind: str) -> None:
    frame = json.dumps({"type": kind, "topic": "machine:activation", "extra": 1})
    command = Command(kind, Topic("machine", "activation"))
    assert read_command(frame, limit=LIMIT) == command
    assert read_command(frame.encode(), limit=LIMIT) == command


@for_each(
    "frame, code",
    [
        ("", ErrorCode.NOT_JSON),
        ("{", ErrorCode.NOT_JSON),
        ("subscribe", ErrorCode.NOT_JSON),
        ("[" * 4000, ErrorCode.NOT_JSON),
        ("\ud800", ErrorCode.NOT_JSON),
        (b"\xff\xfe\x00", ErrorCode.NOT_JSON),
        ("null", ErrorCode.UNKNOWN_TYPE),
        ("[]", ErrorCode.UNKNOWN_TYPE),
        ("{}", ErrorCode.UNKNOWN_TYPE),
        ('"subscribe"', ErrorCode.UNKNOWN_TYPE),
        ('{"type": "fire", "topic": "overview"}', ErrorCode.UNKNOWN_TYPE),
        ('{"type": ["subscribe"], "topic": "overview"}', ErrorCode.UNKNOWN_TYPE),
        ('{"type": {}, "topic": "overview"}', ErrorCode.UNKNOWN_TYPE),
        ('{"type": NaN}', ErrorCode.NOT_JSON),
        ('{"type": "subscribe"}', ErrorCode.BAD_TOPIC),
        ('{"type": "subscribe", "topic": 7}', ErrorCode.BAD_TOPIC),
        ('{"type": "subscribe", "topic": "nothing:x"}', ErrorCode.BAD_TOPIC),
        ('{"type": "subscribe", "topic": "' + "x" * 5000 + '"}', ErrorCode.FRAME_TOO_LARGE),
        ("é" * 2049, ErrorCode.FRAME_TOO_LARGE),
    ],
)
def test_what_is_no_command_gets_a_code(frame: str | bytes, code: ErrorCode) -> None:
    with pytest.raises(BadFrame) as caught:
        read_command(frame, limit=LIMIT)
    assert caught.value.code == code
    assert caught.value.message


def test_a_bad_topic_is_repeated_but_not_at_length() -> None:
    with pytest.raises(BadFrame) as caught:
        read_command(json.dumps({"type": "subscribe", "topic": "x" * 3000}), limit=LIMIT)
    assert caught.value.topic == "x" * messages.ECHO


def test_frames_are_compact_ascii_whatever_is_in_them() -> None:
    text = messages.encode(messages.error(ErrorCode.BAD_TOPIC, "no 🚂 \ud800"))
    assert text.isascii()
    assert ", " not in text
