"""What a read took, without what this loop sent in the meantime, says how busy the server is."""

from dashboard.live.hub.hub import ThreadTime


def test_what_this_thread_did_for_others_is_not_counted_and_what_goes_beyond_it_is():
    now, worked = [100.0], [5.0]
    waiting = ThreadTime(lambda: now[0], lambda: worked[0])
    assert waiting.seconds(spare=1.0) == 0.0
    now[0] += 0.25
    assert waiting.seconds(spare=1.0) == 0.25
    worked[0] += 0.125
    assert [waiting.seconds(spare=spare) for spare in (1.0, 0.125, 0.0625, 0.0)] == [0.125, 0.125, 0.1875, 0.25]
    worked[0] += 1.0  # clocks of different grain
    assert waiting.seconds(spare=5.0) == 0.0
