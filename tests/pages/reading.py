"""Reading a page as a person does: its text, its links, its forms."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

VOID = {"input", "meta", "link", "br", "hr", "img"}


class Element:
    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.inside: list[Element | str] = []

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def all(self, tag: str = "", **wanted: str) -> list[Element]:
        """Elements inside with these attributes; ``class_`` names one class, ``data_x`` is ``data-x``."""
        found: list[Element] = []
        for part in self.inside:
            if isinstance(part, Element):
                if (not tag or part.tag == tag) and all(part.has(name, value) for name, value in wanted.items()):
                    found.append(part)
                found += part.all(tag, **wanted)
        return found

    def one(self, tag: str = "", **wanted: str) -> Element:
        found = self.all(tag, **wanted)
        assert len(found) == 1, f"{len(found)} of {tag} {wanted}"
        return found[0]

    def has(self, name: str, value: str) -> bool:
        name = name.rstrip("_").replace("_", "-")
        held = self.attributes.get(name)
        return held is not None and (value in held.split() if name == "class" else held == value)

    @property
    def text(self) -> str:
        parts = [part if isinstance(part, str) else part.text for part in self.inside]
        return re.sub(r"\s+", " ", "".join(parts)).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("document", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].inside.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].inside.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def read(response: Any) -> Element:
    """The page of a response. Fails when an element is not closed where it should be."""
    reader = _Reader()
    reader.feed(response.content.decode())
    reader.close()
    assert [element.tag for element in reader.open] == ["document"]
    return reader.open[0]


def fields(form: Element) -> dict[str, str]:
    """What a browser would send of a form as it stands, without pressing one of several buttons."""
    inputs = [e for e in form.all("input") if "name" in e.attributes and not _unticked(e)]
    sent = {e["name"]: e.attributes.get("value", "") for e in inputs}
    sent |= {e["name"]: e.text for e in form.all("textarea")}
    for select in form.all("select"):
        chosen = [option for option in select.all("option") if "selected" in option.attributes]
        if "multiple" in select.attributes and not chosen:
            continue
        if options := chosen or select.all("option"):
            sent[select["name"]] = options[0]["value"]
    return {name: value for name, value in sent.items() if name != "csrfmiddlewaretoken"}


def _unticked(element: Element) -> bool:
    return element.attributes.get("type") == "checkbox" and "checked" not in element.attributes
