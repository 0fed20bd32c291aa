"""Encryption of the fields that a definition marks as ``encrypted``, by a codec of the application.

A value is encrypted before a call leaves for Redis, so Redis and everything that reads it hold ciphertexts:
``enc:1:<field>:<base64>``. A ciphertext names the field that it was encrypted for, so it is decrypted wherever it was
copied to.
"""

import base64
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from machines.engine.connection import waiting
from machines.engine.definitions.fields import describe_types, get_type, is_of_type
from machines.engine.errors import BadPayload, EncryptionFailed, EngineUnavailable, UnknownMachine
from machines.engine.publishing.machine_meta import EncryptedField, SensitiveFields
from machines.engine.search.filters import build_refusal

MARK = "enc:1:"
FORM = re.compile(rf"{MARK}([^:\s]+):([A-Za-z0-9_-]+={{0,2}})")
UNREADABLE = "(cannot be decrypted: "
"""What the words begin with that a page shows in place of a value."""
FRESH = 5.0  # seconds for which it is not asked again which fields a machine encrypts

LEAST = 4  # characters of a value that is looked for in other texts: a shorter one would be found everywhere
_HOLDERS = frozenset([str, dict, list])  # what a ciphertext may be in

Marks = Mapping[str, EncryptedField]


class Codec(Protocol):
    """What ``SIGNALBOX["CODEC"]`` names; several threads may call it at once. ``field``: the name of the field; a codec
    that authenticates it refuses a ciphertext of another field. Any exception means that the value is not to be had
    now."""

    def encrypt(self, value: bytes, field: str) -> bytes: ...

    def encrypt_deterministic(self, value: bytes, field: str) -> bytes:
        """Return the same bytes for the same value, for fields that are found by equality."""
        ...

    def decrypt(self, value: bytes, field: str) -> bytes:
        """Return the value of either form, under any key that the codec still holds."""
        ...


