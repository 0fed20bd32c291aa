"""Random charts and random events: the engine does what appendix D of the SCXML recommendation says.

The oracle is ``reference.py``, which follows the appendix procedure by procedure and shares no code with the engine.
Both write down all they do, so that what agrees here agrees in configuration, data and every order: of exits,
transitions, entries, default contents, internal and external events, timers.

``profile.py`` says how to make the runs longer.
"""

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from .profile import RUN, TIMES
from .strategies import EVENTS, PAYLOADS, Kind, charts
from .twin import Twin

KINDS = {
    "flat and nested": Kind(),
    "timers": Kind(timers=True),
    "failures that refuse": Kind(timers=True, failures=True),
    "failures that are raised": Kind(failures=True, raises=True),
    "work": Kind(work=True),
    "everything": Kind(timers=True, work=True, failures=True, raises=True),
}


def calls(kind: Kind):
    """What is done to an instance: (method of Twin, arguments)."""
    fires = st.tuples(st.just("fire"), st.tuples(st.sampled_from(EVENTS), PAYLOADS))
    waits = st.tuples(st.just("wait"), st.tuples(st.sampled_from([0, 1000, 4000, 70_000])))
    ends = st.tuples(st.just("end_work"), st.tuples(st.sampled_from(["done", "error"])))
    return st.one_of(fires, fires, *([waits] if kind.timers else []), *([ends] if kind.work else []))


@pytest.mark.timeout(120 * TIMES)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_engine_follows_the_recommendation(shared, kind):
    @RUN
    @given(chart=charts(kind), made=st.lists(calls(kind), min_size=6, max_size=20))
    def check(chart, made):
        with Twin(shared, chart).living() as twin:
            for method, arguments in made if twin.alive else ():
                getattr(twin, method)(*arguments)
                note(twin.reference.data["trace"])

    check()
