"""A veil over what the engine tells of one machine."""

from __future__ import annotations

import pytest

from machines.engine import BadPayload, Because, Candidate, Explanation, Instance, Preview, Refused, Sensitive, Step
from machines.masking import MASK, Veil

SECRET = "4111-0042"


@pytest.fixture
def veil() -> Veil:
    return Veil(Sensitive(frozenset({"card"}), {"open": frozenset({"pin"})}))


def instance(**data: object) -> Instance:
    return Instance("i", "m", ["S"], data, 1, 1, 0, 0)


def step(event: str, payload: dict, **changes: object) -> Step:
    return Step(1, 0, event, None, ["S"], [], "ann", f"because of {SECRET}", payload, changes)


def test_without_anything_sensitive_everything_comes_back_as_it_is() -> None:
    open = Veil()
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
def test_data_is_hidden_by_its_name_and_its_copies_by_their_value(veil, data, shown) -> None:
    assert veil.instance(instance(**data)).data == shown


def test_of_values_that_begin_alike_the_longer_one_is_found_whole(veil) -> None:
    veil.learn({"card": SECRET}, {"card": f"{SECRET}-7"})
    assert veil.text(f"{SECRET}-7 and {SECRET}") == f"{MASK} and {MASK}"


def test_instances_of_a_list_do_not_hide_each_others_values(veil) -> None:
    found = veil.instances([instance(card="green"), instance(card="other", n="green")])
    assert [one.data for one in found] == [{"card": MASK}, {"card": MASK, "n": "green"}]


def test_a_payload_is_hidden_by_the_names_of_its_event_and_what_work_brought_as_a_whole(veil) -> None:
    assert veil.payload("open", {"pin": SECRET, "by": "ann"}) == {"pin": MASK, "by": "ann"}
    assert veil.payload("other", {"card": SECRET, "by": "ann"}) == {"card": MASK, "by": "ann"}
    assert veil.payload("done.invoke.charge", {"result": {"any": 1}}) == {"result": MASK}
    assert veil.payload("error.invoke.charge", f"declined {SECRET}") == MASK


def test_steps_hide_what_any_of_them_tells(veil) -> None:
    first, second = veil.steps([step("open", {"pin": SECRET}), step("note", {"text": SECRET}, card="x", n=SECRET)])
    assert (first.payload, second.payload, second.changes) == ({"pin": MASK}, {"text": MASK}, {"card": MASK, "n": MASK})
    assert first.reason == second.reason == f"because of {MASK}"


def refused() -> Explanation:
    because = [
        Because("event.pin == card", "false", {"event.pin": "1", "card": SECRET}),
        Because("n + card > 1", "error", {"n": 2, "card": SECRET}, f"cannot add {SECRET}"),
        Because("n > 1", "false", {"n": 0}, "plain"),
    ]
    return Explanation(
        "m", "i", "open", False, 1, ["S"], [Candidate("t1", "open", "T", "g", "guard", because)], "guards"
    )


def test_a_refusal_says_why_without_the_values(veil) -> None:
    seen = veil.explanation(refused())
    assert [part.values for part in seen.candidates[0].because] == [
        {"event.pin": MASK, "card": MASK},
        {"n": 2, "card": MASK},
        {"n": 0},
    ]
    assert [part.message for part in seen.candidates[0].because] == [None, MASK, "plain"]
    assert SECRET not in veil.error(Refused(refused()))
    assert SECRET not in str(veil.facts(Refused(refused())))


def test_errors_leave_a_block_without_what_they_would_repeat(veil) -> None:
    with pytest.raises(Refused) as caught, veil.raising():
        raise Refused(refused())
    assert SECRET not in str(caught.value)
    assert caught.value.code == Refused.code
    with pytest.raises(BadPayload) as told, veil.raising():
        raise BadPayload(f"card takes integer, not string ({SECRET})", field="card")
    assert SECRET not in str(told.value)
    assert (told.value.field, "sensitive" in str(told.value)) == ("card", True)
    with pytest.raises(BadPayload, match="n takes integer"), veil.raising():
        raise BadPayload("n takes integer, not string (x)", field="n")


def test_a_preview_hides_changes_and_what_jobs_would_get(veil) -> None:
    preview = Preview(
        "m", "i", "edit", 1, ["S"], ["S"], False, {"card": SECRET, "n": 1}, added=[{"input": {"a": SECRET}}]
    )
    seen = veil.preview(preview)
    assert (seen.changes, seen.added) == ({"card": MASK, "n": 1}, [{"input": {"a": MASK}}])
