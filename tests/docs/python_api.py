"""Renders docs/python-api.md from the source: engines, records, errors and the model field, with their docstrings.

python -m tests.docs.python_api docs/python-api.md
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, is_typeddict

import machines.engine as public
from machines.engine import errors
from machines.engine.aio import async_engine
from machines.engine.aio.calls import LEFT_OUT
from machines.engine.engine import Engine
from tests.docs.engine_reference import read_remark
from tests.engine.aio.method_generator import PARTS

FIELDS = Path(__file__).resolve().parents[2] / "machines" / "fields.py"
HOOKS = frozenset(
    [
        "check", "contribute_to_class", "deconstruct", "facts", "formfield", "from_db_value", "get_db_prep_save",
        "get_internal_type", "get_placeholder", "get_placeholder_sql", "get_prep_value",
        "pre_save", "to_python", "value_to_string",
    ]
)  # fmt: skip
"""Methods that Django, or the base class of errors, calls: no part of the page."""
OTHERS = (errors.SignalboxError, Engine, public.AsyncEngine)
WIDTH = 110
AWAITED = "The methods of [Engine](#engine), awaited: same names, arguments, results and errors."


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A public name. ``call``: how it is written, with its arguments; ``text``: its docstring."""

    owner: str
    name: str
    call: str
    text: str


def list_records() -> list[type]:
    """List the public classes that are neither engines nor errors."""
    found = [getattr(public, name) for name in public.__all__]
    return [one for one in found if inspect.isclass(one) and not issubclass(one, OTHERS)]


def list_errors() -> list[type[errors.SignalboxError]]:
    """List the public errors, base classes first."""
    found = [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, errors.SignalboxError)]
    return sorted(found, key=lambda one: len(one.__mro__))


def list_members(owner: type, root: type = object) -> Iterator[Entry]:
    """List the public methods and properties of a class in the order of its source, those of base classes after its
    own, down to ``root``."""
    seen: set[str] = set()
    for kind in owner.__mro__:
        if kind in root.__mro__ or not kind.__module__.startswith("machines."):
            continue
        for name, member in vars(kind).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            if isinstance(member, property):
                yield Entry(owner.__name__, name, name, _clean(inspect.getdoc(member)))
            elif inspect.isfunction(member) or isinstance(member, (classmethod, staticmethod)):
                method = getattr(owner, name)
                yield Entry(owner.__name__, name, _write_call(name, method), _clean(inspect.getdoc(method)))


def list_entries() -> list[Entry]:
    """List all public methods and properties of the page."""
    owners: list[tuple[type, type]] = [(Engine, object), (public.AsyncEngine, object)]
    owners += [(getattr(async_engine, name), object) for name in PARTS.values()]
    owners += [(one, object) for one in list_records()]
    owners += [(one, one.__base__ or object) for one in list_errors()]
    return [entry for owner, root in owners for entry in list_members(owner, root)]


def _write_call(name: str, method: Any) -> str:
    """Write a method with its arguments, in several lines where one is too long."""
    signature = inspect.signature(method)
    words, starred = [], False
    for one in signature.parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not starred:
            words.append("*")
        starred = starred or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        words.append(_write_parameter(one))
    begin = "await " if inspect.iscoroutinefunction(method) else ""
    arrow = "" if signature.return_annotation in (signature.empty, "None") else f" -> {signature.return_annotation}"
    line = f"{begin}{name}({', '.join(words)}){arrow}"
    if len(line) <= WIDTH:
        return line
    inner = "".join(f"    {word},\n" for word in words)
    return f"{begin}{name}(\n{inner}){arrow}"


def _write_parameter(one: inspect.Parameter) -> str:
    mark = {"VAR_KEYWORD": "**", "VAR_POSITIONAL": "*"}.get(one.kind.name, "")
    kind = "" if one.annotation is one.empty else f": {one.annotation}"
    default = "" if one.default is one.empty else f" = {one.default!r}" if kind else f"={one.default!r}"
    return f"{mark}{one.name}{kind}{default}"


def _clean(text: str | None) -> str:
    """Turn a docstring into Markdown: the paragraphs stay, reST's double backticks become single ones."""
    return re.sub(r"``(.+?)``", r"`\1`", text or "", flags=re.DOTALL)


def _write_entry(entry: Entry) -> str:
    code = f"    {entry.call}".replace("\n", "\n    ") if "(" in entry.call else f"    {entry.name}  # property"
    return f"#### `{entry.owner}.{entry.name}`\n\n{code}\n\n{entry.text}"


def _write_class(owner: type, root: type = object) -> str:
    parts = [f"### {owner.__name__}", _clean(inspect.getdoc(owner) if owner.__doc__ else "")]
    if dataclasses.is_dataclass(owner):
        parts.append(_write_fields(owner))
    elif is_typeddict(owner):
        parts.append("\n".join(f"    {name}: {kind.__forward_arg__}" for name, kind in owner.__annotations__.items()))
    parts += [_write_entry(entry) for entry in list_members(owner, root)]
    return "\n\n".join(part for part in parts if part)


