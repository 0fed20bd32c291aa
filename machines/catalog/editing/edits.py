"""Edits of a text, JSON or YAML, that make it say another value. What stays as it is keeps its form, to the space.

An edit is an offset from, an offset to, and what stands there then; offsets are those of Python.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .places import Path, Place, Places

Edit = tuple[int, int, str]
GONE: Final = object()  # stands for a value that is removed
UNIT: Final = "  "  # of a margin
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def apply(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with edits in it, which overlap nowhere."""
    for start, end, words in reversed(edits):
        text = text[:start] + words + text[end:]
    return text


def rewrite(places: Places, old: Any, new: Any, renamed: Mapping[Path, str]) -> list[Edit]:
    """Return the edits that turn a document, ``old`` in its text, into ``new``, in the order of the text. ``new`` has
    the keys and the items of ``old``, those to be removed as ``GONE``, and new ones after them. ``renamed``: path in
    ``old`` -> new key."""
    return sorted(_rewrite(places, old, new, (), renamed), key=lambda edit: edit[:2])


def _rewrite(places: Places, old: Any, new: Any, path: Path, renamed: Mapping[Path, str]) -> Iterator[Edit]:
    if old == new and not any(one[: len(path)] == path for one in renamed):
        return
    place = places.found[path]
    if path in renamed and place.key is not None:
        yield (*place.key, write_text(places, place.key[0], renamed[path]))
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() <= new.keys():
        yield from _rewrite_members(places, old, new, list(old), place, renamed)
    elif isinstance(old, list) and isinstance(new, list) and len(new) >= len(old):
        yield from _rewrite_members(places, old, new, list(range(len(old))), place, renamed)
    elif isinstance(new, list) and new and new[0] == old and place.inline:
        yield (place.value[0], place.value[0], "[")
        yield (place.value[1], place.value[1], "".join(f", {_dump(value)}" for value in new[1:]) + "]")
    elif old != new:
        yield _replace(places, place, new)


def _rewrite_members(
    places: Places, old: Any, new: Any, keys: Sequence[str | int], place: Place, renamed: Mapping[Path, str]
) -> Iterator[Edit]:
    is_list = place.kind == "list"
    added = new[len(old) :] if is_list else {key: value for key, value in new.items() if key not in old}
    if keys and all(new[key] is GONE for key in keys):
        end = place.value[1] if place.inline else places.end_of_line(place.value[1])
        yield (place.value[0], end, _dump(added))
        return
    yield from _remove(places, [(*place.path, key) for key in keys], [new[key] is GONE for key in keys])
    for key in keys:
        if new[key] is not GONE:
            yield from _rewrite(places, old[key], new[key], (*place.path, key), renamed)
    if added and is_list:
        yield insert_lines(places, place, [[_dump(value)] for value in added], last=True)
    elif added and (edit := insert_keys(places, place.path, added, last=True)):
        yield edit


def _replace(places: Places, place: Place, new: Any) -> Edit:
    """Replace a value, of a text only the part that differs."""
    start, end = place.value
    former = places.text[start:end]
    words = write_text(places, start, new) if isinstance(new, str) and place.kind == "scalar" else _dump(new)
    same = 0
    while same < min(len(former), len(words)) and former[same] == words[same]:
        same += 1
    tail = 0
    while tail < min(len(former), len(words)) - same and former[-1 - tail] == words[-1 - tail]:
        tail += 1
    return (start + same, end - tail, words[same : len(words) - tail])


def _remove(places: Places, paths: list[Path], gone: list[bool]) -> Iterator[Edit]:
    """Remove members, not all of them, with what separates them from those that stay."""
    members = [places.found[path] for path in paths]
    at = 0
    while at < len(members):
        first = at
        while at < len(members) and gone[at]:
            at += 1
        if at > first:
            if not first:
                yield (members[0].whole[0], members[at].whole[0], "")
            elif not places.found[paths[0][:-1]].inline:
                yield (
                    places.end_of_line(members[first - 1].whole[1]),
                    places.end_of_line(members[at - 1].whole[1]),
                    "",
                )
            else:
                yield (members[first - 1].whole[1], members[at - 1].whole[1], "")
        at += 1


def write_text(places: Places, at: int, text: str) -> str:
    """Write a text in the quotes of the one that stands at an offset."""
    quote = places.text[at : at + 1]
    if quote == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False) if quote == '"' else _write_key(text)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_key(key: str) -> str:
    return key if _NAME.fullmatch(key) and key not in ("true", "false", "null") else _dump(key)


def insert_keys(places: Places, path: Path, added: Mapping[str, Any], *, last: bool = False) -> Edit | None:
    """Return new keys of the object at ``path``: its first ones, or its ``last``, written as the text around is."""
    around = places.found.get(path)
    if around is None or around.kind != "object":
        return None
    members = [[write_member(key, value, inline=around.inline)] for key, value in added.items()]
    return insert_lines(places, around, members, last=last)


def write_member(key: str, value: Any, *, inline: bool) -> str:
    return f"{json.dumps(key) if inline else _write_key(key)}: {_dump(value)}"


def insert_lines(places: Places, around: Place, members: Sequence[Sequence[str]], *, last: bool) -> Edit:
    """Return new members of an object or a list, each as its lines without the margin that they get."""
    children = places.children(around.path)
    if around.inline:
        return _insert_in_brackets(places, around, children, members, last)
    start = children[0].whole[0]
    margin = " " * (start - (places.text.rfind("\n", 0, start) + 1))
    if around.kind == "list":
        margin, members = margin[2:], [[f"- {first}", *(f"  {line}" for line in rest)] for first, *rest in members]
    if last:
        end = places.end_of_line(children[-1].whole[1])
        return (end, end, "".join(f"\n{margin}{_join(lines, margin)}" for lines in members))
    return (start, start, "".join(f"{_join(lines, margin)}\n{margin}" for lines in members))


def _join(lines: Sequence[str], margin: str) -> str:
    return "\n".join([lines[0], *(margin + line if line else "" for line in lines[1:])])


def _insert_in_brackets(
    places: Places, around: Place, children: list[Place], members: Sequence[Sequence[str]], last: bool
) -> Edit:
    text, (start, end) = places.text, around.value
    margin = places.margin(around.whole[0])
    if not children:
        closed = text[end - 1 : end] in ("}", "]") and end - 1 > start
        words = ", ".join(_join(lines, margin) for lines in members)
        if any(len(lines) > 1 for lines in members):
            inner = margin + UNIT
            words = ",".join(f"\n{inner}{_join(lines, inner)}" for lines in members) + f"\n{margin}"
        return (start + 1, end - 1 if closed else start + 1, words)
    gap = text[start + 1 : children[0].whole[0]]
    between = gap if gap.strip() == "" and gap else " "
    if "\n" in between:
        margin = between.rpartition("\n")[2]
    written = [_join(lines, margin) for lines in members]
    if last:
        stop = children[-1].whole[1]
        return (stop, stop, "".join(f",{between}{words}" for words in written))
    return (start + 1, start + 1, "".join(f"{between}{words}," for words in written) + ("" if between == gap else " "))


def fill_block(places: Places, around: Place, members: Sequence[Sequence[str]]) -> Edit:
    """Return members of an object of YAML that is empty, ``{}``, as lines below its key."""
    start, end = around.value
    margin = places.margin(around.whole[0]) + UNIT
    start = len(places.text[:start].rstrip(" "))
    return (start, end, "".join(f"\n{margin}{_join(lines, margin)}" for lines in members))
