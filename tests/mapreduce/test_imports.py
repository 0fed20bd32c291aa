"""A program without Django makes runs and waits for them; only workers need it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.installation.processes import ROOT

PROGRAM = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("django", "channels", "dashboard"):
            raise ImportError(f"{name} is not there")
sys.meta_path.insert(0, Missing())
from machines.engine import Engine
from machines.mapreduce import MapReduce
run = MapReduce("totals", engine=Engine.from_url(sys.argv[1], prefix=sys.argv[2]))
print(run.add_items(range(5)), run.progress().state)
"""


@pytest.mark.redis
def test_a_run_is_made_without_django(redis_url, prefix):
    command = [sys.executable, "-c", PROGRAM, redis_url, prefix]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("5 collecting", 0), done.stderr
