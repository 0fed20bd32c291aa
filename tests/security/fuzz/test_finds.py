"""What once broke a promise, for good."""

from __future__ import annotations

from contextlib import closing

import pytest

from . import finds
from .kinds import NAMES, kind
from .runner import Runner
from .stage import Stage
from .test_fuzz import COUNTS, COUNTS_OF_SITE, HANG

pytestmark = pytest.mark.redis

SAVED = finds.saved()


def test_each_kind_has_one():
    assert {find.kind for find in SAVED} >= set(NAMES) - {"frames"}


def of(*kinds: str) -> pytest.MarkDecorator:
    found = [find for find in SAVED if find.kind in kinds]
    return pytest.mark.parametrize("find", found, ids=lambda find: find.name)


def mended(place: Stage, find: finds.Find) -> None:
    with closing(kind(find.kind)) as played:
        assert Runner(place, played, limit=HANG).one(0, find.case).wrong == [], find.why


@of(*COUNTS)
def test_it_is_mended(server: Stage, find: finds.Find):
    mended(server, find)


@of(*COUNTS_OF_SITE)
def test_it_is_mended_on_the_site(sited: Stage, find: finds.Find):
    mended(sited, find)
