"""Definitions with something changed: parts that go, come twice, change places, grow, or become something else.

What is not JSON stands as ``{"$odd": name}`` in a case; see ``ODD``.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.engine.definitions.strategies import KEYS

from . import trees, words, world
from .cases import MAKERS, deep, expand, many, times

ROOT = Path(__file__).parents[3]
SMALL = 12_000  # characters of a definition that is mutated: a larger one is cut by hand already

Random = random.Random
Path_ = tuple[Any, ...]

ODD: dict[str, Callable[[], Any]] = {
    "nan": lambda: float("nan"), "inf": lambda: float("inf"), "bytes": lambda: b"x", "set": lambda: {1},
    "tuple": lambda: (1, 2), "object": lambda: object(), "huge": lambda: 10**400, "half": lambda: "\ud800",
    "function": lambda: print, "class": lambda: dict,
}  # fmt: skip
SCALARS: list[Any] = [
    None, True, False, 0, 1, -1, 2**53, 1.5, 1e300, "", " ", "x", "A", "0", "é", "😀", "a.b", "*", "#x", ".x", "x y",
    "1s", "-1s", "10y", "now", "n +", "event", "In('A')", "machine:box", "#_parent", "done.invoke.x", "error",
    "__proto__", "\u202e", "\x00", "\n", "{{x}}", "${x}", "<b>", "'; --", "true", "None", [], {}, [[]], [{}],
    {"": {}},
]  # fmt: skip

NAMES = [
    "<script>x</script>", "on hold", 'say "hi"', "😀", "a:b/c{d}", "\u202egnp.exe", "a\nb", "{{ 7|add:7 }}",
    "'; DROP TABLE x; --", "done.invoke.x", "after.t1", "__proto__", "x" * 100,
]  # fmt: skip


@cache
def seeds() -> tuple[str, ...]:
    """Sound definitions, as JSON: the examples, those of the reference page, the world of raw calls."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "examples").glob("*.json"))]
    page = (ROOT / "docs" / "definition-reference.md").read_text(encoding="utf-8")
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    found += [block for block in blocks if isinstance(block, dict) and "states" in block]
    found += [world.BOX, world.YARD]
    return tuple(text for text in (json.dumps(each) for each in found) if len(text) < SMALL)


def seed(rng: Random) -> Any:
    return json.loads(rng.choice(seeds()))


def mutated(rng: Random) -> Any:
    made = seed(rng)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        made = rng.choice(CHANGES)(rng, made)
    return made


def python(value: Any) -> Any:
    """The value itself, with what is no JSON in it."""
    if isinstance(value, list):
        return [python(item) for item in value]
    if not isinstance(value, dict):
        return value
    if is_made(value):
        return ODD[value["$odd"]]() if "$odd" in value else expand(value)
    return {key: python(item) for key, item in value.items()}


