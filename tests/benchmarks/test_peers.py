"""The libraries beside our steps: what is pinned is what PEERS.md names."""

from __future__ import annotations

import json
import re

import benchmarks.peers.__main__ as peers
from benchmarks.queues import installed


def test_the_page_names_every_library_that_is_measured():
    named = peers.PAGE.read_text(encoding="utf-8")
    pinned = installed.versions(peers.REQUIREMENTS, peers.HERE)
    pinned = [line for line in pinned if not line.startswith("Node")]
    libraries = re.findall(r"^([\w-]+)==", peers.REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    node = json.loads((peers.HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert len(pinned) == len(libraries) + len(node) >= 5
    for line in pinned:
        assert line in named
