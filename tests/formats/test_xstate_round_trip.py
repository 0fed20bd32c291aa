"""Definition to XState and back: the same program, whatever the definition says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from machines.engine.definitions import check, compile
from machines.engine.errors import DefinitionError
from machines.formats import dump, load, read
from tests.catalog.samples import example

from .charts import HOSTILE, charts, order

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("definition", [example("activation"), example("new_device"), order()], ids=lambda d: d["id"])
def test_samples_come_back_as_they_were(definition):
    text, _ = dump(definition, "xstate")
    back = load(text, "xstate")
    assert compile(back) == compile(definition)
    assert check(back) == check(definition)


@settings(max_examples=60)
@given(charts() | charts(HOSTILE))
def test_any_chart_comes_back_as_the_same_program(definition):
    if any(finding.is_error for finding in check(definition)):
        with pytest.raises(DefinitionError):
            dump(definition, "xstate")
        return
    text, _ = dump(definition, "xstate")
    back, findings = read(text, "xstate")
    assert findings == []
    assert compile(back) == compile(definition)
    assert json.loads(dump(back, "xstate")[0]) == json.loads(text)
