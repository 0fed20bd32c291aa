"""Which documents of a folder are cases, and what each must do."""

from __future__ import annotations

import pytest

from .documents import HELPER, PARENT, READ_BY_PEOPLE, SWITCH, WRONG, event, write
from .suite import find

pytestmark = pytest.mark.pure


def names(folder):
    return [(case.group, case.name) for case in find(folder).cases]


def test_cases_are_found_at_any_depth_in_the_order_of_their_numbers(tmp_path):
    for name in ("basic/test10", "basic/test9", "deep/er/test1"):
        write(tmp_path, name, SWITCH, "off")
    write(tmp_path, "top", WRONG)
    assert names(tmp_path) == [(tmp_path.name, "top"), ("basic", "test9"), ("basic", "test10"), ("deep/er", "test1")]


def test_a_sidecar_gives_the_steps(tmp_path):
    write(tmp_path, "switch", SWITCH, "off", event("flip", "on"), event("flip", "off", after=250))
    (case,) = find(tmp_path).cases
    assert case.initial == {"off"}
    assert [(step.event, step.after, set(step.expected)) for step in case.steps] == [
        ("flip", 0, {"on"}),
        ("flip", 250, {"off"}),
    ]


def test_a_sidecar_that_only_asks_for_pass_leaves_the_verdict_to_the_document(tmp_path):
    write(tmp_path, "own", WRONG, "pass")
    (case,) = find(tmp_path).cases
    assert (case.initial, case.end) == (None, "pass")


def test_a_document_that_another_one_names_is_no_case(tmp_path):
    write(tmp_path, "parent", PARENT)
    write(tmp_path, "helper", HELPER)
    suite = find(tmp_path)
    assert ([case.name for case in suite.cases], suite.parts) == (["parent"], ["helper.scxml"])


def test_a_document_without_pass_must_reach_its_final_state(tmp_path):
    write(tmp_path, "log", READ_BY_PEOPLE)
    (case,) = find(tmp_path).cases
    assert case.end == "final"


def test_a_document_without_any_verdict_is_no_case(tmp_path):
    write(tmp_path, "switch", SWITCH)
    assert find(tmp_path).parts == ["switch.scxml"]


def test_a_state_in_a_comment_is_no_verdict(tmp_path):
    write(tmp_path, "switch", f'{SWITCH}<!-- <final id="pass"/> -->')
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "sidecar",
    ["{", "[]", '{"events": []}', '{"initialConfiguration": "a"}', '{"initialConfiguration": [], "events": [{}]}'],
)
def test_a_sidecar_that_cannot_be_read_is_a_problem_of_its_case(tmp_path, sidecar):
    write(tmp_path, "switch", SWITCH)
    (tmp_path / "switch.json").write_text(sidecar)
    (case,) = find(tmp_path).cases
    assert case.problem.startswith("switch.json cannot be read: ")
