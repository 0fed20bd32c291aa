"""The glossary lists words that the product uses, and no page uses a private word.

A private word is one that a reader would have to learn and that the field has another name for. To refuse a new one,
add it to ``PRIVATE`` with the word to use in its place. The list also covers the texts of templates and the names of
files and classes.

Bodies are read as well: no identifier, comment or docstring has a private word, no function is named by a bare
participle, and the docstring of a function begins with a verb in the imperative.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.cases import for_each

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGES = ("machines", "dashboard")
TEMPLATES = ("templates", "machines/templates", "machines/instances/bulks", "dashboard/demo/examples/templates")

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
    r"\btracks?\b(?! active| of)": "state counts",
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


def read_words(text: str) -> set[str]:
    return set(text.split())


# Words that only bodies of files use in a private sense.
IN_BODIES = {
    r"\bpulls\b": "actions",
    r"\bhurried\b": "a renewal interval",
    r"\btold\b": "result, explanations",
    r"\b(?:some|any)body\b": "a noun: the author, a person, another process",
    r"\ball the same\b": "anyway",
}
# Fields of stored records, which programs in other languages read and write too: results of an explanation, and the
# heartbeat of a worker.
FIELDS = ("verdicts?", "in hand")
IRREGULAR = read_words(
    """
    begun bought bound broken brought built chosen done drawn driven fed forgotten found frozen given gone grown
    heard held hidden kept known laid led left lent lost made meant met paid said seen sent shown sold sought spent
    stuck sworn taken taught thought told torn understood undone unknown unwritten withdrawn withheld won worn
    written
    """
)
VAGUE = {"lose", "over", "rest", "say", "tell"}  # verbs of the worker that do not say their outcome
VERBS_IN_ED = read_words(
    """
    embed exceed feed need proceed seed shed speed succeed
    """
)
VERBS_IN_S = read_words(
    """
    access address bypass compress cross decompress discuss dismiss express focus guess pass press process suppress
    witness
    """
)
# What a docstring of a function does not begin with, beside participles and forms in -s.
NO_VERBS = read_words(
    """
    a adding after again all along also always an and another any anything arithmetic as at audit because before
    behind below beside besides between both but by cache composing control data decorator django dots during each
    either entry equality error event every everybody everything exactly failing false few field file for from
    generated graphviz half hash here how i id if in indented inside instance into it json just lamp less like
    machine magnitude many migration milliseconds more most much my near neither nested never new newest next no
    nobody node none nor not nothing now number of off on once one only or our out outline over part per primary
    queue raw ready redacted redis regression right root running safe service several side since small so some
    somebody something state stream string such that the their then there they this those three through to today
    true two under until up upon version what whatever when where whether which while who whoever whole whose why
    width with within without xstate you your zset
    """
)

GENERATED = {"engine-reference.md", "python-api.md"}  # made of the source
KEYS = {"keys.py", "pattern_keys.py"}  # a function is a key, named by what it holds; its docstring begins with the type
PUBLIC = {"Verdict"}  # a name of the patterns that programs import
RECORDS = {"Decoded", "Held", "Migrated", "Published", "Retired", "Sent", "Taken"}  # records that programs read
# Names of the engine that programs call, one of Django, and the one that every page imports.
KNOWN = {"emitted_logs", "unsettled_machines", "withdrawn_versions", "bound_data", "redacted_engine"}
RELATIVE = {"how", "what", "when", "where", "whether", "which", "who", "why"}
# What a function that belongs to one module is not named by: words that say neither what it does nor what it returns.
# Tables of operators and of elements of a format call their functions by the operator: these stay.
VAGUE_BEGINNINGS = read_words(
    """
    absolute again ahead alone always another around back bad beside between by deeper everywhere fewest fitting foreign
    further inner innermost kin lacking leaving listing longer nearest next once others overdue parting plain possible
    still straight there together touching unlike unfit until usual waiting way went widest
    """
)
OPERATORS = {"machines/engine/definitions/checks/types.py", "machines/engine/expressions/translator.py"}

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
    text = re.sub(r"{% columns (.*?) %}", r"\1", template.read_text(encoding="utf-8"))
    text = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", " ", text, flags=re.DOTALL)
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


def drop_strings(source: str, suffix: str) -> str:
    """Return identifiers, comments and docstrings of a module; of a template everything."""
    if suffix == ".html":
        return source
    comment = {".py": "#", ".lua": "--", ".js": "//"}[suffix]
    kept = rf'{comment}[^\n]*|"""(?:.|\n)*?"""|/\*(?:.|\n)*?\*/'
    strings = r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'" + ("|`[^`]*`" if suffix == ".js" else "")
    return re.sub(f"({kept})|{strings}", lambda found: found[1] or "0", source)


def find_private_in_body(file: Path) -> list[str]:
    found = []
    for number, line in enumerate(drop_strings(file.read_text(encoding="utf-8"), file.suffix).splitlines(), 1):
        words = re.sub(rf"\b(?:{'|'.join(FIELDS)})\b", " ", split_words(line))
        found += [f"line {number}: {match[0]!r}" for match in re.finditer("|".join(PRIVATE | IN_BODIES), words)]
    return found


def is_participle(name: str) -> bool:
    """Tell whether a name begins with a participle or as a relative clause."""
    word = name.strip("_")
    first = word.partition("_")[0]
    is_one = first in IRREGULAR | RELATIVE or (first.endswith("ed") and first not in VERBS_IN_ED)
    return word in VAGUE or (is_one and word not in KNOWN)


def begins_with_a_verb(docstring: str) -> bool:
    found = re.match(r"[A-Z][a-z]+(?=[\s.,:;])", docstring.strip())
    if found is None:
        return False
    word = found[0].lower()
    return (
        word not in NO_VERBS
        and (word in VAGUE or not is_participle(word))
        and (not word.endswith("s") or word in VERBS_IN_S)
    )


def walk_functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of a module, also inside others, without a look into expressions."""
    for part in ("body", "orelse", "finalbody", "handlers"):
        for statement in getattr(node, part, ()):
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                yield statement
            yield from walk_functions(statement)