def list_leaves(value: Any) -> Iterator[Any]:
    """Yield what stands in a value and holds nothing else."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from list_leaves(inner)
    else:
        yield value


def list_texts(value: Any) -> Iterator[str]:
    """List the texts by which a value would be found in a longer one, or in JSON."""
    for leaf in list_leaves(value):
        if isinstance(leaf, str | int | float) and not isinstance(leaf, bool) and len(str(leaf)) >= LEAST:
            yield str(leaf)
            if isinstance(leaf, str):
                yield from (json.dumps(leaf, ensure_ascii=ascii)[1:-1] for ascii in (True, False))


def holds_ciphertext(value: Any) -> bool:
    """Tell whether anything in a value that was JSON may be a ciphertext."""
    if isinstance(value, str):
        return value.startswith(MARK)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return False
    return not _HOLDERS.isdisjoint(map(type, value)) and any(map(holds_ciphertext, value))


def write_ciphertext(field: str, sealed: bytes) -> str:
    return f"{MARK}{field}:{base64.urlsafe_b64encode(sealed).decode()}"


class FieldEncryption:
    """Encrypts and decrypts with one codec; None leaves everything as it is. ``read``: returns the marks of a
    machine."""

    def __init__(self, codec: Codec | None, read: Callable[[str], SensitiveFields]) -> None:
        self.codec = codec
        self._read = read
        self._known: dict[str, tuple[float, Marks]] = {}

    def find_marks(self, machine: str) -> Marks:
        """Return the encrypted fields of all versions of a machine; none without a codec."""
        return {} if self.codec is None else self._find_declared(machine)

    def _find_declared(self, machine: str) -> Marks:
        at, marks = self._known.get(machine, (0.0, {}))
        now = time.monotonic()
        if machine not in self._known or now - at > FRESH:
            try:
                marks = self._read(machine).encrypted
            except UnknownMachine:  # the call itself says so
                return {}
            except EngineUnavailable:
                if machine not in self._known:
                    raise
            self._known[machine] = (now, marks)
        return marks

    def forget(self, machine: str) -> None:
        """Read the marks anew with the next call."""
        self._known.pop(machine, None)

    def encrypt(self, machine: str, value: Any) -> Any:
        """Return data, a payload or a result with the value of each encrypted field, at any depth, as a ciphertext."""
        marks = self.find_marks(machine) if value else {}
        try:
            return self.encrypt_by(marks, value) if marks else value
        except RecursionError as error:
            raise BadPayload("a value is nested too deeply") from error

    def encrypt_by(self, marks: Marks, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {
                name: self._encrypt_one(name, marks[name], inner) if name in marks else self.encrypt_by(marks, inner)
                for name, inner in value.items()
            }
        return [self.encrypt_by(marks, inner) for inner in value] if isinstance(value, list | tuple) else value

    def _encrypt_one(self, name: str, mark: EncryptedField, value: Any) -> Any:
        if value is None:
            return value
        if self._is_encrypted(name, value):
            if not mark.searchable:
                return value
            value = self.decrypt(value)  # the key may have been replaced since: equal values have one ciphertext
        if isinstance(value, str) and value.startswith(UNREADABLE):
            raise BadPayload(f"{name} is the note that stands for a value; leave the field out to keep it", field=name)
        if not is_of_type(get_type(value), mark.types):
            why = f"the encrypted field {name!r} takes {describe_types(mark.types)}, not {get_type(value)}"
            raise BadPayload(why, field=name)
        if self.codec is None:
            raise EncryptionFailed(name, "no CODEC is set")
        seal = self.codec.encrypt_deterministic if mark.searchable else self.codec.encrypt
        try:
            text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            plain = text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise BadPayload(f"the encrypted field {name!r} is not JSON: {type(error).__name__}", field=name) from error
        try:
            sealed = waiting.compute(seal, plain, name)
        except Exception as error:
            raise EncryptionFailed(name, f"it cannot be encrypted: {type(error).__name__}") from error
        return write_ciphertext(name, sealed)

    def _is_encrypted(self, name: str, value: Any) -> bool:
        """Tell whether a value is a ciphertext of this field: any other text of that form is a text."""
        form = FORM.fullmatch(value) if isinstance(value, str) else None
        if form is None or form[1] != name:
            return False
        try:
            self._decrypt_one(form)
        except EncryptionFailed:
            return False
        return True

    def decrypt(self, value: Any, machine: str | None = None, found: set[str] | None = None) -> Any:
        """Return a value with every ciphertext in it, at any depth, decrypted; add the texts of what was decrypted to
        ``found``. Raises EncryptionFailed; not for a text that only looks like a ciphertext of a field that ``machine``
        encrypts nowhere."""

        def read(text: str, form: re.Match[str]) -> Any:
            try:
                plain = self._decrypt_one(form)
            except EncryptionFailed:
                if machine is None or form[1] in self._find_declared(machine):
                    raise
                return text
            if found is not None:
                found.update(list_texts(plain))
            return plain

        return self._walk(value, read)

    def show(self, machine: str, value: Any) -> Any:
        """Return a value for people, with every ciphertext of a field that the machine encrypts decrypted, and words in
        place of what cannot be."""

        def read(text: str, form: re.Match[str]) -> Any:
            try:
                marked = form[1] in self._find_declared(machine)
            except EngineUnavailable:
                return text
            return self._show_one(form) if marked else text

        return self._walk(value, read)

    def _walk(self, value: Any, read: Callable[[str, re.Match[str]], Any]) -> Any:
        if isinstance(value, Mapping):
            return {name: self._walk(inner, read) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(inner, read) for inner in value]
        found = FORM.fullmatch(value) if isinstance(value, str) and value.startswith(MARK) else None
        return read(value, found) if found else value

    def _decrypt_one(self, found: re.Match[str]) -> Any:
        field, sealed = found.groups()
        if self.codec is None:
            raise EncryptionFailed(field, "no CODEC is set")
        try:
            return json.loads(waiting.compute(self.codec.decrypt, base64.urlsafe_b64decode(sealed), field))
        except Exception as error:
            raise EncryptionFailed(field, f"it cannot be decrypted: {type(error).__name__}") from error

    def _show_one(self, found: re.Match[str]) -> Any:
        try:
            return self._decrypt_one(found)
        except EncryptionFailed as error:
            cause = error.__cause__
            return f"{UNREADABLE}{type(cause).__name__ if cause else 'no CODEC is set'})"

    def encrypt_terms(self, machine: str, where: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the conditions of a search on data fields, each value of a searchable field encrypted."""
        marks = self.find_marks(machine) if where else {}
        if not where or not marks.keys() & where.keys():
            return where
        return {name: self._encrypt_term(name, marks[name], rule) if name in marks else rule
                for name, rule in where.items()}  # fmt: skip

    def _encrypt_term(self, name: str, mark: EncryptedField, rule: Any) -> Any:
        if rule is None or (not mark.searchable and self._is_encrypted(name, rule)):
            return rule
        if not mark.searchable or isinstance(rule, Mapping):
            only = "only by a whole value" if mark.searchable else "only where it is declared as searchable"
            raise build_refusal(name, f"it is encrypted, and found {only}")
        return self._encrypt_one(name, mark, rule)
