"""Texts that want to be more than texts, and JSON that nearly is JSON."""

from __future__ import annotations

import json
import random
from typing import Any

Random = random.Random

#: each byte is one character, as in latin-1
HOSTILE = [
    "", " ", "0", "-1", "1", "1.5", "1e300", "-0", "nan", "inf", "-inf", "0x10", "1e-5", "9007199254740993",
    "99999999999999999", "1e5", "x", "a", "\x00", "a\x00b", "\n", "a\nb", "\r\n", "\t", "\xff\xfe", "\xc3",
    "\xc3\xa9", "\xed\xa0\x80", "'", '"', "\\", "{}", "[]", "{", "null", "true", '{"a":', "[[[[", '{"a":1,"a":2}',
    '{"$":NaN}', '"\\ud800"', "*", "?", "[a-z]", "{x}", "}:i:a", "}", ":", "::", "/", "..", "%s", "%d%n", "$(id)",
    "`id`", "${7*7}", "KEYS", "ARGV", "_version", "_state", "_def", "__proto__", "done.invoke.Busy",
    "error.execution", "done.state.on", "after.t1", "go.x", "*.*", "-", "+", "(", "(1", "[x", "-inf", "+inf", "0-0",
    "1-1", "99999999999999999999-1", "0-1", "0-3", "0-99", "9-1", "1-n", "2-n", "Idle", "Busy", "Idle\nBusy",
    "work:leased", "work", "post", "a" * 64, "a" * 65, "a" * 201, "a" * 401, "1:abc", "0:0", "7:abcdef", "dry",
    "keep", "fire", "shift", "retry", "skip", "cancel", "ready", "leased", "delayed", "dead", "job", "short",
    "return", "done", "failed", "event", "start", "stop", "lost", "bounce", "pause", "resume", "limit", "look",
    "all", "hour", "week", "fade", "window", "none", "hash", "delete", "put", "anew", "forget", "make", "back",
    "ack", "month", "around", "release", "settle", "one", "all", "FORCE", "LIST", "reset", "set",
]  # fmt: skip
LARGE = [
    ("a", 70_000),
    ("\xff", 2_000),
    ("[", 5_000),
    ('{"a":', 500),
    ("1", 400),
    (" ", 66_000),
    ("a ", 3_000),
    ("\n", 1_000),
]
NUMBERS = [
    "0", "-0", "1", "-1", "0.1", "1e400", "-1e400", "1E5", "1e-400", "01", "+1", ".5", "5.", "0x1", "NaN",
    "Infinity", "-Infinity", "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "1e15",
    "1e16", "123456789012345678", "1.7976931348623157e308", "5e-324", "1_000", "1e", "- 1", "١",
]  # fmt: skip
STRINGS = [
    '"x"', '""', '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\x41"', '"\\u00"', '"\n"',
    '"\x00"', '"\x7f"', '"é"', '"😀"', "'x'", '"x', '"\\', '"\\/"', '"\\u0001"', '"__proto__"', '"a\\"b"',
]  # fmt: skip
NAMES = [
    '"t"',
    '"x"',
    '"n"',
    '"l"',
    '"_version"',
    '""',
    '"\\u0000"',
    '"a.b"',
    '"__index"',
    '"sensitive"',
    "t",
    '"t" ',
    "1",
]


def word(rng: Random) -> Any:
    """A text, or how a large one is made."""
    if rng.random() < 0.05:
        part, count = rng.choice(LARGE)
        return {"$times": [part, count]}
    if rng.random() < 0.15:
        return "".join(chr(rng.randrange(256)) for _ in range(rng.choice([1, 3, 20])))
    return rng.choice(HOSTILE)


def json_text(rng: Random, depth: int = 3) -> str:
    """JSON, most of the time."""
    roll = rng.random()
    if depth <= 0 or roll < 0.35:
        return rng.choice([*NUMBERS, *STRINGS, "null", "true", "false", "{}", "[]", "nul", ""])
    parts = [json_text(rng, depth - 1) for _ in range(rng.choice([0, 1, 2, 5]))]
    comma = rng.choices([",", ", ", ",,", " ", ";"], weights=[20, 5, 1, 1, 1])[0]
    if roll < 0.6:
        made = "[" + comma.join(parts) + "]"
    else:
        made = (
            "{" + comma.join(f"{rng.choice(NAMES)}{rng.choice([':', ':', ' : ', '='])}{part}" for part in parts) + "}"
        )
    return rng.choices(
        [made, made[:-1], made + rng.choice(["x", ",", "]", "\x00", " "]), "\ufeff" + made], [20, 1, 1, 1]
    )[0]


def value(rng: Random, depth: int = 3) -> Any:
    """A value that JSON has."""
    roll = rng.random()
    if depth <= 0 or roll < 0.5:
        return rng.choice(
            [
                None,
                True,
                False,
                0,
                1,
                -1,
                0.5,
                1e300,
                2**53 - 1,
                -(2**53) + 1,
                1e-7,
                "",
                "x",
                "é😀",
                "\x01",
                '"\\',
                "x" * 200,
            ]
        )
    if roll < 0.75:
        return [value(rng, depth - 1) for _ in range(rng.randint(0, 4))]
    return {
        rng.choice(["t", "x", "n", "l", "a", "é", "", "a.b", "_version"]): value(rng, depth - 1)
        for _ in range(rng.randint(0, 4))
    }


def reads(text: bytes) -> tuple[bool, Any]:
    """Whether a text is JSON as the standard has it and the engine takes it, and its value: UTF-8, no key twice, no
    number that a double does not hold or that is an integer past 2^53, no NUL, no half of a surrogate pair."""
    try:
        found = json.loads(
            text.decode(), object_pairs_hook=_once, parse_constant=_never, parse_int=_exact, parse_float=_finite
        )
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False, None
    return _holds(found, 1), found


def depth(found: Any) -> int:
    inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return 1 + max(map(depth, inner), default=0)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _never(name: str) -> Any:
    raise ValueError(name)


def _exact(digits: str) -> int:
    if len(digits) > 400 or abs(int(digits)) >= 2**53:
        raise ValueError(digits)
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(digits)
    return number


def _holds(found: Any, depth: int) -> bool:
    if isinstance(found, str):
        return "\x00" not in found
    if isinstance(found, dict):
        return depth <= 32 and all("\x00" not in key and _holds(item, depth + 1) for key, item in found.items())
    if isinstance(found, list):
        return depth <= 32 and all(_holds(item, depth + 1) for item in found)
    return True
