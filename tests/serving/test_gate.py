"""Requests are worked on by turns: of addresses, then of the callers behind one."""

import asyncio

import pytest

from dashboard.shared.concurrency_limits import ConcurrencyLimits, Crowded, Slots, another_turn, under

FOUR = Slots(running=4, running_address=2, running_caller=1, waiting=6, waiting_address=4, waiting_caller=2)


def entered(gate, *who):
    return [gate.enter(address, caller) for address, caller in who]


def granted(turns):
    return [turn.granted.done() for turn in turns]


def test_room_follows_from_the_number_of_threads():
    assert Slots.of(16) == Slots(16, 8, 4, 256, 64, 32)
    assert min(Slots.of(4).running_caller, Slots.of(4).running_address) == 1


async def test_one_caller_and_one_address_get_their_share_and_no_more():
    gate = ConcurrencyLimits(FOUR)
    turns = entered(gate, ("a", "1"), ("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("c", ""), ("d", ""))
    assert granted(turns) == [True, False, True, False, True, True, False]
    assert (gate.running, gate.waiting) == (4, 3)


async def test_who_leaves_makes_room_for_the_next_whose_turn_it_is():
    gate = ConcurrencyLimits(FOUR)
    first = entered(gate, ("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"))
    waiting = entered(gate, ("a", "3"), ("a", "4"), ("c", "1"), ("a", "3"))
    first[2].leave()
    assert granted(waiting) == [False, False, True, False], "a has two at work"
    first[0].leave()
    assert granted(waiting) == [True, False, True, False]
    waiting[0].leave()
    assert granted(waiting) == [True, True, True, False], "another caller of the address before the same one again"
    for turn in (*first, *waiting):
        turn.leave()
        turn.leave()
    assert (gate.running, gate.waiting) == (0, 0)


async def test_addresses_take_turns_however_many_wait_behind_one():
    gate = ConcurrencyLimits(Slots(1, 1, 1, 99, 99, 99))
    order: list[str] = []

    async def work(turn) -> None:
        await turn.granted
        order.append(turn.address)
        turn.leave()

    tasks = [asyncio.create_task(work(turn)) for turn in entered(gate, *[("a", str(n)) for n in range(5)], ("b", "1"))]
    await asyncio.gather(*tasks)
    assert order.index("b") <= 2


async def test_past_what_may_wait_nothing_is_taken_in():
    gate = ConcurrencyLimits(FOUR)
    entered(gate, *[("a", "1")] * 3)
    with pytest.raises(Crowded) as caught:
        gate.enter("a", "1")
    assert caught.value.own
    entered(gate, ("a", "2"), ("a", "3"), ("a", "4"))
    with pytest.raises(Crowded) as caught:
        gate.enter("a", "5")
    assert caught.value.own
    entered(gate, *[("b", "1")] * 3, ("c", "1"))
    with pytest.raises(Crowded) as caught:
        gate.enter("d", "1")
    assert not caught.value.own


async def test_who_gives_up_waiting_is_not_given_a_turn():
    gate = ConcurrencyLimits(Slots(1, 1, 1, 9, 9, 9))
    first, second, third = entered(gate, ("a", ""), ("b", ""), ("c", ""))
    second.leave()
    first.leave()
    assert third.granted.done()
    assert (gate.running, gate.waiting) == (1, 0)


async def test_a_piece_of_an_answer_takes_a_turn_of_its_own_and_waits_where_nothing_more_may_wait():
    gate = ConcurrencyLimits(Slots(1, 1, 1, 1, 1, 1))
    first, second = entered(gate, ("a", ""), ("b", ""))
    under.set((gate, "a", ""))
    begun = asyncio.Event()

    async def piece() -> None:
        async with another_turn():
            begun.set()

    task = asyncio.create_task(piece())
    await asyncio.sleep(0.01)
    assert not begun.is_set()
    first.leave()
    second.leave()
    await asyncio.wait_for(task, 10)
    assert begun.is_set()
    assert (gate.running, gate.waiting) == (0, 0)


async def test_without_a_gate_a_piece_waits_for_nobody():
    async with another_turn():
        pass
