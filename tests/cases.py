"""A rule is one test: it looks at every file, or every case of a table, and its message names all that break it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
WITH_ID = type(pytest.param())
Cases = Iterable[Any] | Callable[[], Iterable[Any]]


def for_each(names: str, cases: Cases) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make one test that calls the function with every case, as ``parametrize`` makes one for each.

    The fixtures are those of one test: cases that need a state of their own make it. ``cases`` may be a function, which
    then runs with the test and not when tests are collected. A rule without cases would hold whatever is there: it
    fails.
    """
    wanted = [name.strip() for name in names.split(",")]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            __tracebackhide__ = True
            rows = [as_values(case, len(wanted)) for case in (cases() if callable(cases) else cases)]
            assert rows, "there is no case"
            wrong: list[tuple[str, BaseException]] = []
            for values in rows:
                try:
                    test(**dict(zip(wanted, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    wrong.append((", ".join(map(show, values)), error))
            if wrong:
                lines = [f"{title}: {type(error).__name__}: {error}" for title, error in wrong]
                raise AssertionError("\n".join([f"{len(wrong)} of {len(rows)} cases:", *lines])) from wrong[0][1]

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in wanted]
        assert len(left) + len(wanted) == len(signature.parameters), f"{test.__name__} takes no {names}"
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def as_values(case: Any, number: int) -> tuple[Any, ...]:
    """Return the values of a case, of one as ``parametrize`` takes it too."""
    if isinstance(case, WITH_ID):
        return case.values
    return (case,) if number == 1 else tuple(case)


def show(value: Any) -> str:
    """Return what names a value in a message: the path of a file below the root, else its ``repr``, cut."""
    if isinstance(value, Path) and value.is_relative_to(ROOT):
        return str(value.relative_to(ROOT))
    return repr(value)[:200]
