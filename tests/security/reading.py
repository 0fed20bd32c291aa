"""What may stand in an answer: whether it is a page, a table, a drawing, an answer of the API or a header."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

from .world import Answer

ADDRESSES = {"href", "src", "action", "formaction", "xlink:href"}
RUNS = re.compile(r"[\s\x00-\x1f]*(javascript|data|vbscript|//)", re.IGNORECASE)
FORMULA = re.compile(r"\s*[=+\-@]")
ELEMENTS = {"svg", "g", "title", "desc", "path", "polygon", "polyline", "ellipse", "text", "tspan", "rect", "line", "a"}
ELEMENTS |= {"style", "defs", "marker", "circle", "use"}
ELSEWHERE = re.compile(r"\s*([a-z][a-z0-9+.-]*:|[/\\]{2})", re.IGNORECASE)
csv.field_size_limit(10**7)


class Elements(HTMLParser):
    """Finds what no template of ours writes: elements and attributes of the texts, handlers, addresses that run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.data = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        bad = tag.startswith("zq") or tag in ("style", "iframe", "object", "embed", "base")
        for name, value in named.items():
            bad |= name.startswith(("on", "zq")) or name in ("style", "srcdoc")
            bad |= name in ADDRESSES and RUNS.match(value or "") is not None
        if tag == "script" and named.get("type") != "application/json":
            bad |= not (named.get("src") or "").startswith(("/static/", "/admin/jsi18n/"))
        if bad:
            self.wrong.append(self.get_starttag_text() or tag)


def wrong_in_page(page: str) -> list[str]:
    parser = Elements()
    parser.feed(page)
    parser.close()
    return parser.wrong + (["a template was run"] if re.search(r"\b1337\b", page) else [])


def wrong_in_table(text: str) -> list[str]:
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    return [cell[:80] for cell in cells if FORMULA.match(cell) or (cell[:1] in "\t\r\n" and cell)]


def wrong_in_drawing(content: bytes) -> list[str]:
    wrong = []
    for element in ElementTree.fromstring(content).iter():
        tag = element.tag.rpartition("}")[2].lower()
        if tag not in ELEMENTS:
            wrong.append(tag)
        for name, value in element.attrib.items():
            if name.lower().startswith("on") or ("href" in name.lower() and not value.startswith("#")):
                wrong.append(f"{name}={value}")
    return wrong


def wrong_in_json(answer: Answer) -> list[str]:
    json.loads(answer.body)
    sniffed = answer.headers.get("X-Content-Type-Options") != "nosniff"
    return ["a browser may guess what it is"] if sniffed else []


def wrong_in_headers(headers: dict[str, str]) -> list[str]:
    wrong = [name for name, text in headers.items() if re.search(r"[\r\n\0]", f"{name}{text}") or "zq" in name.lower()]
    if "Set-Cookie" in headers and "zq" in headers["Set-Cookie"]:
        wrong.append("Set-Cookie")
    way = headers.get("Location", "")
    if ELSEWHERE.match(way.removeprefix("http://testserver")):
        wrong.append(f"Location: {way[:100]}")
    return wrong


def wrong_in(answer: Answer) -> list[str]:
    """Everything that is wrong with an answer to somebody who sent hostile texts, or looks at them."""
    wrong = wrong_in_headers(answer.headers)
    if answer.status >= 500:
        wrong.append(f"status {answer.status}")
    if answer.kind == "text/html":
        wrong += wrong_in_page(answer.text)
    elif answer.kind == "text/csv":
        wrong += wrong_in_table(answer.text)
    elif answer.kind == "image/svg+xml":
        wrong += wrong_in_drawing(answer.body)
    elif answer.kind.endswith("json"):
        wrong += wrong_in_json(answer)
    return wrong
