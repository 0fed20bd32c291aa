from __future__ import annotations

from dashboard.live.hub.subscriber import add_missing, name_channel, sufficient
from tests.cases import for_each


@for_each(
    "before, after",
    [
        ("", "K$"),
        ("K", "K$"),
        ("$", "$K"),
        ("Ex", "ExK$"),
        ("KEA", "KEA"),
        ("AKE", "AKE"),
        ("K$", "K$"),
        ("$K", "$K"),
        ("A", "AK$"),
        ("Kgh", "Kgh$"),
    ],
)
def test_what_is_needed_is_added_and_what_is_set_stays(before: str, after: str) -> None:
    assert add_missing(before) == after
    assert sufficient(after)


@for_each("flags", ["", "K", "E$", "A", "EA", "Kgx"])
def test_flags_that_do_not_carry_a_pulse(flags: str) -> None:
    assert not sufficient(flags)


def test_the_channel_is_exact() -> None:
    assert name_channel(3, "sb:{activation:0}:pulse") == "__keyspace@3__:sb:{activation:0}:pulse"
