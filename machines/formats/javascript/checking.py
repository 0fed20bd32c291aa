"""Checks translated code. Code that publishing would refuse fails at run time instead, as in ECMAScript."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from machines.engine import expressions
from machines.engine.definitions.checks.types import Inference

from .code import Code
from .parsing import Node

if TYPE_CHECKING:
    from .translator import Translator


def wrong(found: Code) -> str:
    """Return why the code can never have a value; an empty text if it might have one."""
    read = expressions.read(found.text)
    if read.problems:
        return ""
    said: list[str] = []
    Inference({}, None, lambda code, message: said.append(message) if code == "SB112" else None).types(read.tree)
    return said[0] if said else ""


def finish(translator: Translator, node: Node, found: Code) -> Code:
    """Return the code, or code that fails and gives the reason. Code too large for one expression is reported."""
    for problem in expressions.read(found.text).problems[:1]:
        where = partial(translator.script.where, node)
        translator.scope.report.add("SB145", where, f"too much for one expression: {problem.message}", "take steps")
    why = wrong(found)
    return translator.fails(node, why) if why else found