def is_made(value: Any) -> bool:
    """Whether something is written as how it is made."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in (*MAKERS, "$odd")


def spread(states: int, transitions: int, effects: int, guard: str) -> Any:
    """A definition that is large and otherwise plain, as long as the guard is sound."""
    actions = [{"set": {"n": "n + 1"}}] * effects
    each = {f"e{number}": {"target": "S0", "guard": guard, "actions": actions} for number in range(transitions)}
    fields: dict[str, Any] = {"n": 0, "s": "", "u": "", "j": "", "l": [], "m": [], "o": {}, "out": None}
    return {
        "id": "large",
        "initial": "S0",
        "context": fields,
        "states": {f"S{number}": {"on": each} for number in range(states)},
    }


# Where


def places(value: Any, path: Path_ = ()) -> list[Path_]:
    """Each part; what is written as how it is made is one."""
    found: list[Path_] = [path]
    if is_made(value):
        return found
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        found += places(item, (*path, key))
    return found


def at(value: Any, path: Path_) -> Any:
    for key in path:
        value = value[key]
    return value


def put(value: Any, path: Path_, part: Any) -> Any:
    """The whole, with another part there."""
    if not path:
        return part
    at(value, path[:-1])[path[-1]] = part
    return value


def somewhere(rng: Random, value: Any, kind: type | tuple[type, ...] = object) -> Path_ | None:
    fitting = [path for path in places(value) if isinstance(at(value, path), kind)]
    return rng.choice(fitting) if fitting else None


# What


def replaced(rng: Random, whole: Any) -> Any:
    path = somewhere(rng, whole) or ()
    part = rng.choice([lambda: rng.choice(SCALARS), lambda: words.value(rng), lambda: {"$odd": rng.choice(sorted(ODD))},
                       lambda: copy.deepcopy(at(other, somewhere(rng, other) or ())), lambda: large(rng)])  # fmt: skip
    other = seed(rng)
    return put(whole, path, part())


def gone(rng: Random, whole: Any) -> Any:
    path = somewhere(rng, whole)
    if path:
        del at(whole, path[:-1])[path[-1]]
    return whole


def added(rng: Random, whole: Any) -> Any:
    """A known key somewhere, with what stands under that key in another definition, or with anything."""
    path = somewhere(rng, whole, dict)
    if path is None:
        return whole
    other, key = seed(rng), rng.choice(KEYS)
    under = [at(other, where) for where in places(other) if where and where[-1] == key]
    at(whole, path)[key] = (
        copy.deepcopy(rng.choice(under))
        if under and rng.random() < 0.7
        else rng.choice([rng.choice(SCALARS), large(rng)])
    )
    return whole


def renamed(rng: Random, whole: Any) -> Any:
    path = somewhere(rng, whole, dict)
    if path is None or not at(whole, path):
        return whole
    part = at(whole, path)
    old = rng.choice(sorted(part))
    new = rng.choice(
        [
            rng.choice(KEYS),
            rng.choice(NAMES),
            "x" * rng.choice([65, 101, 5_000]),
            old + " ",
            old.swapcase(),
            "",
            "a\x00b",
        ]
    )
    return put(whole, path, {new if key == old else key: item for key, item in part.items()})


def moved(rng: Random, whole: Any) -> Any:
    """Two parts change places, or one is also where the other is."""
    one, other = somewhere(rng, whole) or (), somewhere(rng, whole) or ()
    if one[: len(other)] == other or other[: len(one)] == one:
        return whole
    first, second = copy.deepcopy(at(whole, one)), copy.deepcopy(at(whole, other))
    whole = put(whole, one, second)
    return put(whole, other, first) if rng.random() < 0.5 else whole


def repeated(rng: Random, whole: Any) -> Any:
    """One thing of a list many times, or many states like one."""
    count = rng.choice([2, 17, 120, 600])
    path = somewhere(rng, whole, (dict, list))
    part = at(whole, path or ())
    if isinstance(part, list) and part:
        part += [copy.deepcopy(part[0]) for _ in range(count)]
    elif isinstance(part, dict) and part:
        one = rng.choice(sorted(part))
        part |= {f"{one}{number}": copy.deepcopy(part[one]) for number in range(count)}
    return whole if len(json.dumps(whole, default=str)) < 400_000 else seed(rng)


def nested(rng: Random, whole: Any) -> Any:
    path = somewhere(rng, whole) or ()
    part = copy.deepcopy(at(whole, path))
    for _ in range(rng.choice([1, 20, 150])):
        part = rng.choice([lambda part: [part], lambda part: {rng.choice(["a", "states", "do", "if", "block"]): part}])(
            part
        )
    return put(whole, path, part)


def spoken(rng: Random, whole: Any) -> Any:
    """Another expression in place of a text."""
    path = somewhere(rng, whole, str)
    return whole if path is None else put(whole, path, trees.expression(rng))


def large(rng: Random) -> Any:
    return rng.choice([
        times("x", 70_000), times("é", 40_000), deep(200, 1), deep(20_000, 1), many("k", 3_000, 1),
        many("k", 600, {}), times(["A"], 20_000), times([{"target": "A"}], 2_000), times("A.", 2_000),
        times("n+", 1_900),
    ])  # fmt: skip


CHANGES = [replaced, replaced, replaced, gone, gone, added, added, renamed, moved, repeated, nested, spoken, spoken]
