"""Things that must make no difference: how many partitions a machine has, and holding an instance for a while."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.dumps import unchanged

from .profile import RUN, TIMES
from .strategies import EVENTS, IDS, PAYLOADS, Kind, charts
from .test_properties import WAITS, Yard, call, calls
from .twin import given as present

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120 * TIMES)]

KIND = Kind(timers=True, work=True)
FEW = {"actor": "a", "reason": "r"}


def told(instance, shift=0):
    """What an instance is but for its steps, with its deadlines ``shift`` ms earlier."""
    timers = sorted((timer.event, timer.state, timer.sendid, timer.due - shift) for timer in instance.timers)
    return instance.configuration, present(instance.data), instance.done, timers, len(instance.jobs)


def overview(yard):
    """Instances in the order they are found, and every sum."""
    found = yard.engine.find(yard.name, limit=1000)
    live = yard.engine.live(yard.name)
    instances = [(one.id, told(one), one.revision, one.entered) for one in found]
    return instances, live.counts, live.oldest, live.flow, live.total, live.timers, live.queues


@RUN
@given(chart=charts(KIND), made=calls(Kind(timers=True)))
def test_two_partitions_are_like_one(redis_url, chart, made):
    yards = [Yard(redis_url, chart, partitions) for partitions in (1, 2)]
    try:
        for name, *arguments in [("create", id) for id in IDS] + made:
            for yard in yards:
                getattr(yard, name)(*arguments)
            one, two = map(overview, yards)
            assert one == two
    finally:
        for yard in yards:
            yard.close()


# Each example looks at every key many times over.
FEWER = settings(RUN, max_examples=6 * TIMES)
HOLDS = st.sampled_from([None, None, 0, 5000, 1_000_000])  # ms an instance is held after a call; None: it is not


@FEWER
@given(
    chart=charts(KIND),
    made=st.lists(
        st.tuples(st.one_of(call("fire", st.sampled_from(EVENTS), PAYLOADS), call("tick", WAITS)), HOLDS),
        min_size=6,
        max_size=16,
    ),
)
def test_holding_an_instance_changes_nothing_but_time(redis_url, chart, made):
    free, held = Yard(redis_url, chart), Yard(redis_url, chart)
    try:
        for yard in (free, held):
            yard.create("p")
        for (name, *arguments), ms in made if free.version_of("p") else ():
            for yard in (free, held):
                getattr(yard, name)(*(["p"] if name == "fire" else []), *arguments)
            if ms is not None and not held.engine.get("m", "p").done:
                hold(held, ms)
            assert told(free.engine.get("m", "p")) == told(held.engine.get("m", "p"), held.now - free.now)
    finally:
        free.close()
        held.close()


def hold(yard, ms):
    """Suspends the instance and resumes it later, its timers moved by as long. Meanwhile nothing can happen to it."""
    yard.engine.suspend("m", "p", now=yard.now, **FEW)
    yard.now += ms
    with unchanged(yard.engine):
        yard.engine.tick("m", now=yard.now + 1_000_000)
    yard.engine.resume("m", "p", overdue="shift", now=yard.now, **FEW)
