"""Declares every topic and message of ``/ws/live/``, every error and every close code, for the message reference."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.live.messages import CloseCode, ErrorCode

#: kind, how it is written, and what its value holds
FORMS = (
    (
        "overview",
        "overview",
        "`machines`: by name `version`, `counts` by leaf state, `total` (instances: one that stands in several regions"
        " is counted once), `overdue` (timers past their time), `breaches` (by state with a service level the instances"
        " that have been in it for longer), `refused` (how often an event was refused), `queues` by name; `workers`:"
        " how many are alive",
    ),
    (
        "overview",
        "overview:<name>,<name>",
        "the same of these machines alone, at most 100; names that are not there are left out",
    ),
    (
        "machine",
        "machine:<name>",
        "`machine`, `version`, `counts` by leaf state, `oldest` (by leaf state the ms its longest-staying instance"
        " came), `breaches` (as above), `flow` (how often `<version>:<transition>` was taken), `refused`"
        " (how often each event was, those nothing listens for together under the empty name), `queues` by name,"
        " `total` (instances), `timers` and `overdue` (how many deadlines are set, and past), `mail` (messages under"
        " way), `edited` (ms at which somebody last did something in its Studio), `now` (Redis time, ms)",
    ),
    (
        "instance",
        "instance:<machine>/<id>",
        "the instance, as the engine gives it, encrypted fields masked; the id may hold slashes and spaces",
    ),
    ("queues", "queues", "`queues`: by `<machine>/<queue>` what the topic of that queue holds"),
    ("queues", "queues:<name>,<name>", "as `queues`, of the queues of these machines alone, at most 100"),
    (
        "queue",
        "queue:<machine>/<queue>",
        "how many jobs are `ready`, `leased`, `delayed`, `dead`, `handled`; `oldest` (ms since when a ready one has"
        " waited; absent where none does); counters that only grow: `enqueued`, `taken`, `completed`, `failed`, `lost`,"
        " `died`, `withdrawn`, `purged`; `waits` and `runs` (magnitude -> how many jobs: 0 is below 1 ms, n up to 2^n"
        " ms); `concurrency` and `rate` where there is such a limit; `paused` (`since`, `actor`, `reason`) while it is",
    ),
    (
        "job",
        "job:<machine>/<id>",
        "`queue`, `src`, `instance`, `place`, `attempt`, `attempts`, `worker`, `lease_until`, `deadline`, `due`,"
        " `taken`, `finished` (ms, 0 where there is no such moment), `kind` and `error` of its last failure, and"
        " `progress` (`done`, `total`, `note`, `at`) once its handler said any; a job that is finished or withdrawn is"
        " gone",
    ),
    ("workers", "workers", "`workers`: by id the row of each worker alive"),
)


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

ERRORS = {
    ErrorCode.NOT_JSON: "The frame is not a JSON text.",
    ErrorCode.UNKNOWN_TYPE: "The frame is not an object with a known `type`.",
    ErrorCode.BAD_TOPIC: "The topic is missing, unknown or malformed, or (resync) not watched by this socket.",
    ErrorCode.FORBIDDEN: "The user does not have the right to watch the topic, or lost it; the subscription ended.",
    ErrorCode.TOO_MANY_TOPICS: "This socket, this person, or the process watches the maximum number of topics.",
    ErrorCode.FRAME_TOO_LARGE: "The frame is too long for a command.",
    ErrorCode.UNAVAILABLE: "Redis or the session store does not answer. The subscription stays; its snapshot follows.",
}

CLOSES = {
    CloseCode.TRY_LATER: "The process has the maximum number of sockets. Reconnect later.",
    CloseCode.SIGNED_OUT: "The user is not signed in, or no longer. Do not reconnect; sign in.",
    CloseCode.BAD_ORIGIN: "The page comes from another site. Do not reconnect.",
    CloseCode.TOO_SLOW: "The client was too slow to read its messages. Reconnect, with backoff.",
    CloseCode.ABUSE: "Too many frames, or too many invalid ones, from this socket or person. Do not reconnect at once.",
    CloseCode.TOO_MANY: "This person, session or address has too many open sockets. Do not reconnect at once.",
}
