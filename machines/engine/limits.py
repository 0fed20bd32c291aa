"""Limits of names and sizes that the engine accepts, all in one place.

Each ``check_…`` function takes any Python value and returns ``None`` or the reason why the value is not such a name.
The reason continues a sentence that begins with the name: ``f"machine {name!r} {why}"``.
"""

import keyword
import re
import unicodedata

MAX_NAME = 64  # characters of a machine, queue or handler name: they stand in keys, hash tags and URLs
MAX_STATE_NAME = 100  # characters
MAX_EVENT_NAME = 100  # characters
MAX_INVOKE_ID = 80  # characters: "error.invoke.<id>" has to fit an event name
MAX_SEND_ID = 100  # characters of what a send is called, for cancel
MAX_FIELD_NAME = 64  # characters
MAX_INSTANCE_ID = 200  # bytes of UTF-8: it stands in a key name
MAX_IDEMPOTENCY_KEY = 200  # characters
MAX_ACTOR = 150  # characters: as long as a Django user name
MAX_REASON = 1000  # characters

MAX_PAYLOAD = 64 * 1024  # bytes of JSON: one event's payload
MAX_DATA = 64 * 1024  # bytes of JSON: all data of one instance
MAX_DEFINITION = 1024 * 1024  # bytes of source
VIEWERS_DEFINITION = 128 * 1024  # bytes that may be sent to be checked without the right to publish
MAX_STATES = 500
MAX_EMBEDDED = 100  # machines that a definition brings along, those inside them included
MAX_STATE_PARTS = 20_000  # transitions, actions, parts of expressions: one step compiles a state as a whole
MAX_PARTS = 120_000  # of all states together: one call reads the program as a whole
MAX_PARTITIONS = 1024  # of one machine: a read of the machine asks each
MOST_REPLICAS = 16  # that a call waits for
LONGEST_WAIT = 4000  # ms a call waits for replicas: a connection gives up after 5 s of silence
MAX_GROUPS = 20  # that one transition names
MAX_GROUP_NAME = 150  # characters: as long as a Django group's
MAX_SENDERS = 100  # machines that one names under `accepts`
MAX_INDEXES = 8  # fields that instances are found by
MAX_STATE_DEPTH = 32  # states inside one another
MAX_ACTION_DEPTH = 16  # if, foreach and block inside one another
MAX_JSON_DEPTH = 32  # objects and arrays inside one another, in any JSON an instance holds or is sent
MAX_DEFINITION_DEPTH = 128  # the same in a definition, where states stand inside states

MAX_EXPRESSION_TEXT = 4000  # characters
MAX_EXPRESSION_DEPTH = 32  # operators, calls and accesses inside one another
MAX_EXPRESSION_NODES = 500
MAX_INTEGER = 2**53 - 1  # numbers are doubles inside Redis: past this, neighbours become equal

DEFAULT_HISTORY = 100  # steps kept for each instance
MAX_HISTORY = 10_000
MAX_RETAINED = 1_000_000_000  # finished instances of a machine that `retain` may keep
MAX_AGE = 100 * 366 * 24 * 3600 * 1000  # ms of what `retain` keeps: a hundred years
MAX_DELAY = 10 * 366 * 24 * 3600 * 1000  # ms of a timer: ten years
DEFAULT_ATTEMPTS = 3
MAX_ATTEMPTS = 100
DEFAULT_BACKOFF = 1_000  # ms before the second attempt
MAX_BACKOFF = 24 * 3600 * 1000  # ms
DEFAULT_LEASE = 30_000  # ms a worker holds a job without a sign of life
MIN_LEASE = 10  # ms
MAX_LEASE = 24 * 3600 * 1000  # ms
MAX_TIMEOUT = 100 * 24 * 3600 * 1000  # ms a job may run
MAX_PRIORITY = 9  # goes first
DEFAULT_PRIORITY = 5
MIN_WEIGHT, MAX_WEIGHT = 0.1, 10  # of a group of jobs
MAX_UNIQUE = 200  # bytes of UTF-8: it stands in a key name
MAX_STOPS = 20  # kinds of exceptions that are not retried
MAX_KIND = 100  # characters of the name of one
MAX_CONCURRENCY = 1_000_000  # jobs of a queue that are worked on at a time
MAX_RATE = 1_000_000  # jobs in its unit of time
MAX_RATE_UNIT = 24 * 3600 * 1000  # ms

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
KIND = re.compile(rf"[A-Za-z_][A-Za-z0-9_.]{{0,{MAX_KIND - 1}}}")
FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
RESERVED_FIELDS = frozenset(
    ["event", "now", "instance", "trigger", "In", "true", "false", "null", "None", "True", "False"]
)
RESERVED_EVENTS = ("done.", "error.", "after.")  # reserved for the engine: definitions and callers may not use them
TIMER_EVENT = re.compile(r"after\.t[0-9]+")  # what an `after` waits for


