"""Walks over a document before it is translated, and names its states, variables and functions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from machines.engine import limits
from machines.formats.javascript import scripts
from machines.formats.javascript.parsing import (
    Node,
    Script,
    SyntaxProblem,
    is_function,
    parse_expression,
    parse_program,
)
from machines.formats.javascript.scope import Function, function_of
from machines.formats.scxml.elements import OURS, SCXML, Element
from machines.formats.text import Names, Report

STATES = ("state", "parallel", "final", "history")
_FILE = re.compile(r"""["']((?:file:)?[^"'<>\s]{1,200}\.scxml)["']""")
VARIABLE = re.compile(r"[A-Za-z_$][\w$]*")
RESERVED = re.compile(
    r"break|case|catch|class|const|continue|debugger|default|delete|do|else|export|extends|finally|for|function|if|"
    r"import|in|instanceof|new|return|super|switch|this|throw|try|typeof|var|void|while|with|yield|null|true|false|"
    r"enum|await"
)


@dataclass(slots=True)
class Survey:
    """``names``: what each state is called here, ``by_id``: by its id in the document; ``variables``: in the order they
    are met; ``programs``: scripts, read once. ``body`` is the root, or the state that stands for the machine itself,
    which is called like it.
    """

    root: Element
    names: dict[Element, str] = field(default_factory=dict)
    by_id: dict[str, str] = field(default_factory=dict)
    histories: set[str] = field(default_factory=set)
    data: list[Element] = field(default_factory=list)
    variables: dict[str, Element] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    programs: dict[Element, tuple[Script, list[Node]] | SyntaxProblem] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)  # names of documents in quotes, anywhere in the text
    body: Element = field(init=False)

    def __post_init__(self) -> None:
        tops = list(self.root.all(*STATES))
        self.body = tops[0] if len(tops) == 1 and tops[0].get("root", OURS) == "true" else self.root


def survey(root: Element, machine: str, report: Report, texts: dict[Element, str]) -> Survey:
    """Survey a document. ``machine``: its full name; ``texts``: the contents of scripts in files of their own."""
    found = Survey(root, files=list(dict.fromkeys(_FILE.findall(root.source.text))))
    elements = list(_walk_own(root))
    _name_states(found, elements, report)
    _name_body(found, machine, report)
    for element in elements:
        if element.is_scxml("data"):
            _data(found, element, report)
    for element in elements:
        if element.is_scxml("script"):
            _script(found, element, texts.get(element), report)
        elif element.is_scxml("foreach"):
            for attribute in ("item", "index"):
                _variable(found, element.get(attribute), element)
    return found


def _walk_own(element: Element) -> Iterator[Element]:
    """Yield every element except those of nested documents."""
    for child in element.children:
        if not child.is_scxml("scxml"):
            yield child
            yield from _walk_own(child)


def _name_states(found: Survey, elements: list[Element], report: Report) -> None:
    body = found.body
    states = [one for one in elements if one.space in (SCXML, "") and one.name in STATES and one is not body]
    names = Names(id for element in states if (id := element.get("id")))
    for element in states:
        id = element.get("id") or names.free(element.name)
        if id in found.by_id:
            report.add("SB144", partial(element.locate, "id"), f'another state has the id "{id[:80]}" too')
            id = names.free(id)
        name = element.get("name", OURS) or id
        if (why := limits.check_state_name(name)) is not None:
            report.add("SB107", partial(element.locate, "id"), f"the state name {name[:120]!r} {why}")
        found.names[element] = found.by_id[id] = name
        if element.name == "history":
            found.histories.add(name)


def _name_body(found: Survey, machine: str, report: Report) -> None:
    """Name the machine's own element.

    It is not a state of the definition, but it can be a target, or be tested with In().
    """
    id = found.body.get("id")
    if found.body is found.root or not id:
        return
    if id in found.by_id:
        report.add("SB144", partial(found.body.locate, "id"), f'another state has the id "{id[:80]}" too')
        return
    found.names[found.body] = found.by_id[id] = "(machine)" if machine in found.by_id.values() else machine


def _data(found: Survey, element: Element, report: Report) -> None:
    id = element.get("id")
    if not id:
        report.add("SB144", element.locate, '<data> needs an "id"')
        return
    if id in found.variables:
        report.add("SB144", partial(element.locate, "id"), f'another <data> has the id "{id[:80]}" too')
    found.data.append(element)
    function = _function_value(element)
    if function is not None:
        found.functions[id] = function
    else:
        found.variables[id] = element


def _function_value(element: Element) -> Function | None:
    """Return the function that is a variable's value. It is inlined where it is called."""
    expression = element.get("expr")
    if expression is None or ("=>" not in expression and "function" not in expression):
        return None
    try:
        script, node = parse_expression(expression, lambda offset: element.locate("expr"))
    except SyntaxProblem:
        return None
    return function_of(script, node) if is_function(node) else None


def _variable(found: Survey, name: str | None, element: Element) -> None:
    if name and is_variable(name) and name not in found.variables and not name.startswith("_event"):
        found.variables[name] = element


def is_variable(name: str) -> bool:
    return VARIABLE.fullmatch(name) is not None and RESERVED.fullmatch(name) is None


def _script(found: Survey, element: Element, outside: str | None, report: Report) -> None:
    where = element.locate_in_text if outside is None else lambda offset: element.locate("src")
    try:
        program = parse_program(element.text if outside is None else outside, where)
    except SyntaxProblem as problem:
        found.programs[element] = problem
        return
    found.programs[element] = program
    script, statements = program
    for name, function, node in scripts.functions(script, statements):
        if function is None:
            report.add("SB145", partial(script.locate, node), f"the function {name[:60]} cannot be translated")
        else:
            found.functions[name] = function
            found.variables.pop(name, None)
    for name in scripts.variables(script, statements):
        if name not in found.functions:
            _variable(found, name, element)
