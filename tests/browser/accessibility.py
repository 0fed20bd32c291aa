"""What axe-core (tests/browser/vendor) finds wrong with a rendered page: WCAG 2.2 A and AA, by rule and place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

AXE = Path(__file__).with_name("vendor") / "axe-core/axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# In a drawing axe takes titles, which nobody sees, counts and notes for parts of the label. That is the first text: the
# name of the state, or the event.
RUN = """async ({ tags, only }) => {
    const runOnly = only ? { type: "rule", values: only } : { type: "tag", values: tags };
    const found = await axe.run(document, { runOnly, resultTypes: ["violations"], elementRef: false });
    const flat = (text) => text?.replace(/[\\s…]/g, "").toLowerCase();
    const label = (part) => part.querySelector("text")?.textContent ?? "?";
    const holds = (part) => flat(part.getAttribute("aria-label"))?.includes(flat(label(part)));
    const meant = (id, target) => {
        const part = id === "label-content-name-mismatch" && document.querySelector(target.at(-1));
        return part && part.closest("svg") && holds(part);
    };
    const told = (id, { target, any }) => {
        const { fgColor, bgColor, contrastRatio } = any[0]?.data ?? {};
        return `${id}: ${target.join(" ")}` + (fgColor ? ` (${fgColor} on ${bgColor}: ${contrastRatio})` : "");
    };
    return found.violations.flatMap(({ id, nodes }) =>
        nodes.filter(({ target }) => !meant(id, target)).map((node) => told(id, node)));
}"""


def violations(page: Any, *only: str) -> list[str]:
    """``only``: the rules to try, all of WCAG A and AA where none is named."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
    return page.evaluate(RUN, {"tags": TAGS, "only": list(only) or None})
