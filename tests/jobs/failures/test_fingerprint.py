"""What differs from one failure to the next is replaced; what says what went wrong stays."""

from machines.jobs.failures.recording import MAX_SHAPE, clean_name, compute_key, compute_shape
from tests.cases import for_each

SHAPES = [
    ("connection refused", "connection refused"),
    ("order 4711 not found", "order <number> not found"),
    ("order ATV-123 not found", "order <id> not found"),
    ("timeout after 30s", "timeout after <number>s"),
    ("timeout after 1.5 s, 3 of 10", "timeout after <number> s, <number> of <number>"),
    ("code -17", "code <number>"),
    ("no card 'tok_1abc' for \"ann\"", "no card <text> for <text>"),
    ("can't read it", "can't read it"),
    ("job 123e4567-e89b-12d3-a456-426614174000 lost", "job <uuid> lost"),
    ("digest deadbeef01 is wrong", "digest <hex> is wrong"),
    ("<object at 0x7f3a2b>", "<object at <hex>>"),
    ("cannot reach 10.0.0.7:5432", "cannot reach <address>"),
    ("cannot reach fe80:0:0:1:2:3:4:5", "cannot reach <address>"),
    ("GET https://shop.example/a?b=1 gave 502", "GET <address> gave <number>"),
    ("ann@example.com is unknown", "<address> is unknown"),
    ("since 2026-11-23T01:02:03.5Z", "since <time>"),
    ("at 12:30:05 sharp", "at <time> sharp"),
    ("keys 1, 2, 3 are missing", "keys <number>, … are missing"),
    ("two\nlines\tand\0more", "two lines and more"),
    ("", ""),
]


@for_each("message, shape", SHAPES)
def test_a_message_has_a_shape(message, shape):
    assert compute_shape(message) == shape


@for_each(
    "message",
    [
        "1" * 10_000,
        "'" * 5_000,
        "a@" * 3_000,
        "1." * 3_000,
        "-" * 5_000 + "1",
        "0x" * 3_000,
        "\ud800\u202e" * 2_000,
        "a:" * 3_000,
        "http://" * 2_000,
        "9-9" * 3_000,
    ],
)
def test_a_hostile_message_is_bounded(message):
    shape = compute_shape(message)  # a backtracking pattern would take minutes
    assert len(shape) <= MAX_SHAPE
    assert shape.encode() is not None
    assert "\0" not in shape


def test_names_are_one_line():
    assert clean_name("a\nb\0c" + "d" * 999) == "a b c" + "d" * 195
    assert compute_key("a", "b", "c") != compute_key("a", "bc", "")
    assert compute_key("a", "b", "c") != compute_key("a", "b", "c", "machine")
