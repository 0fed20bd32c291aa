"""The site of docs: a page for each page, as HTML and as Markdown, with search and versions, also without a server."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from playwright.sync_api import Browser, Page, expect

import machines
from tests.browser.conftest import open_chromium
from tests.conftest import missing

from .test_links import LINK, PAGES, ROOT, read_text

DOORS = (ROOT / "docs/start-here.md").read_text(encoding="utf-8")
ASSETS = {"link": "href", "script": "src", "img": "src", "source": "src", "iframe": "src"}
SMALL = {
    "README.md": "# One\n\nThe first page.\n",
    "docs/start-here.md": "# Start here\n\nDoors.\n\n## Operator\n\n[two](two.md)\n",
    "docs/two.md": "# Two\n\n[a page](gone.md), [a heading](start-here.md#gone), ![a picture](images/gone.png)\n",
    "docs/three.md": "# Three\n\nNo door leads here.\n",
}


@pytest.fixture
def chromium() -> Iterator[Browser]:
    with open_chromium() as browser:
        yield browser


@pytest.mark.pure
def test_each_door_has_a_command_and_three_pages_and_each_page_a_door():
    doors = re.findall(r"^## ([^\n]+)(.*?)(?=^## |\Z)", DOORS, re.M | re.S)
    assert [name for name, _ in doors] == [
        "Operator",
        "Django team",
        "Redis team, any language",
        "Auditor",
        "Reference",
    ]
    for name, text in doors[:4]:
        assert re.match(r"\n\n    [a-z]\S+ .*\n\n1\. \[", text), f"{name} does not begin with a command"
        assert len(re.findall(r"^\d\. \[", text, re.M)) == 3, name
    template = re.search(r"^    (.*)\$\(signalbox template\)", DOORS, re.M)
    assert "pip install 'signalbox[" in template[1], "startproject copies this folder where there is no template"
    linked = {(ROOT / "docs" / target).resolve() for target, _ in LINK.findall(DOORS)}
    assert {*(ROOT / "docs").glob("*.md")} - linked == {ROOT / "docs/start-here.md"}


@pytest.fixture
def checkout(tmp_path: Path) -> Callable[[dict[str, str]], subprocess.CompletedProcess[str]]:
    """A checkout with pages of a test; builds its site into ``out``."""
    require_generator()
    for name in (".ci/docs", ".ci/venv", "requirements-docs.lock", "machines/__init__.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "docs/site", tmp_path / "docs/site")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/venv").symlink_to(ROOT / "build/venv")

    def build(pages: dict[str, str]) -> subprocess.CompletedProcess[str]:
        for name, text in pages.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        return build_site(tmp_path, tmp_path / "out")

    return build


def require_generator() -> None:
    if not (ROOT / "build/venv/.installed-requirements-docs.txt").exists():
        missing("the generator of the site", "`make docs` installs it into build/venv")


def build_site(checkout: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([checkout / ".ci/docs", folder], capture_output=True, text=True, check=False)


@pytest.mark.packages
def test_a_link_a_heading_and_a_picture_that_are_not_there_and_a_page_without_a_door_are_errors(checkout):
    done = checkout(SMALL)
    assert done.returncode == 1
    said = re.findall(r"/(\w+)\.md(?::\d+)?: WARNING: .*\[(\S+)\]", done.stderr)
    assert sorted(said) == [
        ("three", "toc.not_included"),
        ("two", "image.not_readable"),
        ("two", "myst.xref_missing"),
        ("two", "myst.xref_missing"),
    ]


@pytest.mark.packages
@pytest.mark.timeout(1800)
def test_the_site_of_the_docs(tmp_path: Path, chromium: Browser):
    require_generator()
    earlier = tmp_path / "0.0.9"
    for folder in (earlier, tmp_path / "drafts"):  # only the first is named like a version
        folder.mkdir()
        (folder / "llms.txt").touch()
    (earlier / "index.html").write_text("<title>the one before</title>")
    done = build_site(ROOT, tmp_path)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    site = tmp_path / machines.__version__
    check_markdown(site)
    check_html(site)
    context = chromium.new_context(viewport={"width": 1300, "height": 800}, color_scheme="light")
    asked: list[str] = []
    complaints: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    context.on("requestfailed", lambda request: complaints.append(request.url))
    context.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page = context.new_page()
    read_without_a_server(page, tmp_path)
    assert {url.partition(":")[0] for url in asked} == {"file"}
    read_on_a_phone(page, site)
    with serve(tmp_path) as address:
        asked.clear()
        search(page, f"{address}/{site.name}/README.html")
        expect(page.locator("#search-results .context").first).not_to_be_empty()
        assert all(url.startswith(address) for url in asked)
    assert complaints == []
    context.close()


def check_markdown(site: Path) -> None:
    """Each page is there as it is in the repository, its links lead somewhere, and llms.txt has a line for it."""
    index = (site / "llms.txt").read_text()
    assert index.startswith("# Signalbox\n\n> A control room for state machines")
    assert machines.__version__ in index.splitlines()[2]
    lines = re.findall(r"^- \[[^\]]+\]\((\S+)\): \S.*$", index, re.M)
    assert sorted(lines) == sorted(str(page.relative_to(ROOT)) for page in PAGES)
    for page in PAGES:
        copy = site / page.relative_to(ROOT)
        assert copy.read_bytes() == page.read_bytes()
        assert copy.with_suffix(".html").is_file()
        gone = [target for target, _ in LINK.findall(read_text(copy)) if target and not (copy.parent / target).exists()]
        assert gone == [], page.name


class Document(HTMLParser):
    """The anchors, links and assets of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors, self.links, self.assets = {""}, set(), set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif tag in ASSETS and ASSETS[tag] in found:
            self.assets.add(found[ASSETS[tag]])


