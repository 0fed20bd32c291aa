"""Writes ``async_engine.py``: a coroutine for each public method of ``Engine``, with its signature and docstring.

    python -m tests.engine.aio.method_generator

A test fails when the file is not what this writes.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

from machines.engine.aio import async_engine
from machines.engine.aio.calls import LEFT_OUT
from machines.engine.engine import Engine
from machines.engine.instances.retirement import Retirement
from machines.engine.messages.emitted import EmittedLogs

PATH = Path(async_engine.__file__)
PARTS: dict[type, str] = {EmittedLogs: "AsyncEmittedLogs", Retirement: "AsyncRetirement"}
"""Classes whose objects methods of ``Engine`` return and that call Redis, and the names of their asynchronous form."""
OWN = frozenset(["from_url"])  # written by hand in ``calls``

MARKS: dict[object, str] = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}

Method = Callable[..., Any]

HEAD = '''"""The engine for asyncio, made of the methods of ``Engine`` by ``tests.engine.aio.method_generator``.

Do not edit: a test holds this file against ``Engine``.
"""

from __future__ import annotations

'''
CLASS = '''class AsyncEngine(AsyncCalls):
    """Runs the state machines of one Redis from asyncio: the methods of ``Engine``, awaited, with the same records and
    errors.

    Safe to share between the tasks of one event loop; make one per loop, with ``from_url``. Calls of all tasks go over
    one connection, written together, and none of them blocks the loop. A call whose task is cancelled, or that
    ``asyncio.timeout`` ends, may or may not have happened once it was sent: repeat it with a ``key``, or with the
    revision in ``expect``.
    """
'''
PART = '''class {name}(AsyncPart[{of}]):
    """The methods of ``{of}``, awaited."""
'''


def generate() -> str:
    """Return the text of ``async_engine.py``."""
    imports = {part.__name__: part.__module__ for part in (Engine, *PARTS)}
    bodies = []
    for part, name in PARTS.items():
        methods = [_write(part, method, imports) for method in list_methods(part)]
        bodies.append("\n".join([PART.format(name=name, of=part.__name__), *methods]))
    bodies.append("\n".join([CLASS, *(_write(Engine, method, imports) for method in list_methods(Engine))]))
    return HEAD + _write_imports(imports) + "\n\n\n" + "\n\n".join(bodies).rstrip() + "\n"


def list_methods(owner: type) -> Iterator[Method]:
    """List the public methods that get an asynchronous form, in the order of the source."""
    seen = {*LEFT_OUT, *OWN}
    for kind in owner.__mro__:
        for name, method in vars(kind).items():
            if inspect.isfunction(method) and not name.startswith("_") and name not in seen:
                seen.add(name)
                yield inspect.unwrap(method)


def _write(owner: type, method: Method, imports: dict[str, str]) -> str:
    """Write one method. ``imports`` gets the names of its annotations: name -> module."""
    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    for annotation in (*(p.annotation for p in parameters), signature.return_annotation):
        _collect(method, annotation, imports)
    part = PARTS.get(method.__globals__.get(signature.return_annotation, object))
    head = f"    {'' if part else 'async '}def {method.__name__}(self{_write_parameters(parameters)})"
    doc = _write_docstring(method.__doc__ or "")
    target = f"{owner.__name__}.{method.__name__}"
    if part:
        return f"{head} -> {part}:\n{doc}        return {part}(self, {target})\n"
    passed = ", ".join([target, *map(_write_argument, parameters)])
    give = "" if signature.return_annotation == "None" else "return "
    # A method with ** of any name may get ``self``, as far as mypy can tell.
    free = any(one.kind is one.VAR_KEYWORD and "Unpack" not in one.annotation for one in parameters)
    mark = "  # type: ignore[arg-type]" if free else ""
    return f"{head} -> {signature.return_annotation}:\n{doc}        {give}await self._call({passed}){mark}\n"


def _write_docstring(doc: str) -> str:
    """Write a docstring with the indentation of its source, which Python removes from 3.13 on."""
    end = "\n" if doc.rstrip(" ").endswith("\n") else ""
    return indent(f'"""{inspect.cleandoc(doc)}{end}"""\n', " " * 8)


def _write_parameters(parameters: list[inspect.Parameter]) -> str:
    words, starred = [], False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        mark = MARKS.get(one.kind, "")
        starred = starred or one.kind is one.VAR_POSITIONAL
        default = "" if one.default is one.empty else f" = {one.default!r}"
        words.append(f"{mark}{one.name}: {one.annotation}{default}")
    return "".join(f", {word}" for word in words)


def _write_argument(one: inspect.Parameter) -> str:
    if one.kind is one.KEYWORD_ONLY:
        return f"{one.name}={one.name}"
    return MARKS.get(one.kind, "") + one.name


def _collect(method: Method, annotation: str, imports: dict[str, str]) -> None:
    """Note where each name of an annotation comes from: its own module for a class, else the method's."""
    for node in ast.walk(ast.parse(annotation, mode="eval")):
        if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
            meant = method.__globals__[node.id]
            named = getattr(meant, "__name__", None) == node.id
            imports.setdefault(node.id, meant.__module__ if named else method.__module__)


def _write_imports(imports: dict[str, str]) -> str:
    lines: dict[str, list[str]] = {}
    for name, module in sorted(imports.items()):
        lines.setdefault(module, []).append(name)
    written = {module: f"from {module} import {', '.join(names)}" for module, names in sorted(lines.items())}
    outside = [line for module, line in written.items() if not module.startswith("machines.")]
    own = [line for module, line in written.items() if module.startswith("machines.")]
    return "\n".join([*outside, "", *own, "", "from .calls import AsyncCalls, AsyncPart"])


def main() -> None:
    PATH.write_text(generate(), encoding="utf-8")
    sys.stdout.write(f"{PATH} is written; format it: ruff format {PATH}\n")


if __name__ == "__main__":
    main()
