"""Compare and set: read, compute, write only if no other client wrote meanwhile. Needs Redis and no Django.

    notes = Records(engine.client, "notes", prefix=engine.keys.prefix)
    note = notes.get("handover")                                    # Record(value, generation); 0: there is none
    notes.put("handover", {"text": "…"}, expect=note.generation)    # Changed where another client wrote meanwhile
    notes.update("stock", lambda count: (count or 0) - 1)           # reads, tries, tries again
    update(engine.client, "cart:7", lambda cart: {**(cart or {}), "tea": "2"})   # a string or hash of any program

A record is a JSON value with a *generation*, a number that grows with each write and is never used again, not even
after a deletion. ``update`` costs one read and one call. A refusal returns the current value, so each further try costs
one more call; WATCH, GET, MULTI, SET and EXEC take three to five round trips, and as many again for each conflict.
``update`` of a key that other programs write compares its contents. If they were changed and changed back, that does no
harm: the function saw only the contents, and would return the same again.

It promises that a write replaces exactly what its function saw, or does not happen; that a function that raises, or
returns the value it was given, writes nothing; and that a conflict that remains after ``retries`` is raised, with the
current value and the number of tries. It cannot promise that the function runs once (it must only compute), that every
writer succeeds when very many write one key (pauses grow and vary, but a writer may still lose nine times), or anything
about two keys together. A rule that a machine can express (a guard, an assignment) is one call of the engine, without a
read or a second try. Use that for rules known beforehand, and this module for values that only a program can compute.
"""

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from machines.engine.connection.client import Client
from machines.engine.connection.replies import Status
from machines.engine.errors import BadInput, EngineFault
from machines.engine.keys import PREFIX

from . import base
from .base import Changed, Overflow, Pattern

RETRIES = 8
MAX_RETRIES = 10_000
MAX_VALUE = 2**20  # bytes of JSON, and of what a string or hash holds before and after together
MAX_TTL = 366 * 86_400.0  # seconds
MAX_GENERATION = base.MAX_EXACT - 1
PAUSES = (0.0002, 0.002)  # seconds: the longest first pause, and the longest pause; each may be twice the previous one
AT_ONCE = 3  # tries without a pause: a refusal carries the current value, which other writers still have to read
# How the keys of a machine begin, for any prefix; {user:7}:cart may belong to any program.
PARTITION = re.compile(r"[A-Za-z0-9_.:-]+:\{[A-Za-z_][A-Za-z0-9_.-]*:[0-9]+\}:")


class _Delete:
    def __repr__(self) -> str:
        return "DELETE"


DELETE: Final = _Delete()
"""What a function of ``update`` returns so that nothing is there any more."""

Contents = str | dict[str, str] | None
"""Of a key: a string, a hash, or nothing."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record. ``generation`` grows with each write; it is 0, and ``value`` None, where there is no record."""

    value: Any
    generation: int

    @property
    def exists(self) -> bool:
        return self.generation > 0


class Records(Pattern):
    """A collection of JSON values by key. Safe to share between threads.

    ``name``: of the collection, which is stored in one slot of a cluster. ``ttl``: seconds after its last write at
    which a record expires; None: never.
    """

    def __init__(self, redis: Client, name: str, *, prefix: str = PREFIX, ttl: float | None = None) -> None:
        super().__init__(redis, prefix)
        self.name = base.check_name(name, "a collection's name")
        self._of = self._keys.record(self.name)
        self._ttl = "" if ttl is None else str(base.check_seconds(ttl, "ttl", most=MAX_TTL))

    def get(self, key: str) -> Record:
        """Read a record; generation 0 where there is none."""
        where = self._of.one(base.check_key(key, "a record's key"))
        text, generation = self._caller.raw("HMGET", where, "value", "generation")
        return Record(None, 0) if text is None and generation is None else self._record(key, generation, text)

    def put(self, key: str, value: Any, *, expect: int | None, now: int | None = None) -> Record:
        """Write a record if ``expect`` is its generation (0: if there is none; None: in any case).

        Raises Changed, which carries ``expected``, ``actual`` and as ``found`` the current Record.
        """
        return self._write(key, "put", _text(key, value), expect, now)

    def delete(self, key: str, *, expect: int | None, now: int | None = None) -> None:
        """Delete a record under the same condition. Deleting a missing record succeeds."""
        self._write(key, "delete", "", expect, now)

    def update(
        self, key: str, function: Callable[[Any], Any], retries: int = RETRIES, *, now: int | None = None
    ) -> Record:
        """Replace a record's value by what ``function`` returns for it (None where there is none; a copy it may
        change).

        The function returns a value, never None; or DELETE. Raises Changed after ``retries`` + 1 conflicts, and what
        the function raises.
        """
        most = _tries(function, retries)
        record = self.get(key)
        for pause in _pauses(most):
            before, expected = _text(key, record.value) if record.exists else "", record.generation
            act, text = self._encode_value(key, function(record.value))
            if text == before:
                return record
            try:
                return self._write(key, act, text, expected, now)
            except Changed as changed:
                record = changed.found
            _wait(pause)
        what = self._describe(key)
        raise Changed(what, expected=expected, actual=record.generation, tried=most + 1, found=record)

    def _encode_value(self, key: str, value: Any) -> tuple[str, str]:
        if value is None:
            message = "the function returned None: it returns the value that is to be there, or cas.DELETE"
            raise BadInput(f"{self._describe(key)}: {message}", code="SB408")
        return ("delete", "") if value is DELETE else ("put", _text(key, value))

    def _write(self, key: str, act: str, text: str, expect: int | None, now: int | None) -> Record:
        expected = "" if expect is None else str(base.check_whole(expect, "expect", 0, MAX_GENERATION))
        words = (act, base.check_key(key, "a record's key"), expected, text, self._ttl, base.check_now(now))
        reply = self._ask("sb_swap_record", self._of.root, *words, also=(Status.CONFLICT, Status.FULL))
        if reply[0] == Status.FULL:
            raise Overflow(f"{self._describe(key)} has no larger generation left: the newest is at 2^53")
        if reply[0] == Status.CONFLICT:
            actual = int(reply[1])
            found = self._record(key, actual, reply[2]) if actual else Record(None, 0)
            raise Changed(self._describe(key), expected=expect, actual=actual, found=found)
        return Record(json.loads(text) if text else None, int(reply[1]))

    def _record(self, key: str, generation: Any, text: Any) -> Record:
        try:
            return Record(json.loads(text), base.check_whole(int(generation), "a generation", 1, MAX_GENERATION))
        except (TypeError, ValueError, RecursionError, BadInput) as error:
            raise EngineFault(f"{self._describe(key)} is damaged, another program wrote its key: {error}") from error

    def _describe(self, key: str) -> str:
        return f"record {key!r:.80} of {self.name}"


