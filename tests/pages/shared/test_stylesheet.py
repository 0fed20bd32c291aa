"""The stylesheets: tokens first, dark by overriding them, and text that can be read in both."""

from __future__ import annotations

import re
from pathlib import Path

from machines.conf.kinds import COLOURS
from tests.cases import for_each

ROOT = Path(__file__).parents[3]
SHEETS = sorted((ROOT / "static/signalbox/css").rglob("*.css"))
FILES = {path.name: path.read_text(encoding="utf-8") for path in SHEETS}
assert len(FILES) == len(SHEETS), "two sheets of one name"
TOKENS = FILES.pop("tokens.css")
CSS = "".join(FILES.values())
TOKEN = re.compile(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
AA = 4.5

ENVIRONMENTS = dict(re.findall(r'\.environment\[data-colour="([a-z]+)"\] { background: var\(--([a-z-]+)\); }', CSS))

TEXT_ON = [
    *((ink, ground) for ink in ("ink", "ink-soft", "ink-faint") for ground in ("paper", "panel", "well", "hover")),
    *((ink, ground) for ink in ("link", "stop", "go", "wait", "note") for ground in ("paper", "panel", "hover")),
    *((sign, f"{sign}-wash") for sign in ("go", "wait", "stop", "note")),
    *(("ink", f"{sign}-wash") for sign in ("go", "wait", "stop", "note")),
    *(("ink-soft", f"{sign}-wash") for sign in ("go", "wait", "stop", "note")),
    ("action-ink", "action"),
    ("action-ink", "action-hover"),
    ("lit-ink", "lit"),
    *(("ink", ground) for ground in ("heat-fill", "heat-fill-stop")),
    ("bar-ink", "bar"),
    ("bar-soft", "bar"),
    ("panel", "ink"),
    *(("panel", ground) for ground in ENVIRONMENTS.values()),
]
EDGES_ON = [("heat-line", "panel"), ("rule-firm", "panel"), ("focus", "panel"), ("focus", "paper")]


def tokens(theme: str) -> dict[str, str]:
    return {name: light if theme == "light" else dark for name, light, dark in TOKEN.findall(TOKENS)}


def contrast(one: str, other: str) -> float:
    """WCAG 2.2's contrast ratio of two #rrggbb colours."""
    dark, light = sorted(map(_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@for_each("theme", ["light", "dark"])
@for_each("ink, ground", TEXT_ON)
def test_text_stands_out_from_its_ground(theme, ink, ground):
    found = tokens(theme)
    assert contrast(found[ink], found[ground]) >= AA


def test_each_colour_of_an_environment_has_a_ground():
    assert tuple(ENVIRONMENTS) == COLOURS


@for_each("theme", ["light", "dark"])
@for_each("edge, ground", EDGES_ON)
def test_the_edges_of_controls_can_be_seen(theme, edge, ground):
    found = tokens(theme)
    assert contrast(found[edge], found[ground]) >= 3


def test_every_page_links_the_tokens_before_all_other_stylesheets():
    base = (ROOT / "templates/signalbox/base.html").read_text(encoding="utf-8")
    linked = re.findall(r"'signalbox/([a-z_/-]+\.css)'", base)
    assert linked == ["site.css", "css/shared/targets.css"]
    parts = re.findall(
        r"^/\* ([a-z_/-]+) \*/$", (ROOT / "static/signalbox/site.css").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert parts[0] == "shared/tokens"


def test_colours_are_written_as_tokens_and_nowhere_else():
    """Two exceptions: the lamp's colours stand on the dark bar of both themes; paper is white."""
    stray = [line for line in CSS.splitlines() if re.search(r"#[0-9a-f]{3,6}\b", line) and ".live" not in line]
    assert [line for line in stray if "body { background: #fff" not in line] == []


def test_the_theme_is_a_matter_of_the_colour_scheme_alone():
    """So that the system's choice and a person's are one rule each, and no colour is forgotten in one of them."""
    stray = [line for line in TOKENS.splitlines() if "#" in line and "light-dark(" not in line]
    assert [line for line in stray if not line.startswith("@property")] == []
    assert re.findall(r'\[data-theme="(\w+)"\] \{ color-scheme: (\w+); \}', TOKENS) == [("light",) * 2, ("dark",) * 2]
    assert "prefers-color-scheme" not in CSS + TOKENS


def test_scripts_read_only_registered_colours():
    scripts = "".join(path.read_text("utf-8") for path in (ROOT / "static/signalbox/js").rglob("*.js"))
    read = set(re.findall(r'"--([a-z-]+)"', scripts))
    assert read <= set(re.findall(r"@property --([a-z-]+)", TOKENS))


REVEALS = ("animation: go-stale 0.01s 40s forwards", "animation: go-scriptless 0.01s 5s forwards")
"""Nothing moves: a bar says that the figures of the wall are old, a text that no script runs."""


def test_digits_are_tabular_and_motion_can_be_switched_off():
    assert "font-variant-numeric: tabular-nums" in CSS
    for name, rules in FILES.items():
        before, _, _ = rules.partition("@media (prefers-reduced-motion: no-preference)")
        for reveal in REVEALS:
            before = before.replace(reveal, "")
        assert "animation:" not in before, name
        assert "transition:" not in before, name


def test_no_rule_is_about_a_class_that_nothing_has():
    folders = [ROOT / "templates", ROOT / "machines/templates/signalbox", ROOT / "dashboard/demo/examples/templates"]
    written = "".join(path.read_text(encoding="utf-8") for at in folders for path in at.rglob("*.html"))
    scripts = [*(ROOT / "static/signalbox/js").rglob("*.js"), *(ROOT / "machines/static").rglob("*.js")]
    written += "".join(path.read_text(encoding="utf-8") for path in scripts)
    written += "".join(path.read_text(encoding="utf-8") for path in (ROOT / "dashboard").rglob("*.py"))
    drawn = (ROOT / "machines/static/signalbox/admin/diagram.css").read_text(encoding="utf-8")
    rules = re.sub(r"/\*.*?\*/", "", CSS, flags=re.S)
    classes = set(re.findall(r"\.([a-z][a-z-]*)", re.sub(r"\{[^}]*\}", "{}", rules)))
    classes = {name for name in classes if not name.startswith(("cm-", "tok-"))}  # the editor puts their names together
    assert sorted(name for name in classes if not re.search(rf"\b{name}\b", written + drawn)) == []


CURRENT = re.compile(
    r"aria-current|aria-pressed|\.current|\.chosen|:target|\.lit\b"  # the place, the choice, the state
    r"|--sb-lit|\.cm-pointed"  # of the drawing, what is pointed at
    r"|\.arm\b|--accent"  # the brand
)


def test_amber_is_for_what_is_current():
    amber = [rule for rule in re.findall(r"[^{};]*[{;][^{}]*var\(--lit\)", CSS) if not CURRENT.search(rule)]
    assert amber == []


def test_heat_and_changes_of_a_drawing_are_not_amber():
    drawn = (ROOT / "machines/static/signalbox/admin/diagram.css").read_text("utf-8")
    rules = re.findall(r"[^{}]*\{[^{}]*\}", drawn)
    heat = [rule for rule in rules if re.search(r"heat-\d|diff-changed|class\*=\"heat-", rule)]
    assert len(heat) > 8
    assert [rule for rule in heat if "--d-lit" in rule] == []
