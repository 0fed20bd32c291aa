"""Runs in links and forms: what is written is read again, and what is no run is refused with a code."""

from __future__ import annotations

import base64
import json
import zlib
from urllib.parse import parse_qs, urlsplit

import pytest

from machines.catalog.editing import runs
from machines.engine import BadInput
from tests.cases import for_each

STEPS = ["pay", ("add", {"qty": 2, "note": "é/+"}), {"advance": "5m"}, {"job": "charge", "done": None}]


def test_a_link_carries_steps_data_and_version():
    found = urlsplit(runs.link("order", 3, STEPS, {"total": 5}))
    query = parse_qs(found.query)
    run = runs.decode(query["run"][0])
    assert (found.path, query["version"]) == ("/machines/order/try/", ["3"])
    assert run == runs.make(STEPS, {"total": 5})
    assert run.steps[2] == {"advance": 300_000}
    assert runs.read(run.write()) == run


def test_a_link_without_a_version_is_of_the_current_one():
    assert "version=" not in runs.link("a b", None, [])
    assert runs.link("a b", None, []).startswith("/machines/a%20b/try/?run=")


def pack(text: str) -> str:
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


WHOLE = pack('{"steps":["pay"]}')


@for_each(
    "text, code",
    [
        ("", "SB681"),
        ("é", "SB681"),
        ("<script>", "SB681"),
        (WHOLE[:-4], "SB681"),
        (pack("nonsense"), "SB681"),
        (pack('{"steps": [], "more": 1}'), "SB681"),
        (pack('{"steps": {}}'), "SB681"),
        (pack('{"data": [1]}'), "SB681"),
        (pack('{"data": {"n": NaN}}'), "SB681"),
        (pack("[" * 50_000), "SB681"),
        (pack('{"steps": [' + " " * 10_000_000 + "]}"), "SB681"),
        ("A" * 100_000, "SB681"),
        (pack(json.dumps({"steps": ["pay"] * 201})), "SB682"),
        (pack('{"steps": [7]}'), "SB637"),
        (pack('{"steps": [{"job": "charge"}]}'), "SB637"),
        (pack(json.dumps({"steps": [{"event": "pay", "payload": {"x": "y" * 65_500}}]})), "SB681"),
    ],
)
def test_what_is_no_run_is_refused(text, code):
    with pytest.raises(BadInput) as raised:
        runs.decode(text)
    assert raised.value.code == code


def test_a_run_that_fits_in_no_link_says_so():
    noise = [f"{number * 7919 % 1_000_003:x}{number**7:x}" for number in range(500)]
    with pytest.raises(BadInput, match="at most 6,000") as raised:
        runs.link("order", 1, [("pay", {"noise": noise})])
    assert raised.value.code == "SB682"
