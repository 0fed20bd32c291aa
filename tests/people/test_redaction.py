"""A redactor over what the engine tells of one machine."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from machines.audit.redaction import MASK, Redactor, without_values
from machines.engine import (
    BadPayload,
    Because,
    Candidate,
    Conflict,
    Explanation,
    Instance,
    Preview,
    Refused,
    SensitiveFields,
    Step,
    Timer,
)
from machines.engine.instances.encryption import list_leaves

SECRET = "4111-0042"
MARKED = SensitiveFields(frozenset({"card"}), {"open": frozenset({"pin"})})


@pytest.fixture
def redactor() -> Redactor:
    """Of a machine whose instances all hold the same."""
    return Redactor(MARKED, lambda id: {"card": SECRET, "n": 2})


def instance(**data: object) -> Instance:
    return Instance("i", "m", ["S"], data, revision=1, version=1, entered=0, created=0)


def step(event: str, payload: dict, **changes: object) -> Step:
    return Step(
        1,
        0,
        event,
        None,
        ["S"],
        transitions=[],
        actor="ann",
        reason=f"because of {SECRET}",
        payload=payload,
        changes=changes,
    )


def test_without_anything_sensitive_everything_comes_back_as_it_is() -> None:
    open = Redactor()
    data = {"card": SECRET, "deep": [{"pin": SECRET}]}
    assert open.open
    assert open.instance(instance(**data)) == instance(**data)
    assert open.payload("open", data) == open.value(data) == open.data(data) == data
    assert open.message(f"card is {SECRET}") == f"card is {SECRET}"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"card": SECRET, "n": 1}, {"card": MASK, "n": 1}),
        ({"card": {"number": SECRET}, "n": f"no {SECRET}!"}, {"card": MASK, "n": f"no {MASK}!"}),
        ({"card": 4711815, "n": [4711815, {"card": 1}]}, {"card": MASK, "n": [MASK, {"card": MASK}]}),
        ({"card": None, "n": 1}, {"card": None, "n": 1}),
        ({"card": False, "n": False}, {"card": MASK, "n": False}),
        ({"card": "abc", "n": "abc"}, {"card": MASK, "n": "abc"}),  # too short to look for
        ({"card": SECRET, "n": f"{SECRET}{SECRET[:4]}"}, {"card": MASK, "n": f"{MASK}{SECRET[:4]}"}),
    ],
)
def test_data_is_hidden_by_its_name_and_its_copies_by_their_value(redactor, data, shown) -> None:
    assert redactor.instance(instance(**data)).data == shown


def test_of_values_that_begin_alike_the_longer_one_is_found_whole(redactor) -> None:
    redactor.learn({"card": SECRET}, {"card": f"{SECRET}-7"})
    assert redactor.text(f"{SECRET}-7 and {SECRET}") == f"{MASK} and {MASK}"


def test_instances_of_a_list_do_not_hide_each_others_values(redactor) -> None:
    found = redactor.instances([instance(card="green"), instance(card="other", n="green")])
    assert [one.data for one in found] == [{"card": MASK}, {"card": MASK, "n": "green"}]


def test_a_payload_is_hidden_by_the_names_of_its_event_and_what_work_brought_as_a_whole(redactor) -> None:
    assert redactor.payload("open", {"pin": SECRET, "by": "ann"}) == {"pin": MASK, "by": "ann"}
    assert redactor.payload("other", {"card": SECRET, "by": "ann"}) == {"card": MASK, "by": "ann"}
    assert redactor.payload("done.invoke.charge", {"result": {"any": 1}}) == {"result": MASK}
    assert redactor.payload("error.invoke.charge", f"declined {SECRET}") == MASK


def test_steps_hide_what_any_of_them_tells(redactor) -> None:
    first, second = redactor.steps([step("open", {"pin": SECRET}), step("note", {"text": SECRET}, card="x", n=SECRET)])
    assert (first.payload, second.payload, second.changes) == ({"pin": MASK}, {"text": MASK}, {"card": MASK, "n": MASK})
    assert first.reason == second.reason == f"because of {MASK}"


def refused() -> Explanation:
    because = [
        Because("event.pin == card", "false", {"event.pin": "1", "card": SECRET}),
        Because("n + card > 1", "error", {"n": 2, "card": SECRET}, f"cannot add {SECRET}"),
        Because("n > 1", "error", {"n": None}, "cannot order null and number"),
    ]
    return Explanation(
        "m",
        "i",
        "open",
        False,
        1,
        ["S"],
        candidates=[Candidate("t1", "open", "T", "g", "guard", because)],
        why="guards",
    )


def test_a_refusal_says_why_without_the_values(redactor) -> None:
    seen = redactor.explanation(refused())
    assert [part.values for part in seen.candidates[0].because] == [
        {"event.pin": MASK, "card": MASK},
        {"n": 2, "card": MASK},
        {"n": None},
    ]
    assert [part.message for part in seen.candidates[0].because] == [None, MASK, "cannot order null and number"]
    assert SECRET not in redactor.error(Refused(refused()))
    assert SECRET not in str(redactor.facts(Refused(refused())))


def judged(*because: Because) -> Explanation:
    return Explanation(
        "m", "i", "open", False, 1, ["S"], candidates=[Candidate("t1", "open", "T", "g", "error", list(because))]
    )


def test_a_guard_that_read_a_copy_tells_it_neither_as_a_value_nor_in_its_message(redactor) -> None:
    copied = judged(Because("int(alias) > 3", "error", {"alias": SECRET, "n": 2}, f'not a number: "{SECRET}"'))
    (part,) = redactor.explanation(copied).candidates[0].because
    assert (part.values, part.message) == ({"alias": MASK, "n": 2}, MASK)


def test_of_an_instance_that_cannot_be_read_an_explanation_shows_no_value_at_all() -> None:
    copied = judged(Because("alias > n", "false", {"alias": SECRET, "n": 2, "gone": None}))
    for blind in (Redactor(MARKED), Redactor(MARKED, lambda id: None)):
        (part,) = blind.explanation(copied).candidates[0].because
        assert part.values == {"alias": MASK, "n": MASK, "gone": None}


@pytest.mark.parametrize("message", [
    f"card takes integer, not string ({SECRET})", "no square root of -77077733", "fail() can say division by zero, too",
    "cannot order null and number of a card",
])  # fmt: skip
def test_a_message_is_shown_only_where_it_is_known_to_hold_no_value(redactor, message) -> None:
    (part,) = redactor.explanation(judged(Because("g", "error", {}, message))).candidates[0].because
    assert part.message == MASK


def test_an_instance_hides_it_in_what_is_named_after_it(redactor) -> None:
    kin = {"machine": "m", "id": SECRET, "invoke": "pay"}
    seen = redactor.instance(
        replace(
            instance(card=SECRET), children={"pay": kin}, parent=kin,
            timers=[Timer("1", f"late.{SECRET}", 1, sendid=SECRET, target=f"#_scxml_m/{SECRET}")],
        )
    )  # fmt: skip
    assert SECRET not in str(seen.as_dict())
    assert (seen.parent["machine"], seen.timers[0].target) == ("m", f"#_scxml_m/{MASK}")


def test_a_value_is_found_as_json_writes_it_too(redactor) -> None:
    redactor.learn({"card": 'say "élan"\n'})
    for written in ('say "élan"\n', r"say \"élan\"\n", r"say \"\u00e9lan\"\n"):
        assert redactor.text(f"is {written} all?") == f"is {MASK} all?"


def test_what_a_bulk_keeps_for_all_holds_no_value_whatever_may_be_marked_later() -> None:
    assert without_values(Refused(refused())) == (
        "event 'open' is refused in state S: t1 → T: event.pin == card is false; n + card > 1 fails; n > 1 fails"
    )
    assert without_values(Refused(replace(refused(), why="error", error=SECRET))) == (
        "event 'open' is refused in state S: an action failed"
    )
    assert without_values(BadPayload(f"card is {SECRET}", field="card")) == (
        "it does not fit, or cannot be done (SB410, field 'card')"
    )
    assert "at revision 3, not 2" in without_values(Conflict("m", "i", expected=2, actual=3))


def test_errors_leave_a_block_without_what_they_would_repeat(redactor) -> None:
    with pytest.raises(Refused) as caught, redactor.raising():
        raise Refused(refused())
    assert SECRET not in str(caught.value)
    assert caught.value.code == Refused.code
    with pytest.raises(BadPayload) as told, redactor.raising():
        raise BadPayload(f"card takes integer, not string ({SECRET})", field="card")
    assert SECRET not in str(told.value)
    assert (told.value.field, "sensitive" in str(told.value)) == ("card", True)
    with pytest.raises(BadPayload, match="n takes integer"), redactor.raising():
        raise BadPayload("n takes integer, not string (x)", field="n")


def test_a_preview_hides_changes_and_what_jobs_would_get(redactor) -> None:
    preview = Preview(
        "m",
        "i",
        "edit",
        revision=1,
        before=["S"],
        configuration=["S"],
        moved=False,
        changes={"card": SECRET, "n": 1},
        added=[{"input": {"a": SECRET}}],
    )
    seen = redactor.preview(preview)
    assert (seen.changes, seen.added) == ({"card": MASK, "n": 1}, [{"input": {"a": MASK}}])
    armed = Preview(
        "m",
        "i",
        "reset",
        revision=1,
        before=["S"],
        configuration=["S"],
        moved=False,
        changes={},
        armed=[{"event": "e", "due": 1, "target": SECRET}],
    )
    assert redactor.preview(armed).armed == [{"event": "e", "due": 1, "target": MASK}]


@pytest.mark.parametrize("value", ['"quoted"', 'ends with "', "tab\tand CÄRD", ["list", {"of": "texts"}], 123456])
def test_a_copy_within_json_is_hidden_whole(value):
    redactor = Redactor(MARKED)
    redactor.learn({"card": value})
    for ascii in (True, False):
        text = json.dumps({"seen": value}, ensure_ascii=ascii)
        hidden = json.loads(redactor.text(text).replace(f": {MASK}", f': "{MASK}"'))["seen"]
        assert set(list_leaves(hidden)) == {MASK}
    assert redactor.value([True, 7, 123456.5]) == [True, 7, 123456.5]
