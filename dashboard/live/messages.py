"""Declares every message of ``/ws/live/``, every error and every close code.

``docs/message-reference.md`` is written from this module (``python -m dashboard.live.reference``),
and tests hold that page and the browser's handlers against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


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
