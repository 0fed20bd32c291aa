"""Composes the Redis Functions library ``signalbox`` from the files under ``lua/``.

Each file names what it stands on in lines ``-- needs: a, b``; modules come out in that order, each wrapped as a
local of its own, so nothing is global. Each file under ``lua/functions/`` is registered under its own name, with
the flags its header lists. A module that says ``-- before each call: name`` has that function of
its own run first. While a library loads, a server hides ``string``, ``cjson`` and the like from it, so the modules
are put together at the first call. How many keys a function takes its header says, and here it is asked.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NAME = "signalbox"
FOLDER = Path(__file__).parent / "lua"

_NEEDS = re.compile(r"^-- needs: *(.+)$", re.MULTILINE)
_FLAGS = re.compile(r"^-- flags: *(.+)$", re.MULTILINE)
_BEFORE = re.compile(r"^-- before each call: *(.+)$", re.MULTILINE)
_KEYS = re.compile(r"^-- KEYS: *(none|1)\b(.*\bany further\b)?", re.MULTILINE)
# A root that is missing has no keys below it; further ones would be left out in silence. Nothing that is thrown gets
# out as it is: what the server refused is told in its words, under its code; what the engine threw, in its own; what
# can only be damaged keys, or a fault of the library, stands with its place in the server's log. An error that is a
# table without `err` would end a server of Redis 7.0.
_ANSWERS = """local function refused(name, takes, given)
return { 'BADARG', name .. ' takes ' .. takes .. ', not ' .. given }
end
local function failed(name, why)
if type(why) == 'table' and why.err then return { err = why.err } end
local told = type(why) == 'table' and why.sb
if not told and type(why) == 'string' and not string.find(why, '^%S+:%d+: ') then return { err = why } end
if not told then
redis.log(redis.LOG_WARNING, name .. ' failed: ' .. tostring(why))
told = 'it met what the engine does not write, or is at fault itself; the log of the server says where'
end
if string.sub(name, 1, 3) == 'sm_' then return { err = 'ERR ' .. name .. ': ' .. told } end
return { 'FAULT', name .. ': ' .. told }
end
local function answer(name, keys, args)
local ok, reply = pcall(prepare()[name], keys, args)
if ok then return reply end
return failed(name, reply)
end
"""
OWN = "sb_"  # those of sm_ answer as the module does whose commands they are


class LibraryError(Exception):
    """The Lua files do not compose: a missing file, a cycle, or a name used twice."""


@dataclass(frozen=True, slots=True)
class Source:
    """One Lua file: its name, text, the modules it needs and, for a function, its flags and how many keys it takes:
    the least and the most of them."""

    name: str
    text: str
    needs: tuple[str, ...]
    flags: tuple[str, ...]
    before: tuple[str, ...]
    keys: tuple[int, int | None]

    @classmethod
    def read(cls, path: Path) -> Source:
        text = path.read_text(encoding="utf-8")
        return cls(path.stem, text, _names(_NEEDS, text), _names(_FLAGS, text), _names(_BEFORE, text), _keys(text))


def _keys(text: str) -> tuple[int, int | None]:
    found = _KEYS.search(text)
    if found is None:
        return 0, None
    count = int(found.group(1) == "1")
    return count, None if found.group(2) else count


def _names(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    return tuple(name.strip() for line in pattern.findall(text) for name in line.split(","))


def _ordered(modules: dict[str, Source]) -> list[Source]:
    """The modules, each after all it needs."""
    placed: list[Source] = []
    done: set[str] = set()

    def place(name: str, path: tuple[str, ...]) -> None:
        if name in done:
            return
        if name in path:
            raise LibraryError(f"the Lua modules need each other in a circle: {' -> '.join((*path, name))}")
        if name not in modules:
            raise LibraryError(f"{path[-1]}.lua needs {name}.lua, which is not there")
        for needed in modules[name].needs:
            place(needed, (*path, name))
        done.add(name)
        placed.append(modules[name])

    for name in sorted(modules):
        place(name, ())
    return placed


def _built(function: Source) -> str:
    return f"library.{function.name} = (function()\n{function.text}\nend)()\n"


def _registered(function: Source) -> str:
    name, flags = function.name, ", ".join(f"'{flag}'" for flag in function.flags)
    least, most = function.keys
    takes = f"{least} key{'s' * (least != 1)}{'' if most is not None else ' or more'}"
    asked = f"if #keys {'<' if most is None else '~='} {least} then return refused('{name}', '{takes}', #keys) end\n"
    return (
        f"redis.register_function{{ function_name = '{name}', flags = {{ {flags} }}, callback = function(keys, args)\n"
        f"{asked if name.startswith(OWN) else ''}return answer('{name}', keys, args) end }}\n"
    )


def compose(folder: Path = FOLDER) -> str:
    """The whole library as one Lua text, ready for FUNCTION LOAD."""
    modules = {path.stem: Source.read(path) for path in sorted(folder.glob("*.lua"))}
    functions = [Source.read(path) for path in sorted((folder / "functions").glob("*.lua"))]
    for function in functions:
        if function.name in modules:
            raise LibraryError(f"{function.name} is the name of a module and of a function")
        for needed in function.needs:
            if needed not in modules:
                raise LibraryError(f"functions/{function.name}.lua needs {needed}.lua, which is not there")
    parts = [f"#!lua name={NAME}\n", "local library\n", "local function build()\nlibrary = {}\n"]
    parts += [f"local {m.name} = (function()\n{m.text}\nend)()\n" for m in _ordered(modules)]
    parts += [_built(function) for function in functions]
    first = "".join(f"{m.name}.{name}()\n" for m in modules.values() for name in m.before)
    parts += [f"library.before = function()\n{first}end\nreturn library\nend\n"]
    parts += ["local function prepare()\nlocal built = library or build()\nbuilt.before()\nreturn built\nend\n"]
    parts.append(_ANSWERS)
    parts += [_registered(function) for function in functions]
    body = "".join(parts)
    return body + _version_function(hashlib.sha256(body.encode()).hexdigest()[:12])


def _version_function(fingerprint: str) -> str:
    """A function that answers which library the server holds; the only Lua not read from a file."""
    return (
        "redis.register_function{ function_name = 'sb_library', flags = { 'no-writes' }, "
        f"callback = function() return '{fingerprint}' end }}\n"
    )


@cache
def text() -> str:
    return compose()


@cache
def fingerprint() -> str:
    """12 hex of SHA-256 over the library: what the server's ``sb_library`` must answer."""
    match = re.search(r"callback = function\(\) return '(\w{12})' end \}\n\Z", text())
    assert match is not None
    return match.group(1)


@cache
def read_only() -> frozenset[str]:
    """Names of the functions that write nothing (flag no-writes)."""
    paths = (FOLDER / "functions").glob("*.lua")
    return frozenset(source.name for source in map(Source.read, paths) if "no-writes" in source.flags)
