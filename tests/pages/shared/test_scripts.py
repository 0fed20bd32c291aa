"""The page scripts: native modules, small, without HTML strings; and markup without inline script or style."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.cases import for_each

ROOT = Path(__file__).parents[3]
SERVED = (ROOT / "static", ROOT / "machines/static")  # all under one address
SCRIPTS = sorted(
    [*(ROOT / "static/signalbox/js").rglob("*.js"), *(path for at in SERVED[1:] for path in at.rglob("*.js"))]
)
TEMPLATES = sorted([*(ROOT / "templates").rglob("*.html"), *(ROOT / "dashboard/demo").rglob("*.html")])
HTML_STRINGS = ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment", "eval("]
HTML_STRINGS += ["new Function", "setHTMLUnsafe", ".srcdoc", "javascript:"]
EXPORT = re.compile(r"^export (?:async )?(?:function\*?|class|const|let) (\w+)", re.M)
IMPORT = re.compile(r"(?:^import (?:.* from )?|\bimport\()\"([^\"]+)\"\)?;$", re.M)


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@for_each("script", SCRIPTS)
def test_a_script_is_short(script):
    assert len(script.read_text(encoding="utf-8").splitlines()) < 150


@for_each("script", SCRIPTS)
def test_a_script_makes_no_html_out_of_text(script):
    text = script.read_text(encoding="utf-8")
    assert [word for word in HTML_STRINGS if word in text] == []
    assert not re.search(r"""["'`]\s*<[a-z/!]""", text, re.I)


@for_each("script", SCRIPTS)
def test_what_a_script_imports_is_there(script):
    for name in IMPORT.findall(script.read_text(encoding="utf-8")):
        assert name.startswith("."), f"{name} is not from here"
        home = next(folder for folder in SERVED if script.is_relative_to(folder))
        address = (script.parent / name).resolve().relative_to(home)
        assert any((folder / address).is_file() for folder in SERVED), name


@for_each("script", SCRIPTS)
def test_a_script_sets_no_inline_style(script):
    assert not re.search(r"\.style\b|setAttribute\(\"style\"", script.read_text(encoding="utf-8"))


@for_each("template", TEMPLATES)
def test_a_template_has_no_inline_script_or_style(template):
    text = template.read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text, re.I)
    for tag in re.findall(r"<script[^>]*>", text):
        assert 'type="module" src="{% static' in tag


@for_each("template", TEMPLATES)
def test_a_template_escapes_whatever_it_is_given(template):
    text = template.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe\b|safeseq|autoescape off", text)
    attributes = re.findall(r"""\s[\w-]+=\{[{%]""", text)
    assert attributes == [], "an attribute without quotes"


@for_each("template", TEMPLATES)
def test_every_form_that_posts_carries_the_csrf_token(template):
    for form in re.findall(r"<form\b.*?</form>", template.read_text(encoding="utf-8"), re.S):
        if 'method="post"' in form:
            assert "{% csrf_token %}" in form


def test_no_two_scripts_export_one_name():
    exported = Counter(name for script in SCRIPTS for name in EXPORT.findall(script.read_text(encoding="utf-8")))
    assert "throttle" in exported
    assert [name for name, times in exported.items() if times > 1] == []


def test_every_request_goes_through_the_one_fetcher():
    asking = [
        path.name for path in SCRIPTS if re.search(r"\bfetch\(|XMLHttpRequest|sendBeacon", path.read_text("utf-8"))
    ]
    assert asking == ["fetcher.js"]


def test_every_entry_is_used_by_a_page():
    pages = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES)
    shared = {name for script in SCRIPTS for name in IMPORT.findall(script.read_text(encoding="utf-8"))}
    for script in (ROOT / "static/signalbox/js").rglob("*.js"):
        address = script.relative_to(ROOT / "static").as_posix()
        assert address in pages or any(name.endswith(f"/{script.name}") for name in shared), (
            f"{address} is used by nothing"
        )


FOLDERS = ("static/signalbox/js", "static/signalbox/css", "templates/signalbox")
MOST = 15  # files of one folder that a reader takes in at a glance


@for_each("top", FOLDERS)
def test_no_folder_holds_more_than_fifteen_files(top):
    folders = Counter(path.parent for path in (ROOT / top).rglob("*") if path.is_file())
    assert {_named(folder): number for folder, number in folders.items() if number > MOST} == {}


def test_every_region_of_a_page_is_renewed_by_a_script():
    """One that is not stays as it was when the page came, under a lamp that says Live."""
    renewed = set(re.findall(r'"([a-z-]+)"', "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)))
    texts = [path.read_text(encoding="utf-8") for path in TEMPLATES]
    renewed |= {
        name for text in texts for names in re.findall(r'data-follow="([^"]+)"', text) for name in names.split()
    }
    regions = {name for text in texts for name in re.findall(r'data[-_]region="([a-z-]+)"', text)}
    assert "duties" in regions
    assert regions <= renewed
