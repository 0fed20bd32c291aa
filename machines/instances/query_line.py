"""Reads and writes the query line: ``Acme state:Waiting age>1h data.amount>100``, one more way to write a filter.

A line is terms with spaces between; a term is a key, a sign and a value, or a word to be found anywhere. A value with
spaces stands in double quotes, where a backslash comes before a quote or a backslash. All terms have to hold.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from machines.engine import BadInput

MAX_LINE = 1000  # characters
DATA = "data."
EQUAL = (":", "=")
ORDER = (">", ">=", "<", "<=")
SIGNS = (*EQUAL, *ORDER)
KEYS = ("state", "age", "created", "id", "version", "suspended", "tag", "actor", "error", "edge")
"""The keys of a line besides ``data.<field>``."""
TERM_OF = {"age": "older"}  # key -> the term of an address, where the two differ
KEY_OF = {term: key for key, term in TERM_OF.items()}
SIGNS_OF = {"age": (*EQUAL, ">", ">="), "created": SIGNS, "data": SIGNS}
EXAMPLE = {"age": "age>1h", "created": "created>2026-01-31", "data": "data.amount>100"}
TEXT = "text"  # the term of the words
REPEATED = ("created", "data", TEXT)
_KEY = re.compile(r'[^\s:=!<>"]+')
_SIGN = re.compile(r"!=|>=|<=|[:=<>]")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"(?=\s|$)')
_PLAIN = re.compile(r'[^\s"]+(?=\s|$)')


@dataclass(frozen=True, slots=True)
class LineTerm:
    """One term of a line; a word has no key and no sign. ``at``: the position of its first character, from 1."""

    key: str
    sign: str
    value: str
    at: int

    @property
    def field(self) -> str:
        """Return the data field; "" for a key of ``KEYS``."""
        return self.key.removeprefix(DATA) if self.key.startswith(DATA) else ""


def split_line(text: str) -> list[LineTerm]:
    """Split a line into its terms. Raises BadInput with the position of the first mistake."""
    if len(text) > MAX_LINE:
        raise BadInput(f"a query line has at most {MAX_LINE:,} characters, not {len(text):,}")
    found, at = [], 0
    while (at := _skip_spaces(text, at)) < len(text):
        start = at
        key = _KEY.match(text, at)
        sign = _SIGN.match(text, key.end() if key else at)
        if sign and not key:
            raise _make_mistake(
                start, f"{text[start]!r} begins no term; write a key, a sign and a value: state:Waiting"
            )
        begin = sign.end() if sign else at
        value = _QUOTED.match(text, begin) or _PLAIN.match(text, begin)
        if value is None:
            raise _make_mistake(begin, 'a value is missing or its quotes do not close; write it as "two words"')
        name, by = (key[0], sign[0]) if key and sign else ("", "")
        found.append(LineTerm(name, by, _unescape(value[1]) if text[begin] == '"' else value[0], start + 1))
        at = value.end()
    return found


def read_line(text: str) -> dict[str, str]:
    """Read a line into terms of an address: ``{"state": "Waiting", "older": "1h", "data": "amount>100"}``.

    Raises BadInput with the position of the first mistake. Values are not checked here.
    """
    found: dict[str, str] = {}
    for term in split_line(text):
        kind = "data" if term.field else term.key or TEXT
        name = TERM_OF.get(kind, kind)
        if name in found and name not in REPEATED:
            raise _make_mistake(term.at - 1, f"{term.key} stands twice; all terms have to hold, so write it once")
        value = _read_term(term, kind)
        found[name] = f"{found[name]} {value}" if name in found else value
    return found


def _read_term(term: LineTerm, kind: str) -> str:
    """Return the text of a term in an address. Raises BadInput for an unknown key, or a sign that it does not take."""
    if not term.key:
        return f'"{term.value}"' if _SIGN.search(term.value) else quote(term.value)
    if kind != "data" and kind not in KEYS:
        why = f"unknown key {term.key[:60]!r}; use {', '.join(KEYS)} or data.<field>, or quotes for a word"
        raise _make_mistake(term.at - 1, why)
    allowed = SIGNS_OF.get(kind, EQUAL)
    if term.sign not in allowed:
        example = EXAMPLE.get(kind, f"{kind}:{quote(term.value[:60])}")
        raise _make_mistake(
            term.at - 1 + len(term.key), f"{kind} takes {' '.join(allowed)}, not {term.sign}; write {example}"
        )
    if kind == "data":
        return f"{term.field}{term.sign}{quote(term.value)}"
    if not term.value:
        raise _make_mistake(term.at - 1, f"{term.key} has an empty value; leave the term out, or write a value")
    return f"{term.sign}{term.value}" if kind == "created" and term.sign in ORDER else term.value


def write_line(texts: Mapping[str, str]) -> str:
    """Write the terms of an address as a line; ``read_line`` reads the same terms from it."""
    parts = []
    for name, text in texts.items():
        key = KEY_OF.get(name, name)
        if name == TEXT:
            parts.append(text)
        elif name == "data":
            parts += [f"{DATA}{part}" for part in _split_data(text)]
        elif name == "is" and "by" in texts:
            parts.append(f"{DATA}{texts['by']}:{quote(text)}")
        elif name == "created":
            parts += [f"{key}{part}" if part.startswith(("<", ">")) else f"{key}:{part}" for part in text.split()]
        elif key in KEYS:
            parts.append(f"{key}{'>' if key == 'age' else ':'}{quote(text)}")
    return " ".join(parts)


def _split_data(text: str) -> list[str]:
    """Return the conditions of the term ``data`` as texts; the whole text where it is not valid."""
    try:
        return [f"{term.key}{term.sign}{quote(term.value)}" for term in split_line(text)]
    except BadInput:
        return [text]


def read_words(text: str) -> list[str]:
    """Read ``Acme "two words"`` into its words."""
    found = re.findall(f"{_QUOTED.pattern}|({_PLAIN.pattern})", text)
    if not found or re.sub(f"{_QUOTED.pattern}|{_PLAIN.pattern}", "", text).strip():
        raise BadInput('a quote does not close, or nothing is in it; write several words as "two words"')
    return [word or _unescape(quoted) for quoted, word in found]


def quote(value: str) -> str:
    """Put a value in quotes where a line needs them."""
    if _PLAIN.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _skip_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _make_mistake(at: int, why: str) -> BadInput:
    return BadInput(f"query line, position {at + 1}: {why}")