class Values(Pattern):
    """Compare-and-set for strings and hashes that other programs write, at any key. Safe to share between threads."""

    def __init__(self, redis: Client, prefix: str = PREFIX) -> None:
        super().__init__(redis, prefix)
        self._ours = (prefix, f"{prefix.rstrip(':')}-web:")

    def update(self, key: str, function: Callable[[Any], Any], retries: int = RETRIES) -> Contents:
        """Replace the contents of ``key`` by what ``function`` returns for them; return the new contents.

        The function gets a string, a dict of strings, or None for a missing key, and returns the same kind, or DELETE.
        The key's expiry stays. Keys of Signalbox are refused: only their functions write them.
        """
        where, most = self._check_foreign(key), _tries(function, retries)
        there = self._look(where)
        for pause in _pauses(most):
            wanted = _contents(key, function(dict(there) if isinstance(there, dict) else there))
            if wanted == there:
                return there
            swapped, found = self._swap(where, there, wanted)
            if swapped:
                return wanted
            if found == there:  # other bytes, and the same text once they are read
                raise EngineFault(f"{key!r:.80} holds bytes that are no UTF-8 and cannot be compared")
            there = found
            _wait(pause)
        raise Changed(f"the key {key!r:.80}", expected=None, actual=None, tried=most + 1, found=there)

    def _look(self, key: str) -> Contents:
        reply = self._ask("sb_swap", key, "look", "none", 0, also=(Status.CONFLICT,))
        return _read(reply[1], reply[2:])

    def _swap(self, key: str, before: Contents, after: Contents) -> tuple[bool, Contents]:
        seen, wanted = _words(before), _words(after)
        kinds = (_kind(before), _kind(after))
        reply = self._ask("sb_swap", key, *kinds, len(seen), *seen, *wanted, also=(Status.CONFLICT,))
        return (True, after) if reply[0] == Status.OK else (False, _read(reply[1], reply[2:]))

    def _check_foreign(self, key: Any) -> str:
        given = base.check_key(key)
        if given.startswith(self._ours) or PARTITION.match(given):
            message = "one of Signalbox's own, which only its functions write"
            raise BadInput(f"the key {given!r:.80} is {message}", code="SB401")
        return given


VALUES = "signalbox_values"  # the attribute of a client that holds them, so that they are freed with it


def update(
    redis: Client, key: str, function: Callable[[Any], Any], retries: int = RETRIES, *, prefix: str = PREFIX
) -> Contents:
    """Call ``Values(redis, prefix).update(...)``, with one Values for each client and prefix.

    ``prefix``: of Signalbox, whose keys are refused.
    """
    held: dict[str, Values] = vars(redis).setdefault(VALUES, {}) if hasattr(redis, "execute_command") else {}
    if prefix not in held:
        held[prefix] = Values(redis, prefix)
    return held[prefix].update(key, function, retries)


def _tries(function: Any, retries: Any) -> int:
    if not callable(function):
        raise BadInput(
            f"a function takes what is there and returns what is to be there, not {function!r:.80}", code="SB408"
        )
    return base.check_whole(retries, "retries", 0, MAX_RETRIES)


def _pauses(retries: int) -> Iterator[float]:
    """Yield the pause after each try in seconds; none after the first tries and the last one."""
    longest = PAUSES[0]
    for number in range(retries):
        if number < AT_ONCE:
            yield 0.0
            continue
        yield random.uniform(0, longest)  # noqa: S311  spreading load, not a secret
        longest = min(2 * longest, PAUSES[1])
    yield 0.0


def _wait(pause: float) -> None:
    if pause:
        time.sleep(pause)  # 0 would hand the processor to a rival


def _text(key: str, value: Any) -> str:
    return base.encode_document(value, f"the value of {key!r:.80}", most=MAX_VALUE)


def _kind(contents: Contents) -> str:
    return "none" if contents is None else "string" if isinstance(contents, str) else "hash"


def _words(contents: Contents) -> list[str]:
    if isinstance(contents, dict):
        return [word for pair in contents.items() for word in pair]
    return [] if contents is None else [contents]


def _read(kind: str, words: list[str]) -> Contents:
    if kind == "hash":
        return dict(zip(words[::2], words[1::2], strict=True))
    return words[0] if kind == "string" else None


def _contents(key: str, value: Any) -> Contents:
    if value is DELETE:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value and all(isinstance(word, str) for pair in value.items() for word in pair):
        return value
    message = "a text, a dict of texts to texts that is not empty, or cas.DELETE"
    raise BadInput(f"the function for {key!r:.80} returns {message}, not {value!r:.80}", code="SB408")
