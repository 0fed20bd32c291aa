"""Errors of bound rows, beside those of the engine."""

from collections.abc import Iterable

from machines.engine import (
    BadInput,
    Conflict,
    EngineUnavailable,
    InstanceExists,
    LookupFailed,
    NeedsApproval,
    NotAllowed,
    Refused,
    SignalboxError,
    Suspended,
    UnknownInstance,
)


class MirrorReadOnly(BadInput):
    """A state, or its revision, was about to be written into its column, which only follows the engine.

    ``field``: such as ``shop.Order.status``."""

    code = "SB490"

    def __init__(self, field: str, attempt: str, *, column: str = "the state", hint: str = "") -> None:
        fire = f"fire an event: row.{field.rpartition('.')[2]}.fire('<event>')"
        super().__init__(
            f"{field} shows the state of a machine, and {column} cannot be {attempt}; {hint or fire}", field=field
        )


class NotSaved(BadInput):
    """The row is not in the database, so it has no instance. ``field``: ``shop.Order.status``."""

    code = "SB491"

    def __init__(self, field: str) -> None:
        super().__init__(
            f"this row of {field.rpartition('.')[0]} is not saved: save it first, then its instance exists", field=field
        )


class ColumnGone(BadInput):
    """A field follows a column that its model does not have. Nothing was sent. ``field``: ``shop.Order.status``."""

    code = "SB496"

    def __init__(self, field: str, column: str, known: Iterable[str]) -> None:
        model = field.rpartition(".")[0]
        super().__init__(
            f"{field} follows {column!r}, which {model} does not have: correct follows=, or bring the column back;"
            f" it has {', '.join(known)}",
            field=field,
        )


class CreationWaits(UnknownInstance):
    """The row's instance is created after the commit of the transaction that is open."""

    code = "SB492"

    def __init__(self, machine: str, id: str) -> None:
        self.machine, self.id = machine, id
        SignalboxError.__init__(
            self,
            f"machine {machine!r} has no instance {id!r} yet: its creation waits for the commit of the transaction",
        )


STATUSES: dict[type[SignalboxError], int] = {
    CreationWaits: 409,
    LookupFailed: 404,
    NotAllowed: 403,
    Refused: 409,
    Conflict: 409,
    Suspended: 409,
    InstanceExists: 409,
    NeedsApproval: 409,
    BadInput: 400,
    EngineUnavailable: 503,
}
"""Error -> its status over HTTP; the first that fits."""


def status_of(error: SignalboxError) -> int | None:
    """Return the status of an error of a request; None where it is the site's own fault."""
    from machines.people.errors import Forbidden, TooFast  # their models are loaded by now

    known = {Forbidden: 403, TooFast: 429, **STATUSES}
    return next((status for kind, status in known.items() if isinstance(error, kind)), None)
