"""The site of docs, built by `make docs` from the Markdown of the repository, at the same paths.

The menu is docs/start-here.md: its sections, and the pages that each links to, in order. A page that it lacks is a
warning of Sphinx, and so an error. Pages of a folder with a README.md are not in the menu but on that page: a hundred
decisions in the menu of each page would make a build three times as long.
"""

import json
import re
import shutil
from pathlib import Path

from docutils import nodes
from packaging.version import InvalidVersion, Version
from pygments.lexers.special import TextLexer

ROOT = Path(__file__).resolve().parents[2]
DOOR = "docs/start-here"
LINK = re.compile(r"\]\(([^):#]+)\)")

project = "Signalbox"
release = re.search(r'__version__ = "(.+)"', (ROOT / "machines/__init__.py").read_text(encoding="utf-8"))[1]
summary = re.search(r'^description = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)[1]
html_title = f"Signalbox {release}"

extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["README.md", "CHANGELOG.md", "benchmarks/*.md", "deploy/README.md", "docs/*.md", "docs/*/*.md"]
exclude_patterns = [".*", "**/node_modules", "build", "dist", "dashboard", "machines", "static", "templates", "tests"]
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
suppress_warnings = ["misc.highlighting_failure"]  # code with `...` in it, and JSON with comments

html_theme = "furo"
html_copy_source = False
html_static_path = ["static"]
html_favicon = "../../static/signalbox/img/signalbox.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
templates_path = ["templates"]
sidebar = ("sidebar/search", "sidebar/scroll-start", "sidebar/navigation", "sidebar/scroll-end")
html_sidebars = {"**": [f"{part}.html" for part in ("sidebar/brand", "versions", *sidebar)]}
html_theme_options = {  # colours of the room: static/signalbox/css/shared/tokens.css
    f"{mode}_css_variables": {"color-brand-primary": link, "color-brand-content": link, "color-brand-visited": link}
    for mode, link in (("light", "#0a5a70"), ("dark", "#74c7dd"))
}


def read_menu() -> dict[str, list[str]]:
    """Return section -> pages that it links to, of the page that begins all."""
    text = (ROOT / f"{DOOR}.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## ([^\n]+)(.*?)(?=^## |\Z)", text, re.M | re.S)
    folder = (ROOT / DOOR).parent
    return {
        title: [
            str((folder / link).resolve().relative_to(ROOT).with_suffix(""))
            for link in LINK.findall(body)
            if link.endswith(".md")
        ]
        for title, body in sections
    }


def add_menu(app, page: str, source: list[str]) -> None:
    """Add the menu to the first page, and to a README what it does not link to: the Markdown itself needs neither."""
    folder = (ROOT / page).parent
    if page == root_doc:
        for title, pages in {"": [DOOR], **read_menu()}.items():
            lines = [
                "```{toctree}",
                ":hidden:",
                f":caption: {title}" if title else "",
                "",
                *(f"/{one}" for one in pages),
            ]
            source[0] += "\n\n" + "\n".join(lines) + "\n```\n"
    elif page.endswith("/README"):
        others = sorted({one.name for one in folder.glob("*.md")} - {"README.md", *LINK.findall(source[0])})
        source[0] += "\n\n" + "\n".join(f"- [](./{name})" for name in others)
    elif folder != ROOT and (folder / "README.md").exists():
        source[0] = f"---\norphan: true\n---\n{source[0]}"


def name_markdown(app, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Say in the head of a page where its Markdown is."""
    if doctree is not None:
        name = page.rpartition("/")[2]
        context["metatags"] += f'\n<link rel="alternate" type="text/markdown" href="{name}.md">'


def finish(app, error: Exception | None) -> None:
    """Write the Markdown beside the pages, llms.txt, and what leads from one version of the site to another."""
    if error is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    for page in app.env.found_docs:
        copy_markdown(page, site)
    (site / "index.html").write_text(redirect(app.builder.get_target_uri(root_doc)), encoding="utf-8")
    (site / "llms.txt").write_text(list_pages(app.env), encoding="utf-8")
    names = (one.parent.name for one in site.parent.glob("*/llms.txt"))
    versions = sorted(filter(is_version, names), key=Version, reverse=True)
    (site.parent / "versions.js").write_text(f"window.versions = {json.dumps(versions)};\n", encoding="utf-8")
    (site.parent / "index.html").write_text(redirect(f"{versions[0]}/index.html"), encoding="utf-8")


def is_version(name: str) -> bool:
    """Tell whether a folder beside the site is named like a version; others are left alone."""
    try:
        Version(name)
    except InvalidVersion:
        return False
    return True


def copy_markdown(page: str, site: Path) -> None:
    """Copy a page, and the files that it links to, to the same places."""
    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    linked = {((ROOT / page).parent / link).resolve() for link in LINK.findall(text)}
    for file in [ROOT / f"{page}.md", *(one for one in linked if one.suffix != ".md" and one.is_file())]:
        target = site / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def redirect(target: str) -> str:
    refresh = f'<meta http-equiv="refresh" content="0; url={target}">'
    return f'<!doctype html><meta charset="utf-8">{refresh}<title>Signalbox</title><a href="{target}">Signalbox</a>\n'


def list_pages(env) -> str:
    """List all pages as llmstxt.org has it: the sections of the menu, then the pages below those of the menu."""
    menu = {"Start here": [root_doc, DOOR], **read_menu()}
    menu["More"] = sorted(env.found_docs - {page for pages in menu.values() for page in pages})
    parts = [f"# {project}\n\n> {summary} Version {release}.\n"]
    for title, pages in menu.items():
        lines = [f"- [{env.titles[page].astext()}]({page}.md): {summarize(env, page)}\n" for page in pages]
        parts.append(f"## {title}\n\n{''.join(lines)}")
    return "\n".join(parts)


def summarize(env, page: str) -> str:
    """Return the first sentence of a page, but for the one that says what makes it."""
    texts = [one.astext() for one in env.get_doctree(page).findall(nodes.paragraph) if one.parent.tagname == "section"]
    text = next(one for one in texts if "do not edit" not in one).removeprefix("Decision. ").replace("\n", " ")
    return re.split(r"(?<=\.)\s|:$|: ", text)[0]


def setup(app) -> None:
    app.add_lexer("redis-cli", TextLexer)
    app.connect("source-read", add_menu)
    app.connect("html-page-context", name_markdown)
    app.connect("build-finished", finish)
