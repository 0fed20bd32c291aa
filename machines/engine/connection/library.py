"""Composes the Redis Functions library ``signalbox`` from the files under ``lua/``.

The folders are for readers: a module is known by its file name alone, which is unique in the whole tree. Each file
lists the modules it uses in lines ``-- needs: a, b``; the composer writes the modules in that order, each as a local,
so nothing is global. Each file below ``lua/functions/`` is one registered function of the same name, with the flags
and the number of keys of its header. A module that says ``-- before each call: name`` has its function of that name
run with the keys before each call; what it answers other than nil is the reply. A server hides ``string``, ``cjson``
and the like while it loads a library, so the modules are built at the first call.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from machines.engine import data_layout

FAMILY = "signalbox"
NAME = f"{FAMILY}_{data_layout.READER}"
"""The name on the server. It has the number of the layout: a server refuses a library of another name with functions of
the same names, so that no older release loads its own over this one, whatever it does (``library_loader``)."""
RELEASE = 2
"""The release number of this library. It grows by one with each release, and with each layout that older ones cannot
read: a process never replaces a library of a higher number (``library_loader``)."""
SERVES = 0
"""The lowest release number of programs whose calls this library answers: that of the release before."""
BEFORE_NUMBERS = "002222ebd934"
"""The fingerprint of the last library without a number. Programs of that release load their own library over any that
answers another fingerprint, so later libraries, which answer their calls, answer this one."""
FOLDER = Path(__file__).parents[1] / "lua"

_NEEDS = re.compile(r"^-- needs: *(.+)$", re.MULTILINE)
_FLAGS = re.compile(r"^-- flags: *(.+)$", re.MULTILINE)
_BEFORE = re.compile(r"^-- before each call: *(.+)$", re.MULTILINE)
_KEYS = re.compile(r"^-- KEYS: *(none|1)\b(.*\bany further\b)?", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--")
# A call without a root would write keys without one, and a second key would be ignored in silence: `refuse` answers
# both. `explain` turns each kind of error into a reply: the server's own errors keep their text and code, the engine's
# keep their text, and all others (damaged keys, a fault of the library) are logged by the server with their line. No
# error leaves as a table without `err`: that would end a server of Redis 7.0. A function ends early with a reply by
# throwing `{ reply = ... }` (`arguments.refuse`, `replies.send`).
_ANSWERS = """local function refuse(name, takes, given)
return { 'BADARG', name .. ' takes ' .. takes .. ', not ' .. given }
end
local function explain(name, why)
if type(why) == 'table' and why.reply then return why.reply end
if type(why) == 'table' and why.err then return { err = why.err } end
local message = type(why) == 'table' and why.sb
if not message and type(why) == 'string' and not string.find(why, '^%S+:%d+: ') then return { err = why } end
if not message then
redis.log(redis.LOG_WARNING, name .. ' failed: ' .. tostring(why))
message = 'it read damaged keys, or is at fault itself; the log of the server says where'
end
if string.sub(name, 1, 3) == 'sm_' then return { err = 'ERR ' .. name .. ': ' .. message } end
return { 'FAULT', name .. ': ' .. message }
end
local function answer(name, keys, args)
local built = library or build()
local refused = built.before(keys)
if refused then return refused end
local ok, reply = pcall(built[name], keys, args)
if ok then return reply end
return explain(name, reply)
end
"""
OWN = "sb_"  # functions named sm_ answer in the style of the module whose commands they replace


class LibraryError(Exception):
    """The Lua files do not compose: a missing file, a cycle, or two files with one name."""


@dataclass(frozen=True, slots=True)
class Source:
    """Holds one Lua file: its name, path, text, the modules it needs and, for a function, its flags and the least and
    the most keys it takes."""

    name: str
    path: Path
    text: str
    needs: tuple[str, ...]
    flags: tuple[str, ...]
    before: tuple[str, ...]
    keys: tuple[int, int | None]

    @classmethod
    def read(cls, path: Path) -> Source:
        text = path.read_text(encoding="utf-8")
        return cls(
            path.stem,
            path,
            text,
            _names(_NEEDS, text),
            _names(_FLAGS, text),
            _names(_BEFORE, text),
            _number_of_keys(text),
        )


def _number_of_keys(text: str) -> tuple[int, int | None]:
    found = _KEYS.search(text)
    if found is None:
        return 0, None
    count = int(found.group(1) == "1")
    return count, None if found.group(2) else count


def _names(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    return tuple(name.strip() for line in pattern.findall(text) for name in line.split(","))


def module_paths(folder: Path = FOLDER) -> dict[str, Path]:
    """List the modules, name -> path: every file that is not below ``functions/``."""
    functions = folder / "functions"
    return _index_by_name(folder, (path for path in folder.rglob("*.lua") if functions not in path.parents))


def function_paths(folder: Path = FOLDER) -> dict[str, Path]:
    """List the registered functions, name -> path."""
    return _index_by_name(folder, (folder / "functions").rglob("*.lua"))


def _index_by_name(folder: Path, paths: Iterable[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(paths):
        other = found.setdefault(path.stem, path)
        if other != path:
            first, second = other.relative_to(folder).as_posix(), path.relative_to(folder).as_posix()
            raise LibraryError(f"two Lua files have the name {path.stem}: {first} and {second}")
    return dict(sorted(found.items()))


def _read(folder: Path) -> tuple[dict[str, Source], list[Source]]:
    """Read modules and functions; refuse a name that both use, and a function that needs a missing module."""
    modules = {name: Source.read(path) for name, path in module_paths(folder).items()}
    functions = [Source.read(path) for path in function_paths(folder).values()]
    _index_by_name(folder, (source.path for source in (*modules.values(), *functions)))
    for function in functions:
        for needed in function.needs:
            if needed not in modules:
                raise _missing(function, needed)
    return modules, functions


def _missing(source: Source, needed: str) -> LibraryError:
    return LibraryError(f"{source.path.name} needs a module {needed}, and no folder has a file {needed}.lua")


def _sort(modules: dict[str, Source]) -> list[Source]:
    """Sort the modules so that each comes after all it needs."""
    placed: list[Source] = []
    done: set[str] = set()

    def place(module: Source, path: tuple[str, ...]) -> None:
        if module.name in done:
            return
        if module.name in path:
            raise LibraryError(f"the Lua modules need each other in a circle: {' -> '.join((*path, module.name))}")
        for needed in module.needs:
            if needed not in modules:
                raise _missing(module, needed)
            place(modules[needed], (*path, module.name))
        done.add(module.name)
        placed.append(module)

    for name in sorted(modules):
        place(modules[name], ())
    return placed


def _strip(text: str) -> str:
    """Drop comment lines, empty lines and indentation: servers load, keep and replicate the text that is left.

    Strings of several lines are Lua source themselves (``step_plan.lua``), so that each line stands for itself.
    """
    lines = (line.strip() for line in text.splitlines() if not _COMMENT.match(line))
    return "\n".join(line for line in lines if line)


def _register(function: Source) -> str:
    name, flags = function.name, ", ".join(f"'{flag}'" for flag in function.flags)
    least, most = function.keys
    takes = f"{least} key{'s' * (least != 1)}{'' if most is not None else ' or more'}"
    asked = f"if #keys {'<' if most is None else '~='} {least} then return refuse('{name}', '{takes}', #keys) end\n"
    return (
        f"redis.register_function{{ function_name = '{name}', flags = {{ {flags} }}, callback = function(keys, args)\n"
        f"{asked if name.startswith(OWN) else ''}return answer('{name}', keys, args) end }}\n"
    )


def compose(folder: Path = FOLDER) -> str:
    """Compose the whole library as one Lua text, ready for FUNCTION LOAD."""
    modules, functions = _read(folder)
    parts = [f"#!lua name={NAME}\n", "local library\n", "local function build()\nlibrary = {}\n"]
    parts += [f"local {m.name} = (function()\n{_strip(m.text)}\nend)()\n" for m in _sort(modules)]
    parts += [f"library.{f.name} = (function()\n{_strip(f.text)}\nend)()\n" for f in functions]
    first = " or ".join(f"{m.name}.{name}(keys)" for m in modules.values() for name in m.before)
    parts += [f"library.before = function(keys)\nreturn {first or 'nil'}\nend\nreturn library\nend\n"]
    parts.append(_ANSWERS)
    parts += [_register(function) for function in functions]
    body = "".join(parts)
    whole = body + _version_function("")
    return body + _version_function(hashlib.sha256(whole.encode()).hexdigest()[:12])


def _version_function(fingerprint: str) -> str:
    """Write the function that answers which library the server holds; the only Lua not read from a file.

    With the argument ``release`` it answers {release number, fingerprint, lowest release that it serves}, without one
    ``BEFORE_NUMBERS``.
    """
    return (
        "redis.register_function{ function_name = 'sb_library', flags = { 'no-writes' }, callback = function(_, args)\n"
        f"if args[1] ~= 'release' then return '{BEFORE_NUMBERS}' end\n"
        f"return {{ {RELEASE}, '{fingerprint}', {SERVES} }} end }}\n"
    )


@cache
def text() -> str:
    return compose()


@cache
def fingerprint() -> str:
    """Return 12 hex digits of SHA-256 over the library: what the server's ``sb_library release`` answers last."""
    match = re.search(r"'(\w{12})', \d+ \} end \}\n\Z", text())
    assert match is not None
    return match.group(1)


@cache
def read_only() -> frozenset[str]:
    """Return the names of the functions that write nothing (flag no-writes)."""
    return frozenset(name for name, path in function_paths().items() if "no-writes" in Source.read(path).flags)
