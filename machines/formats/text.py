"""What the formats share: decoding bytes to text, places in a text, findings about it, names that are still free."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding, get_severity, make_finding

MAX_FINDINGS = 100  # in one text: each costs a walk to its line
# Keys of a machine and of an invoke that only JSON and YAML have.
MACHINE_SETTINGS = (
    *("history", "retain", "queues", "partitions", "index", "approval", "approvers", "accepts", "schedules"),
    "properties",
)
INVOKE_SETTINGS = (
    *("retry", "lease", "timeout", "priority", "group", "weight", "delay", "unique", "autoforward", "finalize"),
    "idlocation",
)
_NOT_A_FIELD = re.compile(r"[^A-Za-z0-9_]+")
_BOM = "\ufeff"


def decode(text: str | bytes) -> str | Finding:
    """Return the text without a byte order mark, or what is wrong with it."""
    if not isinstance(text, str | bytes | bytearray | memoryview):
        return make_finding("SB134", "", f"expected text or bytes, found {type(text).__name__}")
    if len(text) > limits.MAX_DEFINITION:
        return _too_large()
    try:
        raw = text.encode() if isinstance(text, str) else bytes(text)
        decoded = text if isinstance(text, str) else raw.decode()
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode()
        return make_finding("SB134", place(good, len(good)), f"not UTF-8: {error.reason}", _encoding_hint(raw))
    except UnicodeEncodeError as error:
        return make_finding("SB134", place(str(text), error.start), "the text holds half of a surrogate pair")
    if len(raw) > limits.MAX_DEFINITION:
        return _too_large()
    nul = decoded.find("\0")
    if nul >= 0:
        return make_finding("SB134", place(decoded, nul), "the text holds NUL", _encoding_hint(raw))
    return decoded.removeprefix(_BOM)


def describe_unreadable(error: OSError) -> Finding:
    """Say why a file cannot be read."""
    return make_finding("SB136", "", f"the file cannot be read: {error.strerror}", "check that it exists, and its mode")


def stem(base: str | Path | None) -> str:
    """Return the file name of a text as a machine name; an empty text if there is no file."""
    file = Path(base) if base is not None else None
    if file is None or not file.is_file():
        return ""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", file.name.split(".")[0]).lstrip("-0123456789").rstrip("-")
    return name[: limits.MAX_NAME]


def place(text: str, offset: int) -> str:
    """Return ``line 3, column 7``. Both count from 1, as editors do."""
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    return f"line {line}, column {column}"


def _encoding_hint(raw: bytes) -> str:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or raw[1:2] == b"\0" or raw[:1] == b"\0":
        return "it looks like UTF-16; save it as UTF-8"
    return "save the file as UTF-8"


def _too_large() -> Finding:
    return make_finding("SB111", "", f"the text is larger than {limits.MAX_DEFINITION} bytes")


class Report:
    """Collects findings. Errors and warnings have separate limits, so that many warnings cannot hide an error."""

    def __init__(self) -> None:
        self._found: dict[Finding, None] = {}
        self._counts: Counter[str] = Counter()

    def add(self, code: str, where: str | Callable[[], str], message: str, hint: str = "") -> None:
        """Add a finding.

        ``where`` may be a function. It walks through the text, so it is called only while there is room.
        """
        if self._counts[get_severity(code)] < MAX_FINDINGS:
            self._keep(make_finding(code, where if isinstance(where, str) else where(), message, hint))

    def extend(self, findings: list[Finding]) -> None:
        for found in findings:
            self._keep(found)

    def _keep(self, found: Finding) -> None:
        if found not in self._found:
            self._found[found] = None
            self._counts[found.severity] += 1

    @property
    def findings(self) -> list[Finding]:
        """Return the findings, in the order of their places in the text."""
        return sorted(self._found, key=lambda found: _position(found.path))


def _position(path: str) -> tuple[int, ...]:
    """Return the numbers of ``line 3, column 7``. Findings without a place come first."""
    return tuple(int(word) for word in path.replace(",", "").split() if word.isdigit())


def shorten_transitions(state: dict[str, Any]) -> None:
    """Replace each list of one transition of a state by that transition."""
    for home in (state.get("on", {}), state.get("after", {})):
        home.update({key: single(found) for key, found in home.items()})
    state.update({key: single(state[key]) for key in ("always", "onDone") if key in state})


def single(found: list[Any]) -> Any:
    """Return the one item of a list; a list of none or of several as it is."""
    return found[0] if len(found) == 1 else found


def field_name(text: str, otherwise: str) -> str:
    """Return the text if it is a valid field name, else a similar name; ``otherwise`` if no character is left."""
    if limits.check_field_name(text) is None:
        return text
    name = _NOT_A_FIELD.sub("_", text).lstrip("_0123456789")[: limits.MAX_FIELD_NAME - 8] or otherwise
    return name if limits.check_field_name(name) is None else f"{name}_"


class Names:
    """Names that are taken. Each stem continues its own numbers, so many names of one stem do not take longer."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._last: Counter[str] = Counter()

    def free(self, stem: str, first: int = 1) -> str:
        """Take and return the first free name of ``stem1``, ``stem2``, ..."""
        number = self._last[stem] + 1 if stem in self._last else first
        while f"{stem}{number}" in self._taken:
            number += 1
        self._last[stem] = number
        self._taken.add(f"{stem}{number}")
        return f"{stem}{number}"

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def take(self, name: str, before: str = "_") -> str:
        """Take the name and return it, or ``name_2``, ``name_3``, ... if it is taken. ``before``: before the number."""
        if name in self._taken:
            return self.free(f"{name}{before}", first=2)
        self._taken.add(name)
        return name
