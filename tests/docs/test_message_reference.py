"""docs/message-reference.md is made from the protocol and must be what it says now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import message_reference
from tests.docs.live_protocol import CLOSES, ERRORS

pytestmark = pytest.mark.pure
PAGE = Path(__file__).parents[2] / "docs" / "message-reference.md"


def test_the_page_is_what_the_code_says():
    assert PAGE.read_text(encoding="utf-8") == message_reference.render(), (
        "run: python -m tests.docs.message_reference docs/message-reference.md"
    )


def test_every_code_stands_in_it():
    for code in (*ERRORS, *CLOSES):
        assert f"`{code.value}`" in message_reference.render()
