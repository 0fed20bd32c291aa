"""Writes the headings of the docs, which the search box finds, for the wheel.

python -m tests.docs.headings dashboard/overview/docs_headings.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^#{1,4} (.*)$", re.MULTILINE)


def read_headings(page: Path) -> list[tuple[str, str]]:
    """Return the headings of a page with their anchors, made as GitHub and the site of docs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: list[tuple[str, str]] = []
    for heading in HEADING.findall(text):
        plain = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "").strip()
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        earlier = sum(one[0] == plain for one in found)
        found.append((plain, f"{anchor}-{earlier}" if earlier else anchor))
    return found


def render() -> str:
    """Return page -> its headings with their anchors, as JSON; the first is the title."""
    pages = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/coming-from/*.md")])
    lines = (
        f"{json.dumps(page.relative_to(ROOT).with_suffix('').as_posix())}: "
        f"{json.dumps(read_headings(page), ensure_ascii=False)}"
        for page in pages
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
