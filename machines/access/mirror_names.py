"""Tells by its name whether a machine mirrors rows of a table (``machines.attached``), and whether this process has the
model, so that it can call its methods."""

MIRROR = "mirror."
"""Begins the names of such machines."""

_with_model: set[str] = set()


def is_mirror(machine: str) -> bool:
    return machine.startswith(MIRROR)


def is_mirror_without_model(machine: str) -> bool:
    return is_mirror(machine) and machine not in _with_model


def note_model(machine: str) -> None:
    _with_model.add(machine)


def forget_model(machine: str) -> None:
    _with_model.discard(machine)
