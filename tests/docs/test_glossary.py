"""The glossary lists words that the product uses, and no page uses a private word.

A private word is one that a reader would have to learn and that the field has another name for. To refuse a new one,
add it to ``PRIVATE`` with the word to use in its place. The list also covers the texts of templates and the names of
files and classes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGES = ("machines", "dashboard")
TEMPLATES = ("templates", "machines/templates", "machines/bulks", "dashboard/examples/templates")

PRIVATE = {
    r"\bveils?\b": "redaction",
    r"\bsight\b": "redacted, or visible",
    r"\bears\b": "subscriber",
    r"\bpatrols?\b": "session monitor",
    r"\bhouse\b(?! style)": "maintenance, background duties, or the product's name",
    r"\bkeeps? house\b": "background duties",
    r"\bcrews?\b": "executor",
    r"\bdoorbells?\b": "bell",
    r"\bin hand\b": "running, in flight",
    r"\bsought\b": "filter",
    r"\btracks\b": "state counts",
    r"\bpaint(?:ed|ing|s)?\b": "diagram overlay, with colours",
    r"\bmoments\b": "times, steps",
    r"\bverdicts?\b": "result, decision",
    r"\blevers?\b": "action",
    r"\bdeeds?\b": "audit entry",
    r"\b(?:came|comes|become) of (?:it|them)\b": "result, outcome",
    r"\bgone through\b": "processed",
    r"\bturn round\b": "reverse order",
    r"\bpatience\b": "time limit",
    r"\bledgers?\b": "chart writes",
    r"\bagendas?\b": "due times, read schedule",
    r"\btroubles\b": "failures",
    r"\blookouts?\b": "poll",
    r"\bwhoever\b": "a noun: the caller, the account, the operator",
}

GENERATED = {"engine-reference.md", "python-api.md"}  # made of the source
# Files whose names are still private words, and classes: each set only ever shrinks.
FILES_NOT_YET: set[str] = set()
CLASSES_NOT_YET = {"Lever", "Troubles"}
PUBLIC = {"Verdict"}  # a name of the patterns that programs import

PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md"]
TERM = re.compile(r"^- \*\*([^*]+)\*\*: (.+)$", re.MULTILINE)


def read_terms() -> dict[str, str]:
    return dict(TERM.findall((DOCS / "glossary.md").read_text(encoding="utf-8")))


def read_prose(page: Path) -> str:
    """Return a page without code and without the targets of links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\]\([^)]*\)|`[^`\n]*`", "", text)


def read_label_text(template: Path) -> str:
    """Return what a reader of the page sees: no tags, no attributes, no template code."""
    text = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", " ", template.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)


def list_templates() -> list[Path]:
    return [page for folder in TEMPLATES for page in sorted((ROOT / folder).rglob("*.html"))]


def list_modules() -> list[Path]:
    """Return the modules of the product in Python, Lua and JavaScript, and its templates."""
    found = [file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.suffix in {".py", ".lua"}]
    found += [*(ROOT / "static" / "signalbox" / "js").rglob("*.js"), *(ROOT / "templates").rglob("*.html")]
    return sorted(file for file in found if "migrations" not in file.parts and file.stem != "__init__")


def list_classes() -> Iterator[str]:
    for module in list_modules():
        if module.suffix == ".py":
            tree = ast.parse(module.read_text(encoding="utf-8"))
            yield from (node.name for node in tree.body if isinstance(node, ast.ClassDef))


def split_words(name: str) -> str:
    """Return the words of an identifier: ``QueueDepth`` and ``queue_depth`` are "queue depth"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name).lower()


def find_private(text: str) -> list[str]:
    return [f"{found[0]!r}: say {word}" for rule, word in PRIVATE.items() if (found := re.search(rule, text, re.I))]


def collect_names() -> str:
    """Return the words of headings, labels, modules and classes, one name a line."""
    names = []
    for page in PAGES:
        if page.name != "glossary.md":
            names += re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    names += [read_label_text(template) for template in list_templates()]
    names += [split_words(name) for module in list_modules() for name in (module.stem, module.parent.name)]
    names += [split_words(name) for name in list_classes()]
    return re.sub(r"[-\s]+", " ", "\n".join(names)).lower()


def test_each_term_stands_once_in_one_line():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    terms = [term for term, _ in TERM.findall(text)]
    assert len(terms) == len(set(terms)) == len(re.findall(r"^- ", text, re.MULTILINE))
    assert [term for term, meaning in read_terms().items() if len(term) + len(meaning) > 130] == []


def test_each_term_is_a_word_of_headings_labels_or_names():
    names = collect_names()
    unused = [term for term in read_terms() if not re.search(rf"\b{re.sub('[- ]', ' ?', term.lower())}", names)]
    assert unused == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in GENERATED], ids=lambda p: p.name)
def test_no_page_uses_a_private_word(page: Path):
    assert find_private(read_prose(page)) == []


def test_no_label_uses_a_private_word():
    found = {str(page.relative_to(ROOT)): find_private(read_label_text(page)) for page in list_templates()}
    assert {page: words for page, words in found.items() if words} == {}


def test_no_file_has_a_private_name():
    found = {str(file.relative_to(ROOT)): find_private(split_words(file.stem)) for file in list_modules()}
    assert {file: words for file, words in found.items() if words and file not in FILES_NOT_YET} == {}


def test_no_class_has_a_private_name():
    found = {name: find_private(split_words(name)) for name in list_classes()}
    assert {name: words for name, words in found.items() if words and name not in CLASSES_NOT_YET | PUBLIC} == {}


def test_no_file_of_the_functions_library_has_a_private_name_or_comment():
    found = {}
    for file in (ROOT / "machines/engine/lua").rglob("*.lua"):
        comments = " ".join(re.findall(r"-- (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE))
        found[file.name] = find_private(split_words(file.stem)) + find_private(comments)
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize("text", ["The doorbell rang.", "Pull the lever", "what came of it", "a veil over it"])
def test_a_private_word_is_found(text: str):
    assert find_private(text)


@pytest.mark.parametrize("text", ["At that moment", "The second-hand car", "a vertical line"])
def test_other_words_are_not(text: str):
    assert not find_private(text)
