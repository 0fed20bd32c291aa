"""Kinds of settings: each rule about a value once, for text of an environment variable and for a value of Python.

``parse(label, text)`` reads the text of a variable, ``read(label, value)`` a value of the dict ``SIGNALBOX``. Both
return the value, or raise ``Unfit`` with a sentence that begins with the label. Nothing here shows a secret.
"""

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from machines.engine import rates
from machines.engine.connection.redis_url import read_url
from machines.engine.definitions import durations
from machines.engine.definitions.approval_terms import ApprovalTerms
from machines.engine.definitions.findings import Report
from machines.engine.definitions.place import Place
from machines.engine.definitions.reading.approvers import read_approvers
from machines.engine.definitions.reading.machine_settings import is_action
from machines.engine.errors import BadInput
from machines.engine.limits import check_machine_name

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})
ANY = "*"  # every machine
MINUTE = 60_000  # ms


class Unfit(ValueError):
    """A value does not fit; the message names it and says what would fit."""


@dataclass(frozen=True)
class Kind:
    """A text without further rules."""

    def parse(self, label: str, text: str) -> Any:
        return self.read(label, text)

    def read(self, label: str, value: Any) -> Any:
        if not isinstance(value, str):
            raise Unfit(f"{label} is {_name(value)}; it must be a text")
        return value