@cache
def list_functions() -> list[tuple[str, str, str | None]]:
    """List the functions of the product that are no properties, columns or keys: place, name, docstring."""
    found = []
    for file in list_modules():
        if file.suffix == ".py" and file.name not in KEYS:
            for node in walk_functions(ast.parse(file.read_text(encoding="utf-8"))):
                if not any(re.search("property|setter|display", ast.unparse(one)) for one in node.decorator_list):
                    place = f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
                    found.append((place, node.name, ast.get_docstring(node)))
    return found


def test_each_term_stands_once_in_one_line():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    terms = [term for term, _ in TERM.findall(text)]
    assert len(terms) == len(set(terms)) == len(re.findall(r"^- ", text, re.MULTILINE))
    assert [term for term, meaning in read_terms().items() if len(term) + len(meaning) > 130] == []


def test_each_term_is_a_word_of_headings_labels_or_names():
    names = collect_names()
    unused = [term for term in read_terms() if not re.search(rf"\b{re.sub('[- ]', ' ?', term.lower())}", names)]
    assert unused == []


@for_each("page", [page for page in PAGES if page.name not in GENERATED])
def test_no_page_uses_a_private_word(page: Path):
    assert find_private(read_prose(page)) == []


def test_no_label_uses_a_private_word():
    found = {str(page.relative_to(ROOT)): find_private(read_label_text(page)) for page in list_templates()}
    assert {page: words for page, words in found.items() if words} == {}


def test_no_file_has_a_private_name():
    found = {str(file.relative_to(ROOT)): find_private(split_words(file.stem)) for file in list_modules()}
    assert {file: words for file, words in found.items() if words} == {}


def test_no_class_has_a_private_name():
    found = {name: find_private(split_words(name)) for name in list_classes()}
    assert {name: words for name, words in found.items() if words and name not in PUBLIC} == {}


def test_no_class_is_named_by_a_participle():
    """Errors of the engine are, and bodies of the API, whose names are in its schema."""
    found = []
    for file in list_modules():
        if file.suffix == ".py" and file.name not in ("api.py", "errors.py"):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            names = [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not is_error(node)]
            found += [
                f"{file}: {name}" for name in names if is_participle(name.lower()) and name not in RECORDS | {"When"}
            ]
    assert found == []


def is_error(node: ast.ClassDef) -> bool:
    return any(re.search("Error|Exception|Failed|BadInput|Conflict", ast.unparse(base)) for base in node.bases)