def check_machine_name(name: object) -> str | None:
    return _check_plain_name(name)


def check_queue_name(name: object) -> str | None:
    return _check_plain_name(name)


def check_handler_name(name: object) -> str | None:
    return _check_plain_name(name)


def check_instance_id(id: object) -> str | None:
    """Check any text of 1 to 200 bytes: ``:`` ``/`` ``{`` quotes, spaces and emoji are allowed."""
    if isinstance(id, str) and not id.strip():
        return "must not be empty or only spaces"
    return _check_bytes(id, MAX_INSTANCE_ID)


def check_state_name(name: object) -> str | None:
    if why := _check_length(name, MAX_STATE_NAME) or _check_characters(str(name)):
        return why
    return "must not start or end with a space" if name != str(name).strip() else None


def check_event_name(name: object) -> str | None:
    """Check the name of one event. Patterns (``*``, ``door.*``) belong in ``on`` and are no names."""
    if why := _check_length(name, MAX_EVENT_NAME) or _check_word(str(name)):
        return why
    return "must not hold a *: that is a pattern, not an event" if "*" in str(name) else None


def is_reserved_event(name: str) -> bool:
    """Tell whether only the engine raises such events, as ``lua/definitions/reserved_events.lua`` does in Redis."""
    return name.startswith(RESERVED_EVENTS)


def check_external_event_name(name: object) -> str | None:
    """Check the name of an event that people, programs and other machines may send."""
    if (why := check_event_name(name)) is not None:
        return why
    if is_reserved_event(str(name)):
        return "must not start with done., error. or after.: those events are the engine's own"
    return None


def check_send_id(id: object) -> str | None:
    """Check the id of a send, which ``cancel`` names."""
    return _check_length(id, MAX_SEND_ID) or _check_characters(str(id))


def check_invoke_id(id: object) -> str | None:
    why = _check_length(id, MAX_INVOKE_ID) or _check_word(str(id))
    return why or ("must not hold a *" if "*" in str(id) else None)


def check_unique_key(key: object) -> str | None:
    """Check the key of the one open job of a queue: any text of 1 to 200 bytes."""
    return "must not be empty" if key == "" else _check_bytes(key, MAX_UNIQUE)


def check_exception_kind(name: object) -> str | None:
    if not isinstance(name, str) or not KIND.fullmatch(name):
        return "must be the name of an exception class, such as ValueError"
    return None


def check_field_name(name: object) -> str | None:
    """Check the name of a data field, which expressions use without quotes."""
    if not isinstance(name, str):
        return f"must be text, not {_kind(name)}"
    if name in RESERVED_FIELDS or keyword.iskeyword(name):
        return "must not be a word that expressions use themselves"
    if not FIELD_NAME.fullmatch(name):
        return f"must be a letter, then letters, digits or underscores, at most {MAX_FIELD_NAME} characters"
    return None


def _check_plain_name(name: object) -> str | None:
    if not isinstance(name, str):
        return f"must be text, not {_kind(name)}"
    if not NAME.fullmatch(name):
        return f"must be a letter or _, then letters, digits or _ . - (at most {MAX_NAME} characters)"
    return None


def _check_length(name: object, most: int) -> str | None:
    if not isinstance(name, str):
        return f"must be text, not {_kind(name)}"
    if not name:
        return "must not be empty"
    return f"must be at most {most} characters long, not {len(name)}" if len(name) > most else None


def _check_bytes(text: object, most: int) -> str | None:
    if not isinstance(text, str):
        return f"must be text, not {_kind(text)}"
    if why := _check_characters(text):
        return why
    size = len(text.encode())
    return f"must be at most {most} bytes long, not {size}" if size > most else None


def _check_word(name: str) -> str | None:
    why = _check_characters(name)
    return why or ("must not hold spaces" if any(character.isspace() for character in name) else None)


def _check_characters(text: str) -> str | None:
    """Refuse control characters (NUL, newline, ...), which break keys, logs and terminals, and half surrogate pairs,
    which UTF-8 cannot encode."""
    if text.isprintable():  # nearly every name is; this spares the look at each character
        return None
    for character in text:
        category = unicodedata.category(character)
        if category in ("Cc", "Zl", "Zp"):
            return f"must not hold the control character U+{ord(character):04X}"
        if category == "Cs":
            return "must be valid Unicode: it holds half of a surrogate pair"
    return None


def _kind(value: object) -> str:
    return type(value).__name__
