"""Records whose fields are read when somebody looks at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class Late:
    """A worker takes thousands of jobs a second and looks at few of their fields; reading all of them costs more than
    the rest of taking a job. ``_late`` holds how each field is read, by its name, and what it is read from.
    """

    __slots__ = ("_late",)

    if not TYPE_CHECKING:  # to a type checker, fields are there from the start

        def __getattr__(self, name: str) -> Any:
            try:
                readers, source = object.__getattribute__(self, "_late")
                read = readers[name]
            except (AttributeError, KeyError):
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}") from None
            value = read(source)
            object.__setattr__(self, name, value)
            return value