def check_html(site: Path) -> None:
    """Every link leads to a file and an anchor of it, and no page takes anything from elsewhere."""
    documents = {file: Document(file) for file in site.rglob("*.html")}
    assert len(documents) > len(PAGES)
    gone, outside = [], []
    for file, document in documents.items():
        outside += [asset for asset in document.assets if re.match(r"(\w+:)?//", asset)]
        for link in document.links | document.assets:
            target, anchor = urldefrag(link.partition("?")[0])
            if re.match(r"\w+:", target):
                continue
            found = (file.parent / unquote(target)).resolve() if target else file
            if not found.exists() or (found in documents and unquote(anchor) not in documents[found].anchors):
                gone.append(f"{file.relative_to(site)}: {link}")
    assert (gone, outside) == ([], [])
    styles = "".join(file.read_text(encoding="utf-8") for file in site.rglob("*.css"))
    assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//\S+", styles) == []


def read_without_a_server(page: Page, folder: Path) -> None:
    page.goto((folder / "index.html").as_uri())
    expect(page).to_have_title(f"Signalbox {machines.__version__}")
    search(page, page.url)
    page.locator("#search-results a", has_text="Workers").first.click()
    expect(page.locator("h1")).to_contain_text("Workers")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.locator(".content-icon-container .theme-toggle").click()
    expect(page.locator("body")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(background) != light
    page.reload()
    expect(page.locator("body")).to_have_attribute("data-theme", "dark")
    expect(page.locator("#versions option")).to_have_text([machines.__version__, "0.0.9"])
    page.get_by_label("Version").select_option("0.0.9")
    expect(page).to_have_title("the one before")


def search(page: Page, url: str) -> None:
    page.goto(url)
    box = page.get_by_placeholder("Search")
    box.fill("lease of a job")
    box.press("Enter")
    expect(page.locator("#search-results li").first).to_be_visible()


def read_on_a_phone(page: Page, site: Path) -> None:
    """No page is wider than the screen, pictures are there, and the menu opens."""
    page.set_viewport_size({"width": 390, "height": 800})
    for name in ("README", "docs/start-here", "docs/tour", "docs/security", "docs/python-api"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth)"), name
    door = page.locator(".sidebar-tree a", has_text="Start here")
    expect(door).not_to_be_in_viewport()
    page.locator("label.nav-overlay-icon").click()
    expect(door).to_be_in_viewport()


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve the folder as any server of files does; give the address."""
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass
