"""Reading a page as a person does: its text, its links, its forms."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

VOID = {"input", "meta", "link", "br", "hr", "img"}
RAW = {"script", "style"}
TOKEN = re.compile(
    r"""<!--.*?-->|<![^>]*>|<(/?)([a-zA-Z][\w-]*)((?:[^"'>/]++|"[^"]*"|'[^']*'|/(?!>))*)(/?)>|[^<]+""", re.DOTALL
)
ATTRIBUTE = re.compile(r"""([^\s="'/>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")


class Element:
    def __init__(self, tag: str, attributes: dict[str, str], page: list[Element]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.inside: list[Element | str] = []
        self._page = page
        page.append(self)
        self._start = self._end = len(page)

    def close(self) -> None:
        """Take what was read since its start for what is inside."""
        self._end = len(self._page)

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def all(self, tag: str = "", **wanted: str) -> list[Element]:
        """Elements inside with these attributes; ``class_`` names one class, ``data_x`` is ``data-x``."""
        parts = self._page[self._start : self._end]
        found = [part for part in parts if part.tag == tag] if tag else parts
        return [part for part in found if all(part.has(*pair) for pair in wanted.items())]

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


def read(response: Any) -> Element:
    """The page of a response. Fails when an element is not closed where it should be."""
    return read_text(response.content.decode())


def read_text(text: str) -> Element:
    place = 0
    opened = [Element("document", {}, [])]
    while place < len(text):
        token = TOKEN.match(text, place)
        assert token, f"no HTML: {text[place : place + 80]}"
        place = token.end()
        closes, tag, attributes, closed = token.groups()
        if tag is None:
            if token[0][0] != "<":
                opened[-1].inside.append(unescape(token[0]))
        elif closes:
            assert opened[-1].tag == tag.lower(), f"</{tag}> closes <{opened[-1].tag}>"
            opened.pop().close()
        else:
            element = Element(tag.lower(), _attributes(attributes), opened[-1]._page)
            opened[-1].inside.append(element)
            if element.tag in RAW:
                end = text.index(f"</{element.tag}>", place)
                element.inside.append(text[place:end])
                place = end
            if not closed and element.tag not in VOID:
                opened.append(element)
    assert [element.tag for element in opened] == ["document"]
    opened[0].close()
    return opened[0]


def _attributes(text: str) -> dict[str, str]:
    return {name.lower(): unescape("".join(values)) for name, *values in ATTRIBUTE.findall(text)}


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
