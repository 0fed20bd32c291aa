"""Writes XML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ATTRIBUTE = str.maketrans({"&": "&amp;", "<": "&lt;", '"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


@dataclass(slots=True)
class Tag:
    """An element: with elements inside, or with text. Attributes that are None are left out."""

    name: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Tag] = field(default_factory=list)
    text: str = ""

    def lines(self, indent: str = "") -> Iterator[str]:
        written = "".join(
            f' {name}="{value.translate(_ATTRIBUTE)}"' for name, value in self.attributes.items() if value is not None
        )
        if self.text:
            yield f"{indent}<{self.name}{written}>{self.text.translate(_TEXT)}</{self.name}>"
        elif not self.children:
            yield f"{indent}<{self.name}{written}/>"
        else:
            yield f"{indent}<{self.name}{written}>"
            for child in self.children:
                yield from child.lines(indent + "  ")
            yield f"{indent}</{self.name}>"


def render(root: Tag) -> str:
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', *root.lines()]) + "\n"
