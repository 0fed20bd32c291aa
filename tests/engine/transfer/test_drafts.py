"""A file is written whole under another name: never by two runs at once, and a run that ends early leaves nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from machines.engine.errors import BadInput
from machines.engine.transfer.drafts import open_draft
from machines.engine.transfer.exporting import Export

from .worlds import describe, fill, read
from .worlds import export as export_whole

KILLED = """
import os, signal, sys
from pathlib import Path
from machines.engine.transfer.drafts import open_draft
with open_draft(Path(sys.argv[1])) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


class Stop(Exception):
    pass


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_second_export_to_the_same_path_is_refused_and_the_first_one_is_whole(engine, tmp_path, prefix, redis_url):
    from machines.engine import Engine

    ids, path = fill(engine), tmp_path / "f"
    refusals = []

    def start_second(done: int, total: int) -> None:
        with pytest.raises(BadInput) as caught:
            export_whole(engine, path)
        refusals.append(caught.value.message)

    Export(engine.client, engine.keys, "order", path).run(start_second)
    assert set(refusals) == {f"another run writes {path} at the moment: wait for it, or give another name"}
    assert names_in(tmp_path) == ["f"]
    with pytest.raises(BadInput, match="exists"):
        export_whole(engine, path)
    assert names_in(tmp_path) == ["f"]
    other = Engine.from_url(redis_url, prefix=f"{prefix}other:", partitions=5)
    read(other, path)
    assert describe(other, ids) == describe(engine, ids)
    other.client.close()


def test_an_export_that_was_stopped_leaves_no_file(engine, tmp_path):
    fill(engine, 3)

    def stop(done: int, total: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        Export(engine.client, engine.keys, "order", tmp_path / "f").run(stop)
    assert names_in(tmp_path) == []
    assert export_whole(engine, tmp_path / "f").instances == 3
    assert names_in(tmp_path) == ["f"]


def test_the_next_run_removes_what_a_killed_one_left(tmp_path):
    path, other = tmp_path / "a[b].xes", tmp_path / "a[b].xes.sb"
    for each in (path, other):
        run = subprocess.run([sys.executable, "-c", KILLED, str(each)], check=False)
        assert run.returncode == -9
    left = names_in(tmp_path)
    assert len(left) == 2
    with open_draft(path) as draft:
        draft.write_text("whole")
        assert len(names_in(tmp_path)) == 2, "the draft of this run, and what was left of the other file"
    assert names_in(tmp_path) == [max(left), "a[b].xes"]
    assert path.read_text() == "whole"


def test_a_file_stays_as_it_was_where_the_run_that_replaces_it_fails(tmp_path):
    path = tmp_path / "f"
    path.write_text("before")

    def fail() -> None:
        with open_draft(path) as draft:
            draft.write_text("half")
            raise Stop

    with pytest.raises(Stop):
        fail()
    assert (names_in(tmp_path), path.read_text()) == (["f"], "before")
