"""Renders docs/engine-reference.md from its sources: the Lua headers, the keys, the statuses and the errors.

python -m tests.docs.engine_reference docs/engine-reference.md
"""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from machines.engine import errors, keys, pattern_keys
from machines.engine.connection import library

FIELDS = ("flags", "KEYS", "ARGV", "Returns", "Notifies", "Cost")
_LINE = re.compile(r"^-- ?(.*)$")
_FIELD = re.compile(r"^(flags|KEYS|ARGV|Returns|Notifies|Cost): *(.*)$")


@dataclass(frozen=True, slots=True)
class Header:
    """The comment at the top of a function's file."""

    name: str
    purpose: str
    fields: dict[str, str]


def read_header(path: Path) -> Header:
    """Parse the leading comment: `name: purpose`, then one paragraph for each of FIELDS."""
    purpose: list[str] = []
    fields: dict[str, list[str]] = {}
    into = purpose
    for line in path.read_text(encoding="utf-8").splitlines():
        comment = _LINE.match(line)
        if comment is None:
            break
        text = comment.group(1).strip()
        if text.startswith("needs:"):
            continue
        named = _FIELD.match(text)
        if named:
            into = fields.setdefault(named.group(1), [])
            text = named.group(2)
        into.append(text)
    sentence = " ".join(purpose).removeprefix(f"{path.stem}:").strip()
    return Header(path.stem, sentence, {name: " ".join(lines).strip() for name, lines in fields.items()})


def read_headers(folder: Path = library.FOLDER) -> list[Header]:
    """Read the headers of all functions of the library."""
    return [read_header(path) for path in library.function_paths(folder).values()]


def is_pattern_function(found: Header) -> bool:
    """Tell whether a function's key is the root of a pattern, not of a machine's partition and not a caller's own
    key."""
    return found.name.startswith("sb_") and "partition" not in found.fields["KEYS"]


def _function(found: Header) -> str:
    rows = [f"### `{found.name}`\n\n{found.purpose[:1].upper()}{found.purpose[1:]}\n"]
    titles = {"flags": "Flags", "KEYS": "Keys", "ARGV": "Arguments"}
    rows += [f"- **{titles.get(name, name)}:** {found.fields[name]}" for name in FIELDS if name in found.fields]
    return "\n".join(rows) + "\n"


def _keys() -> str:
    partition = keys.Keys().partition("activation")
    samples = {"id": "ATV-123:ABC", "state": "Waiting", "queue": "todo", "job": "0-17", "key": "req-42", "version": 1}
    rows = ["| key, for example | what it is |", "|---|---|"]
    for holder, source in ((partition, keys.Partition), (keys.Keys(), keys.Keys)):
        for name, member in vars(source).items():
            made = _example(holder, name, member, samples)
            if made:
                rows.append(f"| `{made}` | {_describe(source, name, member)} |")
    return "\n".join(rows) + "\n"


def _pattern_keys() -> str:
    roots = pattern_keys.PatternKeys(keys.PREFIX)
    named: dict[str, object] = {"name": "demo", "part": 0, "key": "user-7"}
    chosen: dict[str, object] = {
        "part": "app", "key": "cart-7", "subject": "user-7", "entity": "page-7", "handle": "3f9c0a1b2c3d4e5f",
        "id": "17", "day": 20_000, "period": 20_000,
    }  # fmt: skip
    rows = ["| key, for example | what it is |", "|---|---|"]
    for pattern in (name for name, member in vars(pattern_keys.PatternKeys).items() if inspect.isfunction(member)):
        if pattern.startswith("_"):
            continue
        wanted = list(inspect.signature(getattr(roots, pattern)).parameters)
        holder = getattr(roots, pattern)(*(named[parameter] for parameter in wanted))
        for name, member in vars(type(holder)).items():
            made = _example(holder, name, member, chosen)
            if made and name != "root":
                rows.append(f"| `{made}` | {_describe(type(holder), name, member)} |")
    return "\n".join(rows) + "\n"


