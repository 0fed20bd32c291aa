from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard.live.limits import Limits, limits
from tests.configuration import configure


def test_without_settings_the_defaults_are_in_force(settings) -> None:
    configure(settings, LIVE={})
    assert limits() == Limits()


def test_single_limits_can_be_set(settings) -> None:
    configure(settings, LIVE={"reconcile": 0.25})
    assert limits().reconcile == 0.25
    assert limits().topics == Limits().topics


def test_an_unknown_limit_stops_the_start_and_the_known_ones_are_named(settings) -> None:
    configure(settings, LIVE={"reconsile": 1})
    with pytest.raises(ImproperlyConfigured, match=r"reconsile.*reconcile"):
        limits()


def test_a_hint_is_waited_out_for_longer_than_the_pulse_lasts() -> None:
    assert Limits().settle > 0.050
