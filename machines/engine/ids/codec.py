"""The text of an id: 13 characters that sort by time.

63 bits: 41 of ms since 2024-01-01, 10 of the node that made it, 12 of a sequence. The 32 characters of the alphabet are
in the order of ASCII and leave out letters that are mistaken for others: texts compare as the numbers do, and
JavaScript, which has no exact number of that size, can keep the text.

An id made without Redis begins with ``z``, which no other id does: 41 bits of ms and 19 random bits. Two of them can be
equal by chance, but never equal to an id made by a node.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from machines.engine import arguments

EPOCH = 1_704_067_200_000  # ms since 1970: 2024-01-01
END = EPOCH + 2**41  # ms: in 2093
NODES = 1024
SEQUENCE_BITS, NODE_BITS, RANDOM_BITS = 12, 10, 19
IDS_PER_MS = 2**SEQUENCE_BITS  # ids that a node can make in a ms
LENGTH = 13
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
SHAPE = re.compile(f"[0-7][{ALPHABET}]{{12}}|z[{ALPHABET}]{{12}}", re.ASCII)
LOCAL = "z"

_PAIRS = [high + low for high in ALPHABET for low in ALPHABET]
_VALUE = {sign: value for value, sign in enumerate(ALPHABET)}


@dataclass(frozen=True, slots=True)
class Decoded:
    """The parts of an id. ``at``: ms since the epoch. In an id made without Redis ``node`` is None and ``sequence``
    is random."""

    at: int
    node: int | None
    sequence: int


def encode(at: int, node: int, sequence: int) -> str:
    """Encode an id. ``at``: ms since the epoch, from ``EPOCH`` on and before ``END``; not checked."""
    return encode_number((at - EPOCH) << 22 | node << SEQUENCE_BITS | sequence)


def encode_local(at: int, noise: int) -> str:
    """Encode an id made without Redis. ``noise``: a random number below 2**19."""
    return LOCAL + encode_number((at - EPOCH) << RANDOM_BITS | noise)[1:]


def encode_number(number: int) -> str:
    """Encode a number below 2**63."""
    pairs = _PAIRS
    return (
        ALPHABET[number >> 60] + pairs[number >> 50 & 1023] + pairs[number >> 40 & 1023] + pairs[number >> 30 & 1023]
        + pairs[number >> 20 & 1023] + pairs[number >> 10 & 1023] + pairs[number & 1023]
    )  # fmt: skip


def is_id(text: object) -> bool:
    """Tell whether a value has the form of an id."""
    return isinstance(text, str) and SHAPE.fullmatch(text) is not None


def decode(text: object) -> Decoded:
    """Decode an id. Raises BadInput."""
    why = None if is_id(text) else f"is not {LENGTH} characters of {ALPHABET}, the first 0 to 7 or z"
    text = arguments.check_name("id", text, why)
    if text[0] == LOCAL:
        number = _number(text[1:])
        return Decoded(EPOCH + (number >> RANDOM_BITS), None, number & (2**RANDOM_BITS - 1))
    number = _number(text)
    return Decoded(EPOCH + (number >> 22), number >> SEQUENCE_BITS & (NODES - 1), number & (IDS_PER_MS - 1))


def _number(text: str) -> int:
    number = 0
    for sign in text:
        number = number << 5 | _VALUE[sign]
    return number
