"""docs/definition-reference.md names everything there is, and shows what works; two more pages are made."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from machines.engine import limits
from machines.engine.definitions import check
from machines.engine.definitions.findings import get_severity
from machines.engine.definitions.place import list_keys
from machines.engine.definitions.reading import actions
from machines.engine.definitions.reading import actions as messages
from machines.engine.expressions import FUNCTIONS
from tests.cases import for_each
from tests.engine.definitions.finding_codes import CODES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "definition-reference.md").read_text(encoding="utf-8")
COMMAND = "SIGNALBOX_WRITE_TABLES=1 pytest tests/engine/definitions/test_reference_page.py"
MADE = f"Made from `{{}}` by `{COMMAND}`; do not edit by hand.\n"

BLOCKS = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
DEFINITIONS = [block for block in BLOCKS if "states" in block and "initial" in block]


def section(title: str) -> str:
    """From a heading to the next one of the same or a higher level."""
    level, text = re.search(rf"^(#+) {re.escape(title)}$(.*)", PAGE, re.MULTILINE | re.DOTALL).groups()
    return re.split(rf"^#{{1,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def render_findings() -> str:
    parts = [
        "# Finding reference\n",
        MADE.format("tests/engine/definitions/finding_codes.py"),
        "Errors stop the [publication of a definition](definition-reference.md#findings), warnings do not.\n",
    ]
    for title, severity in (("Errors", "error"), ("Warnings", "warning")):
        rows = [
            f"| {code.code} | {code.title} | {code.advice} |"
            for code in CODES.values()
            if get_severity(code.code) == severity
        ]
        parts.append("\n".join([f"## {title}\n", "| code | what was found | what to do |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def render_functions() -> str:
    rows = [f"| `{function.usage}` | {function.gives} | {function.meaning} |" for function in FUNCTIONS.values()]
    return "\n".join(
        [
            "# Functions of expressions\n",
            MADE.format("machines/engine/expressions/functions.py"),
            "[Expressions](definition-reference.md#expressions) call these. `random()` and `random_token()` draw from "
            "a secret of the machine and cannot be predicted from outside.\n",
            "| function | gives | |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


@pytest.mark.parametrize(
    ("name", "render"), [("finding-reference.md", render_findings), ("expression-functions.md", render_functions)]
)
def test_a_made_page_is_what_the_source_says(name, render):
    page = ROOT / "docs" / name
    if "SIGNALBOX_WRITE_TABLES" in os.environ:
        page.write_text(render(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == render(), f"run: {COMMAND}"


def test_every_code_is_found_somewhere_and_none_is_made_up():
    source = "".join(
        file.read_text(encoding="utf-8")
        for folder in ("machines/catalog", "machines/engine/definitions", "machines/formats", "machines/schedules")
        for file in (ROOT / folder).rglob("*.py")
    )
    assert set(re.findall(r'"(SB[12]\d\d)"', source)) == set(CODES)


@for_each(
    "title, keys",
    [
        ("The machine", list_keys("machine")),
        ("A state", list_keys("state")),
        ("A transition", list_keys("transition")),
        ("An invoke", list_keys("invoke")),
        ("Actions", actions.VERBS),
    ],
)
def test_every_key_and_verb_is_in_its_table(title, keys):
    rows = "\n".join(line for line in section(title).splitlines() if line.startswith("|"))
    for key in keys:
        assert re.search(rf"[`\"]{re.escape(key)}[`\"]", rows), f"{key} is missing from {title}"


def test_every_key_of_a_send_is_in_its_table():
    rows = "\n".join(line for line in section("Messages").splitlines() if line.startswith("|"))
    for key in messages.SEND_KEYS:
        assert f"| `{key}` |" in rows


def test_limits_are_those_of_the_engine():
    text = section("Names and limits")
    depths = ("MAX_STATE_DEPTH", "MAX_ACTION_DEPTH", "MAX_JSON_DEPTH", "MAX_DEFINITION_DEPTH")
    for limit in ("MAX_STATES", "MAX_EMBEDDED", *depths, "MAX_EXPRESSION_TEXT", "MAX_EXPRESSION_NODES", "MAX_HISTORY"):
        assert str(getattr(limits, limit)) in text, limit
    assert f"{limits.MAX_DATA // 1024} KiB" in text
    assert limits.MAX_DATA == limits.MAX_PAYLOAD
    assert f"{limits.MAX_DEFINITION // 1024 // 1024} MiB" in text


@for_each("definition", DEFINITIONS)
def test_a_definition_on_the_page_has_no_findings(definition):
    assert check(definition) == []


def test_every_json_block_is_json():
    assert len(BLOCKS) > len(DEFINITIONS) > 5