def _write_fields(owner: Any) -> str:
    rows = []
    for one in dataclasses.fields(owner):
        if one.name.startswith("_"):
            continue
        default = "" if one.default is dataclasses.MISSING else f" = {one.default!r}"
        rows.append(f"    {one.name}: {one.type}{default}")
    return "\n".join(rows)


def write_error(owner: type[errors.SignalboxError]) -> str:
    base = owner.__base__
    above = f", a {base.__name__}" if base is not None and base is not Exception else ""
    texts = [_clean(owner.__dict__.get("__doc__") and inspect.getdoc(owner)), read_remark(owner.__name__)]
    parts = [f"### {owner.__name__}", f"Code {owner.code}{above}.", *dict.fromkeys(text for text in texts if text)]
    parts += [_write_entry(entry) for entry in list_members(owner, base or object) if entry.name != "facts"]
    return "\n\n".join(parts)


# The model field: read without importing Django


def list_field_entries(path: Path = FIELDS) -> list[Entry]:
    """List what ``machines.fields`` exports, with the public methods of its classes."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    found: list[Entry] = []
    for name in _list_exports(module):
        node = _find_definition(module, name, path.parents[1])
        found.append(_read_node("", node))
        if isinstance(node, ast.ClassDef):
            inner = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name not in HOOKS]
            found += [_read_node(name, one) for one in inner if not one.name.startswith("_")]
    return found


def _list_exports(module: ast.Module) -> list[str]:
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def _find_definition(module: ast.Module, name: str, root: Path) -> ast.ClassDef | ast.FunctionDef:
    """Return a class or function of a module, or of the module that it imports it from."""
    for node in module.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            source = root.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            return _find_definition(ast.parse(source.read_text(encoding="utf-8")), name, root)
    raise LookupError(f"{name} is exported and defined nowhere")


def _read_node(owner: str, node: ast.ClassDef | ast.FunctionDef) -> Entry:
    text = _clean(ast.get_docstring(node))
    if isinstance(node, ast.ClassDef):
        made = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
        return Entry(owner, node.name, f"{node.name}({_write_arguments(made)})" if made else node.name, text)
    if any(ast.unparse(one) == "property" for one in node.decorator_list):
        return Entry(owner, node.name, f"{node.name}  # property", text)
    returned = f" -> {ast.unparse(node.returns)}" if node.returns and ast.unparse(node.returns) != "None" else ""
    return Entry(owner, node.name, f"{node.name}({_write_arguments(node)}){returned}", text)


def _write_arguments(node: ast.FunctionDef) -> str:
    return re.sub(r"^(self|cls)(, )?", "", ast.unparse(node.args))


def _write_field_entry(entry: Entry) -> str:
    title = f"#### `{entry.owner}.{entry.name}`" if entry.owner else f"### {entry.name}"
    return f"{title}\n\n    {entry.call}\n\n{entry.text}"


def render() -> str:
    """Return the text of the page."""
    left_out = "\n".join(f"- `{name}`: {why}." for name, why in sorted(LEFT_OUT.items()))
    own, same = [], []
    for entry in list_members(public.AsyncEngine):
        if entry.call.startswith("await ") and hasattr(Engine, entry.name):
            same.append(f"[`{entry.name}`](#engine{entry.name})")
        else:
            own.append(entry)
    parts = [
        "# Python API",
        "Made from the source by `python -m tests.docs.python_api docs/python-api.md`; do not edit by hand.",
        "Everything here is imported from `machines.engine`, but for [the model field](#the-model-field). Times are ms "
        "since the epoch, durations ms, unless a text says seconds. [Errors](#errors) say which calls may be repeated.",
        "## Engines",
        _write_class(Engine),
        "### AsyncEngine",
        _clean(inspect.getdoc(public.AsyncEngine)),
        f"{AWAITED} [asyncio](asyncio.md) says when to use it.",
        *(_write_entry(entry) for entry in own),
        f"Awaited, as in `await engine.fire(...)`: {', '.join(same)}.",
        f"Left out:\n\n{left_out}",
        *(_write_class(getattr(async_engine, name)) for name in PARTS.values()),
        "## Records",
        *(_write_class(one) for one in sorted(list_records(), key=lambda one: one.__name__)),
        "## Errors",
        "All are subclasses of `SignalboxError`, in `machines.engine` and `machines.engine.errors`.",
        *(write_error(one) for one in list_errors()),
    ]
    if entries := list_field_entries():
        parts += ["## The model field", "From `machines.fields`.", *map(_write_field_entry, entries)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
