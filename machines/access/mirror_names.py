"""Tells by its name whether a machine mirrors rows of a table (``machines.attached``)."""

MIRROR = "mirror."
"""Begins the names of such machines."""


def is_mirror(machine: str) -> bool:
    return machine.startswith(MIRROR)
