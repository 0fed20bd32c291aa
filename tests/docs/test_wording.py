"""Pages say things in the words of the field: each phrase of the list has a common one in its place.

The list covers what a person reads: texts and readable attributes of templates, and texts in scripts and in the Python
code of pages, forms, the admin and services; a lower-case word alone is a name of the code. To refuse another
phrase, add it with the one to use.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import for_each

from .test_glossary import ROOT, list_templates

pytestmark = pytest.mark.pure

#: phrase -> what to say
WORDING = {
    r"needs a person": "Needs attention",
    r"first five": "Top 5",
    r"turn (?:it )?round": "Reverse order",
    r"do something with": "Bulk action on",
    r"find them and ask each": "Preview",
    r"what (?:came|becomes?) of (?:it|them)": "Results",
    r"would be taken": "would succeed",
    r"gone through": "processed",
    r"it goes on": "Resumed",
    r"set the pace": "Update rate limit",
    r"(?:instances|jobs) a second at most": "max instances per second",
    r"levers?": "Actions",
    r"can be taken": "available",
    r"(?:not )?listened for": "not accepted in this state",
    r"all the same": "anyway",
    r"leave it\b": "Cancel",
    r"further fields": "Additional fields",
    r"lit\b": "highlighted",
    r"strong lines?": "bold: available transitions",
    r"(?:longest )?in it for(?! longer)": "time in state",
    r"longest in it": "oldest",
    r"last acted": "last actor",
    r"make a link": "Share",
    r"none now": "No results",
    r"direct it": "Manage",
    r"take no more(?! jobs)": "Quiet",
    r"stop it\b": "Stop",
    r"in hand": "running",
    r"keeps house": "Background duties",
    r"waiting for the database": "Pending writes",
    r"all its attempts": "with its attempts reset",
    r"it was given none": "No payload",
    r"what it died of": "Error",
    r"right to a factor": "approximate (±2×)",
    r"each counted once": "unique",
    r"read as:": "Format",
    r"asks for a second person": "Needs approval",
    r"as painted": "with colours",
}
RULES = {re.compile(rf"(?<![\w-]){phrase}", re.IGNORECASE): word for phrase, word in WORDING.items()}
SCRIPTS = ROOT / "static" / "signalbox" / "js"
PYTHON = ("dashboard", "machines/instances", "machines/people")
READ = r"(?:title|aria-label|placeholder|alt|value|data-label|data-empty)"  # attributes that a person reads


def find_old_phrases(text: str) -> list[str]:
    found = ((rule.search(text), word) for rule, word in RULES.items())
    return [f"{match[0]!r}: say {word}" for match, word in found if match]


def is_text(part: str) -> bool:
    return " " in part or part[:1].isupper()


def read_template(page: Path) -> str:
    """Return the texts of a template and of its readable attributes; the parts of a block tag that are quoted, too."""
    text = re.sub(r"{#.*?#}|{%-?\s*comment.*?endcomment\s*%}", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    tags = re.findall(r"{%.*?%}|{{.*?}}", text, re.DOTALL)
    quoted = [part for tag in tags for part in re.findall(r'"([^"]*)"', tag) if is_text(part)]
    text = re.sub(r"{%.*?%}|{{.*?}}", " ", text, flags=re.DOTALL)
    attributes = re.findall(rf'\b{READ}="([^"]*)"', text)
    body = text
    body = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", body, flags=re.DOTALL)
    return re.sub(r"\s+", " ", "\n".join([body, *attributes, *quoted]))


def read_script(file: Path) -> str:
    text = re.sub(r"^\s*(?://|\*|/\*).*$|\s// .*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return "\n".join(part for parts in re.findall(r'"([^"\n]*)"|`([^`]*)`', text) for part in parts if is_text(part))


def read_texts(file: Path) -> Iterator[str]:
    """Yield the texts of a Python module that are no docstrings: what stands alone is documentation."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in alone
            and is_text(node.value)
        ):
            yield node.value


def list_python() -> list[Path]:
    files = [file for folder in PYTHON for file in sorted((ROOT / folder).rglob("*.py"))]
    return [file for file in files if not {"migrations", "examples"} & set(file.parts)]


@for_each("page", list_templates)
def test_a_template_says_it_in_common_words(page: Path):
    assert find_old_phrases(read_template(page)) == []


@for_each("file", lambda: sorted(SCRIPTS.rglob("*.js")))
def test_a_script_says_it_in_common_words(file: Path):
    assert find_old_phrases(read_script(file)) == []


@for_each("file", list_python)
def test_python_says_it_in_common_words(file: Path):
    assert find_old_phrases("\n".join(read_texts(file))) == []


@for_each("phrase", ["Find them and ask each", "Levers", "longest in it", "12 gone through", "It goes on"])
def test_an_old_phrase_is_found(phrase: str):
    assert find_old_phrases(f"<b>{phrase}</b>")


@for_each("text", ["While it runs", "split", "clever", "Stop itself", "a limit of 20 a second"])
def test_other_texts_are_not(text: str):
    assert find_old_phrases(text) == []
