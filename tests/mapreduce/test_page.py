"""What docs/map-reduce.md tells a reader to type works as it says."""

from __future__ import annotations

import re

import pytest

from machines.engine.errors import SignalboxError
from machines.mapreduce import run, store
from tests.docs.test_examples import ROOT, block

from .builders import work_off

PAGE = "docs/map-reduce.md"


def test_the_example_counts_words(engine):
    printed = []
    names = {"__name__": "words", "lines": ["the cat", "the dog"], "print": lambda told: printed.append(told)}
    for beginning in ("@mapper", "add_items"):
        exec(compile(block(PAGE, "python", beginning), PAGE, "exec"), names)
    work_off(engine)
    exec(compile(block(PAGE, "python", "run.progress()"), PAGE, "exec"), names)
    assert printed == [run.Progress(2, 2, "done"), {"the": 2, "cat": 1, "dog": 1}]


@pytest.mark.pure
def test_every_error_and_limit_is_on_the_page():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    classes = [
        found
        for found in vars(run).values()
        if isinstance(found, type) and issubclass(found, SignalboxError) and found.__module__ == run.__name__
    ]
    raised = {(found.__name__, found.code) for found in classes}
    assert set(re.findall(r"^\| `(\w+)` \| (SB\d+) \|", text, re.MULTILINE)) == raised
    assert f"| chunks | {run.MAX_CHUNKS} |" in text
    assert f"| an item | {store.MAX_ITEM // 2**20} MiB" in text
    assert f"| a part, a result | {store.MAX_PART // 2**20} MiB" in text
