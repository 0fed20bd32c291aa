"""A module that declares a task, and that only the settings name."""

from __future__ import annotations

from tests.integrations.tasks.framework import task


@task
def multiply_the_first_number_that_is_given_by_the_second_one_that_is_given(a: float, b: float) -> float:
    return a * b
