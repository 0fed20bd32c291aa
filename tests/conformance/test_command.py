"""The command: what it prints, what it writes, what it leaves behind."""

from __future__ import annotations

import pytest
import redis

from . import documents
from .__main__ import main
from .documents import event, write


@pytest.fixture
def run(redis_url, tmp_path, capsys):
    page = tmp_path / "page.md"
    folder = tmp_path / "cases"
    folder.mkdir()

    def command(*more):
        code = main([str(folder), "--url", redis_url, "--page", str(page), *more])
        return code, capsys.readouterr().out, page.read_text() if page.exists() else None

    command.folder = folder
    return command


def test_a_good_run_writes_the_page_and_ends_with_0(run):
    write(run.folder, "group/switch", documents.SWITCH, "off", event("flip", "on"))
    code, said, page = run()
    assert code == 0
    assert "1 case: 1 passed, 0 waived, 0 failed" in said
    assert "# Conformance" in page
    assert "| group | 1 | 1 | 0 | 0 |" in page
    assert "| switch | passed |  |" in page


def test_a_failed_case_is_said_with_its_reason_and_the_run_ends_with_1(run):
    write(run.folder, "switch", documents.SWITCH, "on")
    code, said, page = run()
    assert code == 1
    assert "failed cases/switch: at the start: in off, expected on" in said
    assert "| switch | failed | at the start: in off, expected on |" in page


def test_a_waived_case_has_its_reason_on_the_page_and_is_no_failure(run):
    write(run.folder, "http", documents.HTTP)
    code, _, page = run()
    assert code == 0
    assert "| http | waived | HTTP event processor |" in page
    assert "- HTTP event processor: " in page


def test_the_page_names_the_folder_and_not_the_way_to_it(run, tmp_path):
    write(run.folder, "switch", documents.SWITCH, "off")
    _, _, page = run()
    assert "make conformance SUITE=cases" in page
    assert str(tmp_path) not in page


def test_a_part_of_a_run_leaves_the_page_alone(run):
    for name in ("a/switch", "b/switch"):
        write(run.folder, name, documents.SWITCH, "off")
    code, said, page = run("--only", "b/")
    assert (code, page) == (0, None)
    assert "1 case: 1 passed" in said


def test_a_folder_without_cases_is_no_success(run):
    code, said, page = run()
    assert (code, page) == (2, None)
    assert "holds no case" in said


def test_a_folder_that_is_not_there_is_named(run, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["no/such/folder"])
    assert stop.value.code == 2
    assert "'no/such/folder' is no folder; name one: make conformance SUITE=path" in capsys.readouterr().err


def test_nothing_is_left_on_the_server(run, redis_url):
    write(run.folder, "switch", documents.SWITCH, "off", event("flip", "on"))
    write(run.folder, "patient", documents.PATIENT)
    run()
    with redis.Redis.from_url(redis_url) as client:
        assert list(client.scan_iter(match="conformance-*")) == []
