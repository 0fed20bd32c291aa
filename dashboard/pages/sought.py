"""What a list of instances is searched by: an indexed data field, and a text for a value, a prefix or a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from machines.engine import BadInput
from machines.engine.definitions import Outline

IDS = "instance.id"
HINT = "a value, a beginning like ATV-*, or a range like 5..10"


@dataclass(frozen=True, slots=True)
class Sought:
    """``by`` is a field, empty where nothing is searched; ``text`` as it was typed; ``choices``: the indexed fields."""

    by: str = ""
    text: str = ""
    terms: tuple[tuple[str, Any], ...] = ()
    choices: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.by)

    @classmethod
    def asked(cls, request: HttpRequest, outline: Outline) -> Sought:
        """From ``?by=serial&is=ATV-*``.

        Raises BadInput for a field that is not indexed, and for a text that is no value of it.
        """
        by, text = request.GET.get("by", ""), request.GET.get("is", "").strip()
        if not by or not text:
            return cls(choices=outline.index)
        if by not in outline.index:
            listed = ", ".join(outline.index) or "none"
            raise BadInput(f"instances are not found by {by[:100]!r}; the machine's indexed fields: {listed}")
        if by == IDS:
            return cls(by, text, (("id_prefix", text.removesuffix("*") or text),), outline.index)
        types = next(field.types for field in outline.data if field.name == by)
        return cls(by, text, (("where", {by: condition(text, types)}),), outline.index)


def condition(text: str, types: tuple[str, ...]) -> Any:
    """As ``Engine.find`` takes it: a number where the field holds numbers and the text is one."""
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    numbers = "integer" in types or "number" in types
    if numbers and ".." in text:
        low, high = (_number(end) for end in text.split("..", 1))
        ends = {"ge": low, "le": high}
        if low is not None or high is not None:
            return {name: end for name, end in ends.items() if end is not None}
    elif numbers and (number := _number(text)) is not None:
        return number
    if "string" in types:
        return {"prefix": text[:-1]} if len(text) > 1 and text.endswith("*") else text
    raise BadInput(f"{text[:100]!r} is no value of that field; write {HINT}")


def _number(text: str) -> int | float | None:
    """None for an end that is left open, or is none."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
