"""The definition that a change is made to, before its text is."""

from dataclasses import dataclass, field
from typing import Any

from machines.engine.definitions.scope import Branch, Tree

from .edits import GONE
from .places import Path


class Refused(Exception):
    """The change cannot be made; its text says why."""


@dataclass(frozen=True, slots=True)
class Move:
    """A state that gets another place. ``begins``: whether it is the first state in there, and the initial one."""

    source: Path
    within: Path
    begins: bool = False

    @property
    def key(self) -> str:
        return str(self.source[-1])

    def leave(self, definition: dict[str, Any]) -> list[Path]:
        """List what goes where it was: the state, or all that made the state around it one with states inside."""
        around = self.source[:-2]
        if not around or len(follow(definition, self.source[:-1])) > 1:
            return [self.source]
        return [(*around, key) for key in ("initial", "states") if key in follow(definition, around)]


@dataclass
class Drawing:
    """A definition that is changed. ``renamed``: path -> new key; ``breaks``: what else goes or changes, in words.
    ``move``: made after all else."""

    definition: dict[str, Any]
    tree: Tree
    renamed: dict[Path, str] = field(default_factory=dict)
    breaks: list[str] = field(default_factory=list)
    move: Move | None = None

    def find(self, name: Any) -> Branch:
        branch = self.tree.names.get(str(name))
        if branch is None:
            raise Refused(f"There is no state {name}.")
        return branch

    def at(self, path: Path) -> Any:
        return follow(self.definition, path)

    def put(self, path: Path, value: Any) -> None:
        self.at(path[:-1])[path[-1]] = value

    def remove(self, path: Path) -> None:
        """Remove a value; a list, and an ``on`` or ``after``, that would be empty then goes too."""
        self.put(path, GONE)
        around = self.at(path[:-1])
        rest = around.values() if isinstance(around, dict) else around
        is_holder = isinstance(around, list) or (path[-2] in ("on", "after") and path[-3:-2] != ("states",))
        if is_holder and all(one is GONE for one in rest):
            self.remove(path[:-1])

    def finish(self) -> dict[str, Any]:
        """Return the definition as it is to be read."""
        made: dict[str, Any] = _finish(self.definition, (), self.renamed)
        if self.move is not None:
            state = follow(made, self.move.source)
            for path in self.move.leave(made):
                del follow(made, path[:-1])[path[-1]]
            body = follow(made, self.move.within)
            if self.move.begins:
                body.setdefault("initial", self.move.key)
            body.setdefault("states", {})[self.move.key] = state
        return made


def _finish(value: Any, path: Path, renamed: dict[Path, str]) -> Any:
    if isinstance(value, dict):
        kept = {key: (*path, key) for key, one in value.items() if one is not GONE}
        return {renamed.get(below, key): _finish(value[key], below, renamed) for key, below in kept.items()}
    if isinstance(value, list):
        return [_finish(one, (*path, at), renamed) for at, one in enumerate(value) if one is not GONE]
    return value


def path_of(branch: Branch) -> Path:
    return tuple(part for key in branch.keys for part in ("states", key))


def follow(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value
