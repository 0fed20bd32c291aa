"""Declares every message of ``/ws/live/``, every error and every close code; reads frames of clients, writes those of
the server.

``docs/message-reference.md`` is written from this module (``python -m tests.docs.message_reference``),
and tests hold that page and the browser's handlers against it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Any

from . import topics
from .topics import BadTopic, Topic


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    meaning: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    kind: str
    meaning: str
    fields: tuple[Field, ...]
    example: str


TOPIC = Field("topic", "string", "the topic; see Topics")
EPOCH = Field(
    "epoch", "string", "names one unbroken run of numbers; after another epoch drop the value and take the snapshot"
)
SEQ = Field("seq", "integer", "number of this topic's value within the epoch; each delta is one more than the last")
AT = Field("at", "integer", "Redis time of the read, milliseconds")

CLIENT_MESSAGES = (
    Message(
        "subscribe",
        "Watch a topic. Answered by its snapshot, then by deltas, or by an error.",
        (TOPIC,),
        '{"type": "subscribe", "topic": "machine:activation"}',
    ),
    Message(
        "unsubscribe",
        "Stop watching. There is no answer; an unwatched topic is no error.",
        (TOPIC,),
        '{"type": "unsubscribe", "topic": "machine:activation"}',
    ),
    Message(
        "resync",
        "Send the snapshot again, after a gap in the numbers or when the value is in doubt.",
        (TOPIC,),
        '{"type": "resync", "topic": "machine:activation"}',
    ),
)

SERVER_MESSAGES = (
    Message(
        "snapshot",
        "The whole value of a topic. It replaces the former one.",
        (TOPIC, EPOCH, SEQ, Field("data", "object", "the value; see Topics"), AT),
        '{"type": "snapshot", "topic": "queue:activation/todo", "epoch": "9f2c41d07a3e", "seq": 1,'
        ' "data": {"ready": 3, "leased": 1, "delayed": 0, "dead": 0}, "at": 1714564800000}',
    ),
    Message(
        "delta",
        "The parts of a topic's value that changed, as a JSON merge patch (RFC 7396): objects merge, null removes,"
        " anything else replaces. Values are absolute: 7 means seven, not seven more.",
        (TOPIC, EPOCH, SEQ, Field("data", "object", "the changed parts"), AT),
        '{"type": "delta", "topic": "queue:activation/todo", "epoch": "9f2c41d07a3e", "seq": 2,'
        ' "data": {"ready": 2, "leased": 2}, "at": 1714564800060}',
    ),
    Message(
        "status",
        "Sent on connect, after every reconcile and when Redis comes or goes. In state `live` everything sent so far"
        " was true at `at`; in state `stale` Redis does not answer and `at` is when it last did.",
        (
            Field("state", "string", "`live` or `stale`"),
            EPOCH,
            AT,
            Field("every", "integer", "milliseconds until the next one is due; silence for much longer means stale"),
        ),
        '{"type": "status", "state": "live", "epoch": "9f2c41d07a3e", "at": 1714564802000, "every": 2000}',
    ),
    Message(
        "error",
        "A command failed, or a subscription ended. The socket stays open.",
        (
            Field("code", "string", "see Errors"),
            Field("message", "string", "for people"),
            Field("topic", "string", "the topic it is about", required=False),
        ),
        '{"type": "error", "code": "SB603", "message": "you may not watch workers", "topic": "workers"}',
    ),
)

CLIENT = {message.kind: message for message in CLIENT_MESSAGES}
SERVER = {message.kind: message for message in SERVER_MESSAGES}


class ErrorCode(StrEnum):
    NOT_JSON = "SB600"
    UNKNOWN_TYPE = "SB601"
    BAD_TOPIC = "SB602"
    FORBIDDEN = "SB603"
    TOO_MANY_TOPICS = "SB604"
    FRAME_TOO_LARGE = "SB605"
    UNAVAILABLE = "SB606"


ERRORS = {
    ErrorCode.NOT_JSON: "The frame is not a JSON text.",
    ErrorCode.UNKNOWN_TYPE: "The frame is not an object with a known `type`.",
    ErrorCode.BAD_TOPIC: "The topic is missing, unknown or malformed, or (resync) not watched by this socket.",
    ErrorCode.FORBIDDEN: "The user does not have the right to watch the topic, or lost it; the subscription ended.",
    ErrorCode.TOO_MANY_TOPICS: "This socket, this person, or the process watches the maximum number of topics.",
    ErrorCode.FRAME_TOO_LARGE: "The frame is too long for a command.",
    ErrorCode.UNAVAILABLE: "Redis or the session store does not answer. The subscription stays; its snapshot follows.",
}

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


CLOSES = {
    CloseCode.TRY_LATER: "The process has the maximum number of sockets. Reconnect later.",
    CloseCode.SIGNED_OUT: "The user is not signed in, or no longer. Do not reconnect; sign in.",
    CloseCode.BAD_ORIGIN: "The page comes from another site. Do not reconnect.",
    CloseCode.TOO_SLOW: "The client was too slow to read its messages. Reconnect, with backoff.",
    CloseCode.ABUSE: "Too many frames, or too many invalid ones, from this socket or person. Do not reconnect at once.",
    CloseCode.TOO_MANY: "This person, session or address has too many open sockets. Do not reconnect at once.",
}


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
    if not isinstance(kind, str) or kind not in CLIENT:
        raise BadFrame(ErrorCode.UNKNOWN_TYPE, f"no command {_echo(kind)}; there are {', '.join(CLIENT)}")
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
