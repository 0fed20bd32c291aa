"""Reads the frames that clients send to ``/ws/live/``, and writes those of the server.

``docs/message-reference.md`` describes each message, error and close code; tests hold this module and the browser's
handlers against it.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Any

from . import topics
from .topics import BadTopic, Topic

COMMANDS = ("subscribe", "unsubscribe", "resync")


class ErrorCode(StrEnum):
    NOT_JSON = "SB600"
    UNKNOWN_TYPE = "SB601"
    BAD_TOPIC = "SB602"
    FORBIDDEN = "SB603"
    TOO_MANY_TOPICS = "SB604"
    FRAME_TOO_LARGE = "SB605"
    UNAVAILABLE = "SB606"


#: the status of the same error over HTTP, at /api/v1/live/
HTTP_STATUS = {
    ErrorCode.BAD_TOPIC: 400,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.UNAVAILABLE: 503,
}


class CloseCode(IntEnum):
    TRY_LATER = 1013
    SIGNED_OUT = 4401
    BAD_ORIGIN = 4403
    TOO_SLOW = 4408
    ABUSE = 4413
    TOO_MANY = 4429


#: how much of a topic nobody can read is repeated in the error about it, characters
ECHO = 100


#: first byte of a text message that is whole: FIN and opcode 1 (RFC 6455, 5.2)
WHOLE_TEXT = 0x81


class Frame(str):
    """The text of a server message. ``wire``: the bytes of its websocket frame, made once for all sockets."""

    @cached_property
    def wire(self) -> bytes:
        """Without a mask, as frames of a server are, and not compressed."""
        payload = self.encode()
        size = len(payload)
        if size < 126:
            return struct.pack("!BB", WHOLE_TEXT, size) + payload
        if size < 1 << 16:
            return struct.pack("!BBH", WHOLE_TEXT, 126, size) + payload
        return struct.pack("!BBQ", WHOLE_TEXT, 127, size) + payload


class BadFrame(Exception):
    """A frame that is no command. ``topic`` is repeated to the client when it sent one."""

    def __init__(self, code: ErrorCode, message: str, *, topic: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.topic = topic


@dataclass(frozen=True, slots=True)
class Command:
    kind: str
    topic: Topic


def read_command(frame: str | bytes, *, limit: int) -> Command:
    """Return the command in a frame of at most ``limit`` bytes; raises BadFrame."""
    raw = frame.encode(errors="surrogatepass") if isinstance(frame, str) else frame
    if len(raw) > limit:
        raise BadFrame(ErrorCode.FRAME_TOO_LARGE, f"a frame of {len(raw)} bytes; a command has at most {limit}")
    content = _read_object(raw)
    kind = content.get("type")
    if not isinstance(kind, str) or kind not in COMMANDS:
        raise BadFrame(ErrorCode.UNKNOWN_TYPE, f"no command {_echo(kind)}; there are {', '.join(COMMANDS)}")
    name = content.get("topic")
    try:
        return Command(kind, topics.parse(name))
    except BadTopic as error:
        raise BadFrame(ErrorCode.BAD_TOPIC, str(error), topic=_echo(name)) from error


def _read_object(raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadFrame(ErrorCode.NOT_JSON, "the frame is not JSON") from error
    if not isinstance(content, dict):
        raise BadFrame(ErrorCode.UNKNOWN_TYPE, "a command is an object with a type and a topic")
    return content


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{name} is not JSON")


def _echo(value: object) -> str:
    return value[:ECHO] if isinstance(value, str) else json.dumps(value)[:ECHO]


def value(kind: str, topic: Topic, *, epoch: str, seq: int, data: Mapping[str, Any], at: int) -> dict[str, Any]:
    """Build a snapshot or delta; ``at`` is Redis time in ms."""
    return {"type": kind, "topic": str(topic), "epoch": epoch, "seq": seq, "data": data, "at": at}


def status(state: str, *, epoch: str, at: int, every: float) -> dict[str, Any]:
    """Build a status frame; ``every`` is in seconds and goes out in milliseconds."""
    return {"type": "status", "state": state, "epoch": epoch, "at": at, "every": round(every * 1000)}


def error(code: ErrorCode, message: str, topic: str | None = None) -> dict[str, Any]:
    frame: dict[str, Any] = {"type": "error", "code": code.value, "message": message}
    return frame if topic is None else frame | {"topic": topic}


def encode(frame: Mapping[str, Any]) -> Frame:
    """Encode a frame as compact ASCII: a lone surrogate in someone's data must not break the socket."""
    return Frame(json.dumps(frame, separators=(",", ":")))