@dataclass(frozen=True)
class Flag(Kind):
    def parse(self, label: str, text: str) -> bool:
        if text.lower() not in TRUE | FALSE:
            raise Unfit(f"{label}={text.lower()!r} is neither true nor false; use 1 or 0")
        return text.lower() in TRUE

    def read(self, label: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise Unfit(f"{label}={value!r} is neither True nor False")
        return value


@dataclass(frozen=True)
class Integer(Kind):
    low: int
    high: int

    def parse(self, label: str, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise Unfit(f"{label}={text!r} is not a whole number") from None
        return self.read(label, number)

    def read(self, label: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Unfit(f"{label}={value!r} is not a whole number")
        if not self.low <= value <= self.high:
            raise Unfit(f"{label}={value} is out of range; it may be {self.low} to {self.high}")
        return value


@dataclass(frozen=True)
class Words(Kind):
    """A list of texts, each one of ``allowed`` if there are any; separated by commas in a variable."""

    allowed: tuple[str, ...] = ()

    def parse(self, label: str, text: str) -> list[str]:
        return self.read(label, [word.strip() for word in text.split(",") if word.strip()])

    def read(self, label: str, value: Any) -> list[str]:
        if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
            raise Unfit(f'{label} must be a list of texts: ["a", "b"]')
        if unknown := [word for word in value if self.allowed and word not in self.allowed]:
            raise Unfit(f"{label} holds {unknown[0]!r}, which is not one of {', '.join(self.allowed)}")
        for number, word in enumerate(value, 1):
            self.check(label, number, word)
        return list(value)

    def check(self, label: str, number: int, word: str) -> None:
        """Raise Unfit for a word that breaks a further rule. ``number``: which of the list it is, from 1."""


RECEIVER = re.compile(r"stdout|/\S+|syslog(\+tcp|\+tls)?://(\[[0-9A-Fa-f:]+\]|[\w.-]+)(:\d{1,5})?|https://[^\s/]\S*")


DRIFT = re.compile(
    r"(?:p(?P<percent>[1-9]\d?(?:\.\d{1,3})?)|share) of (?P<machine>[\w.-]{1,64})/"
    r"(?P<states>\S[^>]{0,79}?(?: > \S[^>]{0,79}?){0,9}?)(?(percent)| > (?P<last>\S[^>]{0,79}?)) "
    r"over (?P<factor>\d{1,4}(?:\.\d{1,3})?) x "
    r"(?P<window>[1-9]\d{0,3}[smhd])"
)


@dataclass(frozen=True)
class Drifts(Words):
    """A list of alarms on times and shares of states, transitions and paths: see ``machines.insight.comparison``."""

    def check(self, label: str, number: int, word: str) -> None:
        match = DRIFT.fullmatch(word)
        if match is None or not MINUTE <= (durations.parse_duration(match["window"]) or 0) <= 366 * 1440 * MINUTE:
            wanted = "p95 of order/Paying over 2 x 7d, or share of order/Paying > Failed over 2 x 7d"
            raise Unfit(f"{label} holds {word!r}; write {wanted}, of a minute to a year")


@dataclass(frozen=True)
class Receivers(Words):
    """A list of places to which lines are sent. The path of a web address may be a secret, so no message shows one."""

    def check(self, label: str, number: int, word: str) -> None:
        if RECEIVER.fullmatch(word) is None or len(word) > 250:
            wanted = "stdout, the path of a file (/var/log/audit), syslog://host:514, syslog+tcp://, syslog+tls://"
            raise Unfit(f"{label}: entry {number} is no receiver; write {wanted} or https://")


@dataclass(frozen=True)
class Networks(Words):
    """A list of IP addresses and networks; separated by commas in a variable."""

    def check(self, label: str, number: int, word: str) -> None:
        try:
            ipaddress.ip_network(word)
        except ValueError as error:
            right = "write 10.1.2.3 or 10.1.0.0/16"
            raise Unfit(f"{label} holds {word!r}, which is no address and no network ({error}): {right}") from None


@dataclass(frozen=True)
class WordsByMachine(Kind):
    """Words for all machines, as a list, or for each by its name, as a dict of lists in which ``*`` stands for all.

    In a variable: ``publish, order=migrate``."""

    allowed: tuple[str, ...]

    def parse(self, label: str, text: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for word in Words().parse(label, text):
            machine, sign, action = word.partition("=")
            found.setdefault(machine.strip() if sign else ANY, []).append(action.strip() if sign else word)
        return self.read(label, found)

    def read(self, label: str, value: Any) -> dict[str, list[str]]:
        found = value if isinstance(value, Mapping) else {ANY: value}
        for machine in found:
            if machine != ANY and (why := check_machine_name(machine)) is not None:
                raise Unfit(f"{label}: the machine name {machine!r} {why}; write {ANY!r} for all machines")
        words = Words(self.allowed)
        return {name: words.read(f"{label}[{name!r}]" if found is value else label, of) for name, of in found.items()}


@dataclass(frozen=True)
class WordLists(Kind):
    """A dict of lists of texts; ``admins=supervisor, admins=publisher`` in a variable."""

    def parse(self, label: str, text: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for word in Words().parse(label, text):
            name, sign, value = (part.strip() for part in word.rpartition("="))
            if not (sign and name and value):
                raise Unfit(f"{label} holds {word!r}; write two names, such as admins=supervisor")
            found.setdefault(name, []).append(value)
        return found

    def read(self, label: str, value: Any) -> dict[str, list[str]]:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise Unfit(f'{label} must be a dict of lists: {{"admins": ["supervisor"]}}')
        return {name: Words().read(f"{label}[{name!r}]", words) for name, words in value.items()}


@dataclass(frozen=True)
class Integers(Kind):
    """A list of whole numbers; separated by commas in a variable."""

    low: int
    high: int

    def parse(self, label: str, text: str) -> list[int]:
        words = Words().parse(label, text)
        for word in words:
            if not (word.isascii() and word.isdigit() and len(word) < 19):
                raise Unfit(f"{label} holds {word!r}, which is not a whole number")
        return self.read(label, [int(word) for word in words])

    def read(self, label: str, value: Any) -> list[int]:
        if not isinstance(value, list | tuple):
            raise Unfit(f"{label} must be a list of whole numbers: [8443]")
        for number in value:
            if not isinstance(number, int) or isinstance(number, bool):
                raise Unfit(f"{label} holds {number!r}, which is not a whole number")
            if not self.low <= number <= self.high:
                raise Unfit(f"{label} holds {number}, which is out of range; it may be {self.low} to {self.high}")
        return list(value)


@dataclass(frozen=True)
class Choice(Kind):
    allowed: tuple[str, ...]

    def read(self, label: str, value: Any) -> str:
        if value not in self.allowed:
            raise Unfit(f"{label}={value!r} is not one of {', '.join(filter(None, self.allowed))}")
        return str(value)


@dataclass(frozen=True)
class CheckedText(Kind):
    """A text for which ``fits`` holds; ``wanted`` says in words what that is."""

    fits: Callable[[str], bool]
    wanted: str

    def read(self, label: str, value: Any) -> str:
        if not isinstance(value, str) or not self.fits(value):
            raise Unfit(f"{label}={value!r} does not fit; it must be {self.wanted}")
        return value


@dataclass(frozen=True)
class Rate(Kind):
    example: str

    def read(self, label: str, value: Any) -> str:
        if not isinstance(value, str) or (value != "off" and rates.parse_rate(value) is None):
            raise Unfit(f'{label}={value!r} does not fit; it must be a rate such as "{self.example}", or off')
        return value


@dataclass(frozen=True)
class Url(Kind):
    """A URL of one of ``schemes``. It may carry a password, so no message shows it."""

    schemes: tuple[str, ...]

    def read(self, label: str, value: Any) -> str:
        scheme, mark, _ = value.partition("://") if isinstance(value, str) else ("", "", "")
        if not mark or scheme not in self.schemes:
            raise Unfit(f"{label} must start with {' or '.join(f'{scheme}://' for scheme in self.schemes)}")
        try:
            _ = read_url(value) if "+" in scheme else urlsplit(value).port
        except BadInput as error:
            raise Unfit(f"{label} is {error.message}") from None
        except ValueError as error:
            raise Unfit(f"{label} is not a URL: {error}") from None
        return str(value)


@dataclass(frozen=True)
class Secret(Kind):
    """A text of at least so many characters, or none."""

    least: int = 0

    def read(self, label: str, value: Any) -> str:
        if not isinstance(value, str):
            raise Unfit(f"{label} must be a text")
        if 0 < len(value) < self.least:
            raise Unfit(f"{label} is too short to be a secret; use {self.least} characters or more")
        return value


@dataclass(frozen=True)
class Folder(Kind):
    """A path, as a text or a ``Path``; made absolute."""

    def read(self, label: str, value: Any) -> Path:
        if not isinstance(value, str | Path) or not str(value):
            raise Unfit(f"{label}={value!r} is no path of a folder")
        return Path(value).expanduser().absolute()


@dataclass(frozen=True)
class FactsPlace(Folder):
    """The path of a folder, or ``database:`` and the alias of a database, which stays a text."""

    def read(self, label: str, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith("database:"):
            return super().read(label, value)
        if not re.fullmatch(r"database:\w[\w.-]{0,63}", value):
            raise Unfit(f"{label}={value!r} is no alias of a database: write database:ALIAS")
        return value


@dataclass(frozen=True)
class Numbers(Kind):
    """A dict of numbers by name. No variable holds one."""

    def read(self, label: str, value: Any) -> dict[str, float]:
        if not isinstance(value, Mapping):
            raise Unfit(f"{label} is {_name(value)}; it must be a dict")
        for name, number in value.items():
            if not isinstance(number, int | float) or isinstance(number, bool):
                raise Unfit(f"{label}[{name!r}]={number!r} is no number")
        return dict(value)


@dataclass(frozen=True)
class Records(Kind):
    """A list of dicts, each with texts for ``required``, and others of ``allowed``. No variable holds one."""

    required: tuple[str, ...]
    allowed: tuple[str, ...]

    def read(self, label: str, value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list | tuple) or not all(isinstance(one, Mapping) for one in value):
            raise Unfit(f"{label} must be a list of dicts")
        for number, one in enumerate(value):
            if unknown := set(one) - {*self.required, *self.allowed}:
                names = ", ".join((*self.required, *self.allowed))
                raise Unfit(f"{label}[{number}] has {min(map(str, unknown))!r}, which is not one of {names}")
            if lacks := [name for name in self.required if not isinstance(one.get(name), str)]:
                raise Unfit(f"{label}[{number}] has no text {lacks[0]!r}")
        if len({one[self.required[0]].strip() for one in value}) < len(value):
            raise Unfit(f"{label} has two with the same {self.required[0]}")
        return [dict(one) for one in value]


@dataclass(frozen=True)
class Approvers(Kind):
    """Terms of approvals by machine, in which ``*`` stands for all, and by action: as ``approvers`` of a definition.
    JSON in a variable."""

    def parse(self, label: str, text: str) -> dict[str, dict[str, ApprovalTerms]]:
        try:
            return self.read(label, json.loads(text))
        except json.JSONDecodeError as error:
            raise Unfit(f"{label} is not JSON: {error}") from None

    def read(self, label: str, value: Any) -> dict[str, dict[str, ApprovalTerms]]:
        if not isinstance(value, Mapping):
            raise Unfit(f'{label} must be a dict: {{"*": {{"publish": {{"group": "release", "quorum": 2}}}}}}')
        found, report = {}, Report()
        for machine, terms in value.items():
            named = [name for name in terms if is_action(name)] if isinstance(terms, Mapping) else []
            found[machine] = read_approvers(Place(terms, (str(machine),), report), named)
        for finding in report.findings():
            raise Unfit(f"{label}: {finding.path}: {finding.message}")
        return found


COLOURS = ("red", "orange", "green", "blue", "violet", "grey")


@dataclass(frozen=True)
class Environment(Kind):
    """A dict of a name and a colour; ``production=red`` in a variable. Without any, an empty dict."""

    def parse(self, label: str, text: str) -> dict[str, str]:
        name, _, colour = text.rpartition("=")
        if not name:
            raise Unfit(f"{label}={text!r} does not fit; write a name and a colour, such as production=red")
        return self.read(label, {"name": name.strip(), "colour": colour.strip()})

    def read(self, label: str, value: Any) -> dict[str, str]:
        if not isinstance(value, Mapping) or set(value) != {"name", "colour"}:
            raise Unfit(f'{label} must be a dict of two keys: {{"name": "production", "colour": "red"}}')
        name = value["name"]
        if not isinstance(name, str) or not name.strip() or len(name) > 40 or not name.isprintable():
            raise Unfit(f"{label}: the name {name!r} does not fit; it must be 1 to 40 printable characters")
        return {"name": name.strip(), "colour": Choice(COLOURS).read(f"{label}: colour", value["colour"])}


def _name(value: Any) -> str:
    return f"of the type {type(value).__name__}"