COMMENTED = re.compile(r"((?: +#: .*\n)+) +(\w+) = ")


def _describe(kind: type, name: str, member: object) -> str:
    """Say what a key holds: in the comment above its declaration, or the first line of its method's docstring."""
    if not isinstance(member, keys.Key):
        return (inspect.getdoc(member) or "").splitlines()[0]
    (comment,) = (text for text, key in COMMENTED.findall(inspect.getsource(kind)) if key == name)
    return f"{' '.join(line.strip().removeprefix('#: ') for line in comment.splitlines())}."


def _example(holder: object, name: str, member: object, samples: dict[str, object]) -> str | None:
    if isinstance(member, keys.KeyOf):
        (wanted,) = re.findall(r"\{(\w+)\}", member.ending)
        return str(getattr(holder, name)(samples.get(wanted, "w1")))
    if isinstance(member, keys.Key):
        return str(getattr(holder, name))
    if name.startswith("_") or not inspect.isfunction(member) or name == "partition":
        return None
    parameters = list(inspect.signature(member).parameters)[1:]
    return str(getattr(holder, name)(*(samples.get(parameter, "w1") for parameter in parameters)))


def _errors() -> str:
    rows = ["| error | code | meaning |", "|---|---|---|"]
    for name, member in vars(errors).items():
        if inspect.isclass(member) and issubclass(member, errors.SignalboxError):
            text = (member.__doc__ or "").strip().splitlines()
            rows.append(f"| `{name}` | {member.code} | {text[0] if text else read_remark(name)} |")
    rows += [
        f"| `{text.partition(': ')[0]}` | {code} | {text.partition(': ')[2]} |"
        for code, text in errors.NARROWER.items()
    ]
    return "\n".join(rows) + "\n"


def read_remark(name: str) -> str:
    """Return the remark beside an error in the tree at the top of errors.py."""
    found = re.search(rf"[├└]── {name}\b *(.*)", errors.__doc__ or "")
    return found.group(1).strip() if found else ""


def render() -> str:
    parts = [
        "# Engine and key reference",
        "Made from the source by `python -m tests.docs.engine_reference docs/engine-reference.md`; do not edit by "
        "hand.",
        "## Functions\n\nAny client that can say `FCALL` (or `FCALL_RO` for those flagged `no-writes`) drives the same "
        "machines. An `sb_` function takes one key: the root of the partition, which routes the call on a cluster. "
        "Each answers {BADARG, why} to another number of keys, and {FAULT, why} where it meets keys that the engine "
        "did not write.\n\n"
        '    FCALL sb_fire 1 sb:{activation:0} ATV-123:ABC entitle \'{"token":"MTOB1J"}\'\n\n'
        "The number of partitions is `HGET sb:machines <machine>`, and an instance is in partition crc16(id) % that. A "
        "function that takes the id of an instance may answer {MOVED, root} while its machine "
        "[grows](operate.md#grow-a-machine): make the same call at that root. {MOVING} is the same as *again, at "
        "once*: nothing was changed.\n\n"
        "The `sm_` functions do what the commands of the redis-state-machine module do, on keys of the caller's own "
        "([SM commands](sm-commands.md)).",
        *(_function(one) for one in read_headers() if not is_pattern_function(one)),
        "## Functions of patterns\n\nThe classes of `machines.patterns` call these ([patterns](patterns.md)). Each "
        "takes one key: the root of the pattern, from which the function makes all others that it touches.\n\n"
        "    FCALL sb_lock_peek 1 sb:lock:{scheduler} ''",
        *(_function(one) for one in read_headers() if is_pattern_function(one)),
        "## Keys\n\nAll keys of one partition share a hash tag. Nothing outside the engine may write them.",
        _keys(),
        "## Keys of patterns\n\nA pattern's name is its hash tag, with the number of the part where it has several. "
        "Nothing but the functions above may write them.",
        _pattern_keys(),
        "## Errors\n\nEvery error has a stable code and its facts as attributes (`error.facts()` gives both as JSON).",
        _errors(),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
