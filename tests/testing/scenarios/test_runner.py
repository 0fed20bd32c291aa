"""Running scenarios on a real engine: each kind of step and of expectation, held and not held."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from machines.testing.scenarios import files, results, runner
from tests.cases import for_each

from .samples import EXAMPLES, LEDGER, ORDER, compile_all, make_file

pytestmark = pytest.mark.redis

PAY = {"event": "pay", "payload": {"amount": 20}}


def run(redis_url, *steps, **given):
    """Run one scenario; return the text of its failure, empty where it passed."""
    (result,) = runner.run_files(redis_url, [make_file(*steps, **given)], compile_all())
    return result.failure.text if result.failure is not None else ""


@for_each(
    "steps",
    [
        [{"when": PAY, "then": {"state": "Paid", "jobs": ["ship"], "transitions": ["New -> Paid"]}}],
        [{"when": PAY, "then": {"messages": [{"event": "paid", "to": "ledger"}]}}],
        [{"when": {"event": "pay", "payload": {"amount": 1}}, "then": {"refused": "event.amount >= total is false"}}],
        [{"when": {"event": "pay"}, "then": {"refused": {"code": "SB430"}, "state": "New", "transitions": []}}],
        [
            {"when": PAY},
            {"when": {"job": "ship", "done": {"parcel": "P"}}, "then": {"done": True, "data": {"parcel": "P"}}},
        ],
        [{"when": PAY}, {"when": {"job": "shipping", "failed": "away"}, "then": {"state": "Failed", "jobs": []}}],
        [{"when": {"after": "30d"}, "then": {"state": "Expired", "messages": ["expired"], "transitions": ["t2"]}}],
        [{"when": {"after": "29d"}, "then": {"state": "New", "done": False, "messages": []}}],
    ],
)
def test_what_holds_passes(redis_url, steps):
    assert run(redis_url, *steps) == ""


@for_each(
    "step, text",
    [
        ({"when": PAY, "then": {"state": "New"}}, "step 1 (line 8), event pay: it is in Paid, not in New"),
        ({"when": PAY, "then": {"data": {"total": 3}}}, "total is 20, not 3"),
        ({"when": PAY, "then": {"jobs": []}}, "jobs that wait: ship; expected none"),
        ({"when": PAY, "then": {"messages": []}}, "a message paid to ledger was sent, with {}"),
        ({"when": PAY, "then": {"messages": ["paid"]}}, "no message paid was sent"),
        ({"when": PAY, "then": {"transitions": []}}, "transitions taken: New -> Paid; expected none"),
        ({"when": PAY, "then": {"done": True}}, "it is in Paid, which is not its end"),
        ({"when": PAY, "then": {"refused": True}}, "it should be refused, and was taken"),
        ({"when": {"event": "pay"}}, "it was refused: SB430 event 'pay' is refused in state New"),
        ({"when": {"event": "pay"}, "then": {"refused": "money"}}, "refused, but not because of 'money'"),
        ({"when": {"event": "pay"}, "then": {"refused": {"code": "SB1"}}}, "refused as SB1, and was as SB430"),
        ({"when": {"job": "ship", "done": 1}}, "no job 'ship' waits; jobs that wait: none"),
        (
            {"when": {"event": "close", "to": "ledger"}},
            "no instance of 'ledger' is running; machines here: ledger, order",
        ),
    ],
)
def test_what_does_not_hold_is_told_with_the_history(redis_url, step, text):
    found = run(redis_url, step)
    assert text in found
    assert "history, oldest first:" in found
    assert "(create)  New" in found


def test_a_refusal_that_was_not_expected_lists_every_candidate(redis_url):
    assert "t1 → Paid: event.amount >= total" in run(redis_url, {"when": {"event": "pay", "payload": {"amount": 3}}})


def test_an_attempt_may_fail_and_be_tried_again(redis_url):
    failed = {"when": {"job": "ship", "failed": {"error": "away", "retry": True}}, "then": {"state": "Paid"}}
    again = {"when": {"job": "ship", "done": {"parcel": "P"}}}
    assert "becomes ready in" in run(redis_url, {"when": PAY}, failed, again)
    assert run(redis_url, {"when": PAY}, failed, {"when": {"after": "1h"}}, again) == ""


def test_a_person_may_do_what_the_groups_allow(redis_url):
    given = {"events": [PAY, {"job": "ship", "failed": True}]}
    approve = {"event": "approve", "actor": "ann"}
    steps = [
        {"when": {**approve, "groups": ["clerks"]}, "then": {"refused": {"code": "SB433"}}},
        {"when": {**approve, "groups": ["managers"]}, "then": {"state": "Paid"}},
    ]
    assert run(redis_url, *steps, **given) == ""


def test_what_is_given_has_to_succeed(redis_url):
    text = run(redis_url, {"then": {"state": "New"}}, events=[{"event": "pay"}])
    assert text.startswith("the start that is given does not succeed: SB430 event 'pay' is refused")
    assert "SB" in run(redis_url, {"then": {"state": "New"}}, data={"total": "much"})


def test_a_state_around_the_leaves_is_a_state(redis_url):
    definition = {
        "id": "order",
        "initial": "A",
        "context": {"total": 0},
        "states": {"A": {"initial": "B", "states": {"B": {}, "C": {}}}},
    }
    for state, passes in (("A", True), ("B", True), ("A.B", True), ("C", False)):
        file = make_file({"then": {"state": state}})
        (result,) = runner.run_files(redis_url, [file], compile_all(definition))
        assert result.passed == passes


def test_scenarios_do_not_see_each_other_and_leave_nothing(redis_url, cleaner):
    before = set(cleaner.keys())
    file = make_file({"when": {"after": "40d"}, "then": {"state": "Expired"}}, id="same", time="2020-01-01 00:00")
    for _ in range(2):
        (result,) = runner.run_files(redis_url, [file], compile_all(ORDER, LEDGER))
        assert result.passed
    assert {key for key in set(cleaner.keys()) - before if b"order" in key} == set()


def test_the_scenarios_of_the_samples_pass(redis_url):
    found = files.collect(files.list_folder(EXAMPLES / "tests"))
    assert found.problems == []
    assert {file.machine for file in found.files} == {
        "activation", "delivery", "new_device", "payment", "service_activation"
    }  # fmt: skip
    done = list(runner.run_files(redis_url, found.files, found.definitions))
    assert [results.format_result(one) for one in done if not one.passed] == []


def test_results_as_text_and_as_junit(redis_url):
    passing = make_file({"then": {"state": "New"}})
    failing = make_file({"then": {"state": "Paid"}})
    done = list(runner.run_files(redis_url, [passing, failing], compile_all()))
    assert results.format_result(done[0]) == "passed  it"
    assert results.format_result(done[1]).startswith("FAILED  it\n    step 1")
    assert results.format_summary(done).startswith("2 scenarios: 1 passed, 1 failed, in ")
    root = ElementTree.fromstring(results.format_junit(done))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert suite[1].find("failure").get("message").endswith("it is in New, not in Paid")
    assert "history, oldest first" in suite[1].find("failure").text
