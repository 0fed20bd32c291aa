"""Reads the parents and children of an instance as a tree, bounded in depth and number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dashboard.shared.redacted_engine import RedactedEngine
from machines.engine import Instance, SignalboxError

MAX_ANCESTORS = 8
MAX_DEPTH = 4  # generations below the instance
MAX_KIN = 60  # descendants read for one page

Key = tuple[str, str]


@dataclass(slots=True)
class Kin:
    """Holds an instance of the tree. ``states`` is empty and ``gone`` is set where it cannot be read any more.

    ``invoke``: what its parent calls it; ``more``: children that are not shown; ``here``: the instance of the page.
    """

    machine: str
    id: str
    invoke: str = ""
    states: list[str] = field(default_factory=list)
    done: bool = False
    suspended: bool = False
    gone: bool = False
    here: bool = False
    more: int = 0
    children: list[Kin] = field(default_factory=list)

    def fill(self, instance: Instance) -> None:
        """Take over where the instance stands."""
        self.states = list(instance.configuration)
        self.done, self.suspended = instance.done, bool(instance.suspended)


@dataclass(frozen=True, slots=True)
class Family:
    """Holds the tree from the highest ancestor shown. ``cut_above``: there are further ancestors; ``cut_below``:
    there are further descendants."""

    root: Kin
    cut_above: bool
    cut_below: bool
    size: int


def load_family(engine: RedactedEngine, instance: Instance) -> Family | None:
    """Read the tree around an instance, as far as the person sees its machines; None for one without kin.

    It costs a round trip for each ancestor, and one for each machine of a generation below.
    """
    if not instance.parent and not instance.children:
        return None
    here = Kin(instance.machine, instance.id, here=True)
    here.fill(instance)
    size, cut_below = _add_descendants(engine, here, instance)
    root, above, cut_above = here, instance, False
    seen = {(instance.machine, instance.id)}
    for _ in range(MAX_ANCESTORS):
        key = _find_parent(above)
        if key is None or key in seen:
            break
        seen.add(key)
        parent = Kin(*key, children=[root])
        read = _read(engine, [key]).get(key)
        size, root = size + 1, parent
        if read is None:
            parent.gone = True
            break
        parent.fill(read)
        above = read
        root.children[0].invoke = _find_invoke(read, root.children[0])
        parent.more = max(0, len(above.children) - 1)
    else:
        cut_above = _find_parent(above) is not None
    return Family(root, cut_above, cut_below, size)


def _add_descendants(engine: RedactedEngine, here: Kin, instance: Instance) -> tuple[int, bool]:
    """Add the generations below, one after the other; return how many instances, and whether some are left out."""
    size, cut = 1, False
    seen = {(here.machine, here.id)}
    generation = [(here, instance)]
    for depth in range(MAX_DEPTH + 1):
        born: dict[Key, Kin] = {}
        for parent, read in generation:
            for invoke, key in _list_children(read):
                if key in seen:
                    continue
                if depth == MAX_DEPTH or size >= MAX_KIN:
                    parent.more, cut = parent.more + 1, True
                    continue
                seen.add(key)
                born[key] = Kin(*key, invoke=invoke)
                parent.children.append(born[key])
                size += 1
        found = _read(engine, list(born))
        generation = []
        for key, kin in born.items():
            if (read_child := found.get(key)) is None:
                kin.gone = True
            else:
                kin.fill(read_child)
                generation.append((kin, read_child))
    return size, cut


def _read(engine: RedactedEngine, keys: list[Key]) -> dict[Key, Instance]:
    """Read instances, those of a machine in one round trip; those that are gone are left out."""
    found: dict[Key, Instance] = {}
    for machine in dict.fromkeys(machine for machine, _ in keys):
        ids = [id for name, id in keys if name == machine]
        try:
            answers = engine.get_many(machine, ids)
        except SignalboxError:
            continue
        found |= {(machine, one.id): one for one in answers if isinstance(one, Instance)}
    return found


def _find_parent(instance: Instance) -> Key | None:
    return (instance.parent["machine"], instance.parent["id"]) if instance.parent else None


def _list_children(instance: Instance) -> Iterator[tuple[str, Key]]:
    for invoke, child in instance.children.items():
        yield invoke, (child["machine"], child["id"])


def _find_invoke(parent: Instance, child: Kin) -> str:
    return next((invoke for invoke, key in _list_children(parent) if key == (child.machine, child.id)), "")
