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

# An empty square, and letters and marks that are drawn as one: as a character that no font has.
SQUARES = r"""(root) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 40, height: 40 });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const drawn = (font, text) => {
        context.clearRect(0, 0, 40, 40);
        context.font = `20px ${font}`;
        context.fillText(text, 5, 28);
        return context.getImageData(0, 0, 40, 40).data.join();
    };
    const missing = {}, found = new Set(), seen = new Set();
    const look = (text, font) => [...text].forEach((one) => {
        if (one < "\u0250" || /[\s\p{M}\p{Cf}]/u.test(one) || seen.has(one + font)) return;
        seen.add(one + font);
        missing[font] ??= drawn(font, "\u{10fffd}");
        const empty = one === "\u25a1" || drawn(font, one) === missing[font];
        if (empty) found.add(`no glyph: U+${one.codePointAt(0).toString(16)}`);
    });
    const tree = document.createTreeWalker(document.querySelector(root), NodeFilter.SHOW_TEXT);
    for (let node; (node = tree.nextNode()); ) {
        const { data, parentElement: of } = node;
        if (!/[^\u0000-\u024f]/.test(data) || of.closest("script, style") || !of.checkVisibility()) continue;
        look(data, getComputedStyle(of).fontFamily);
    }
    for (const e of root === "body" ? [] : document.querySelectorAll(`${root} *`)) {
        for (const part of ["::before", "::after"]) {
            const { content, fontFamily } = getComputedStyle(e, part);
            look(content.startsWith('"') ? content : "", fontFamily);
        }
    }
    return [...found]; }"""
COUNTED = (
    "alarm attempt change draft error finding group instance job machine match problem queue request result row run "
    "state step time timer transition version warning worker"
).replace(" ", "|")
ONES = rf"""() => document.querySelector("main").innerText.match(/(?<![\d,.:-])1[ \xa0](?:{COUNTED})e?s\b/g) ?? []"""


def squares(page: Any, root: str = "body") -> list[str]:
    """Characters of an element that are drawn as empty squares; of a part of the page also those that CSS adds."""
    return page.evaluate(SQUARES, root)


def ones(page: Any) -> list[str]:
    """Where the page counts one in the plural."""
    return page.evaluate(ONES)


def violations(page: Any, *only: str) -> list[str]:
    """``only``: the rules to try, all of WCAG A and AA where none is named."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
    return page.evaluate(RUN, {"tags": TAGS, "only": list(only) or None})