def test_no_body_has_a_private_word():
    found = {str(file.relative_to(ROOT)): find_private_in_body(file) for file in list_modules()}
    assert {file: words for file, words in found.items() if words} == {}


def test_no_function_is_named_by_a_participle():
    assert [place for place, name, _ in list_functions() if is_participle(name)] == []


def test_no_function_of_one_module_is_named_by_an_adverb_or_an_adjective():
    found = [place for place, name, _ in list_functions() if is_private(name) and is_vague(name)]
    assert [place for place in found if place.partition(":")[0] not in OPERATORS] == []


SCRIPT_FUNCTION = re.compile(
    r"^ *(?:export )?(?:default )?(?:async )?function\*? (\w+)|^  (?:static )?(?:async )?\*?#?(\w+)\([^;]*\) \{$", re.M
)
LUA_FUNCTION = re.compile(r"^ *(?:local )?function (?:\w+[.:])?(\w+)", re.M)
# A key by what it holds; functions of expressions by the name that they have in Python and ECMAScript.
NAMED_OTHERWISE = {"keys.lua", "builtins.lua", "ecmascript.lua", "sequences.lua"}
# What a part of the Studio, or the socket, is told: it gets shorter.
LISTENERS = {"answered", "changed", "lost", "moved", "reached", "unreached"}


def test_no_function_of_lua_or_of_a_script_is_named_by_a_participle():
    found = []
    for file in list_modules():
        rule = {".lua": LUA_FUNCTION, ".js": SCRIPT_FUNCTION}.get(file.suffix)
        if rule and file.name not in NAMED_OTHERWISE:
            names = ["".join(groups) for groups in map(as_groups, rule.findall(file.read_text(encoding="utf-8")))]
            names = [split_words(name).replace(" ", "_") for name in names]
            found += [f"{file}: {name}" for name in names if is_script_participle(name) and name not in LISTENERS]
    assert found == []


def as_groups(found: str | tuple[str, ...]) -> tuple[str, ...]:
    return (found,) if isinstance(found, str) else found


def is_script_participle(name: str) -> bool:
    return is_participle(name) and name not in VAGUE


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def is_vague(name: str) -> bool:
    return name.strip("_").partition("_")[0] in VAGUE_BEGINNINGS


def test_the_docstring_of_a_function_begins_with_a_verb():
    assert [place for place, _, text in list_functions() if text is not None and not begins_with_a_verb(text)] == []


@pytest.mark.parametrize("text", ["The doorbell rang.", "Pull the lever", "what came of it", "a veil over it"])
def test_a_private_word_is_found(text: str):
    assert find_private(text)


@pytest.mark.parametrize("text", ["At that moment", "The second-hand car", "a vertical line"])
def test_other_words_are_not(text: str):
    assert not find_private(text)


@for_each(
    "source, suffix, kept",
    [
        ('deed = "lever"  # why', ".py", "deed = 0  # why"),
        ('def f():\n    """Say "it"."""', ".py", 'def f():\n    """Say "it"."""'),
        ("local a = 'deed' -- it's", ".lua", "local a = 0 -- it's"),
        ("const a = `deed`; // why", ".js", "const a = 0; // why"),
        ('<p class="lever">', ".html", '<p class="lever">'),
    ],
)
def test_a_body_is_read_without_its_strings(source: str, suffix: str, kept: str):
    assert drop_strings(source, suffix) == kept


@for_each("name", ["listed", "_named", "_said", "done", "__kept", "_asked_again", "seen_by", "_why", "what_is_new"])
def test_a_participle_is_no_name_of_a_function(name: str):
    assert is_participle(name)


@for_each("name", ["list_instances", "embed", "_read", "is_closed", "need"])
def test_a_verb_is(name: str):
    assert not is_participle(name)


@for_each("name", ["_back", "_next_machines", "_between"])
def test_an_adverb_is_no_name_of_a_function(name: str):
    assert is_vague(name)


@for_each("text", ["The name.", "Of ``source``: page", "Reads it.", "Told once.", "``name``: x", "202."])
def test_a_docstring_begins_with_a_verb_in_the_imperative(text: str):
    assert [begins_with_a_verb(text), begins_with_a_verb(f"Return {text}")] == [False, True]
