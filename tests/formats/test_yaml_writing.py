"""What is written as YAML or JSON is read back as it was, by us and by readers of YAML 1.1."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from machines.engine.errors import DefinitionError
from machines.formats import dump, load
from tests.cases import for_each
from tests.catalog.samples import door, example

from .charts import HOSTILE, order

pytestmark = pytest.mark.pure

WORDS = [
    "on",
    "off",
    "yes",
    "No",
    "~",
    "null",
    "true",
    "0o17",
    "0x1F",
    "1e3",
    ".5",
    "12:30",
    "<<",
    "=",
    "- x",
    "? x",
    "a: b",
]
texts = st.text(max_size=20).filter(lambda text: "\0" not in text) | st.sampled_from(
    [*WORDS, *HOSTILE, " x ", "a\nb\n", ""]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize("format", ["json", "yaml"])
@given(value=st.dictionaries(texts, values, max_size=4))
def test_any_document_comes_back(format, value):
    text, findings = dump(value, format)
    assert findings == []
    assert load(text, format) == value


@given(value=st.dictionaries(texts, values, max_size=4))
def test_readers_of_yaml_1_1_see_the_same(value):
    assert yaml.safe_load(dump(value, "yaml")[0]) == value


@for_each("definition", [door(), order(), example("activation")])
@for_each("format", ["json", "yaml"])
def test_order_and_letters_stay(format, definition):
    text, _ = dump(definition, format)
    assert list(load(text, format)["states"]) == list(definition["states"])
    assert load(dump({"é": "😀"}, format)[0], format) == {"é": "😀"}
    assert "\\u" not in dump({"é": "漢"}, format)[0]


def test_yaml_is_written_for_people():
    shared = {"target": "Open"}
    text, _ = dump(
        {"id": "door", "states": {"A": {"on": {"x": shared, "y": shared}, "entry": [{"log": "now"}]}}}, "yaml"
    )
    assert text == (
        "id: door\n"
        "states:\n"
        "  A:\n"
        "    'on':\n"
        "      x:\n"
        "        target: Open\n"
        "      y:\n"
        "        target: Open\n"
        "    entry:\n"
        "      - log: now\n"
    )


@for_each("format", ["json", "yaml"])
@for_each("value", [{"a": float("nan")}, {"a": float("inf")}, {"a": {1, 2}}, {"a": b"x"}])
def test_what_is_no_json_is_refused(format, value):
    with pytest.raises(DefinitionError) as caught:
        dump(value, format)
    assert caught.value.findings[0].code == "SB110"
