"""Translates statements of ECMAScript to actions."""

from collections.abc import Callable, Iterator

from . import changes, code, operators, platform
from .code import ANY, NUMBER, STRING, Code
from .parsing import FUNCTIONS, Node, Script, bare, is_function, list_parts, part
from .scope import Action, Function, Scope, function_of, open_function
from .translator import Translator

MAX_DEPTH = 25  # blocks inside one another
_ASSIGNING = ("assignment_expression", "augmented_assignment_expression", "update_expression")
_APART = (*FUNCTIONS, "function_declaration", "method_definition", "class_declaration")
_WRAPPERS = ("expression_statement", "variable_declaration", "lexical_declaration", "parenthesized_expression")
_NAMES = {
    "try_statement": "try and catch",
    "switch_statement": "switch",
    "return_statement": "return",
    "class_declaration": "a class",
    "import_statement": "import",
}


def actions(scope: Scope, script: Script, statements: list[Node]) -> list[Action]:
    return _Reader(scope, script).all(statements)


class _Reader:
    def __init__(self, scope: Scope, script: Script, locals: dict[str, Code] | None = None, nested: int = 0) -> None:
        self.scope = scope
        self.script = script
        self.locals = locals or {}
        self.nested = nested
        self.depth = 0

    def all(self, statements: list[Node]) -> list[Action]:
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                self.translator().refuse(statements[0], f"more than {MAX_DEPTH} blocks inside one another")
                return []
            return [action for statement in statements for action in self.one(statement)]
        finally:
            self.depth -= 1

    def one(self, statement: Node) -> list[Action]:
        handler = _STATEMENTS.get(statement.type)
        if handler is None:
            what = _NAMES.get(statement.type, f"a {statement.type.replace('_', ' ')}")
            self.translator().refuse(statement, what)
            return []
        return handler(self, statement)

    def translator(self) -> Translator:
        translator = Translator(self.scope, self.script, self.locals)
        translator.nested = self.nested
        return translator

    def expression(self, statement: Node) -> list[Action]:
        return self._evaluate(bare(list_parts(statement)[0]))

    def _evaluate(self, node: Node) -> list[Action]:
        if node.type == "sequence_expression":
            return [action for one in list_parts(node) for action in self._evaluate(bare(one))]
        if node.type == "call_expression":
            called = self._call(node)
            if called is not None:
                return called
        translator = self.translator()
        worth = translator.value(node)
        # The effects end with the statement's own assignment. Changes that its parts make come after it.
        ordered = translator.effects[-1:] + translator.effects[:-1] if node.type in _ASSIGNING else translator.effects
        return ordered or ([changes.failing(worth)] if "fail(" in worth.text else [])

    def _call(self, node: Node) -> list[Action] | None:
        """Translate a call as a statement: what it does, not the value that it returns."""
        callee = bare(part(node, "function"))
        arguments = part(node, "arguments")
        if self.script.of(callee) in ("console.log", "console.info", "console.warn", "console.error", "alert"):
            values = self.translator().values(list_parts(arguments))
            return [{"log": value.text} for value in values]
        function = self.scope.functions.get(self.script.of(callee)) if callee.type == "identifier" else None
        if function is None or function.body.type != "statement_block":
            return None
        return self._write_out(node, function, list_parts(arguments))

    def _write_out(self, node: Node, function: Function, arguments: list[Node]) -> list[Action]:
        translator = self.translator()
        opened = open_function(translator, node, function, arguments)
        if opened is None:
            return []
        inside = _Reader(self.scope, function.script, opened.locals, opened.nested)
        statements = list_parts(function.body)
        if statements and statements[-1].type == "return_statement":
            statements = statements[:-1]  # its return value is not used
        return translator.effects + inside.all(statements)

    def declaration(self, statement: Node) -> list[Action]:
        found: list[Action] = []
        for declarator in list_parts(statement):
            name, value = part(declarator, "name"), declarator.child_by_field_name("value")
            if name.type != "identifier" or self.nested:
                self.translator().refuse(declarator, "a variable of a function" if self.nested else "taking apart")
            elif value is not None and not is_function(value):
                translator = self.translator()
                worth = translator.value(value)
                found += [changes.assign_text(translator, name, worth), *translator.effects]
        return found

    def condition(self, statement: Node) -> list[Action]:
        branches: list[Action] = []
        at: Node | None = statement
        while at is not None and at.type == "if_statement":
            guard = self._pure(part(at, "condition"), condition=True)
            branches.append({"guard": guard.text, "do": self.all([part(at, "consequence")])})
            otherwise = at.child_by_field_name("alternative")
            at = list_parts(otherwise)[0] if otherwise is not None else None
        if at is not None:
            branches.append({"do": self.all([at])})
        return [{"if": branches}]

    def _pure(self, node: Node, *, condition: bool = False) -> Code:
        translator = self.translator()
        found = translator.condition(node) if condition else translator.value(node)
        if translator.effects:
            translator.refuse(node, "changing a variable here", "change it in a statement of its own")
        return changes.finish(translator, node, found)

    def for_each(self, statement: Node) -> list[Action]:
        """Translate ``for (x of list)`` and ``for (x in object)``."""
        variable, over = part(statement, "left"), self._pure(part(statement, "right"))
        operator = self.script.of(part(statement, "operator"))
        if variable.type != "identifier" or self.nested:
            self.translator().refuse(statement, "this loop")
            return []
        if operator == "in":
            over = code.call("keys", over)
        return self._loop(over, self.script.of(variable), STRING if operator == "in" else ANY, part(statement, "body"))

    def _loop(self, over: Code, name: str, kinds: frozenset[str], body: Node) -> list[Action]:
        self.scope.fields.receive(name, kinds)
        field = self.scope.variable(name)
        assert field is not None
        return [{"foreach": {"in": over.text, "item": field.text, "do": self.all([body])}}]

    def count(self, statement: Node) -> list[Action]:
        """Translate ``for (i = a; i < b; i++)``."""
        counted = _read_counter(self.script, statement)
        if counted is None or self.nested:
            return self.loop(statement)
        name, start, stop, closed = counted
        if name in {self.script.of(target) for target in _list_assigned(part(statement, "body"))}:
            self.translator().refuse(statement, f"a loop that changes {name} itself")
            return []
        first, last = operators.as_number(self._pure(start)), operators.as_number(self._pure(stop))
        if closed:
            last = code.calculate(last, "+", code.number(1))
        over = code.call("range", first, last)
        loop = self._loop(over, name, NUMBER, part(statement, "body"))
        after = code.call("max", first, code.call("ceil", last, kinds=NUMBER), kinds=NUMBER)
        return [*loop, changes.assign(self.translator(), changes.Spot(name), after)]

    def loop(self, statement: Node) -> list[Action]:
        self.translator().refuse(statement, "a loop", "write <foreach>, or transitions without an event")
        return []

    def throw(self, statement: Node) -> list[Action]:
        node = bare(list_parts(statement)[0])
        if node.type == "new_expression" and self.script.of(part(node, "constructor")).endswith("Error"):
            arguments = node.child_by_field_name("arguments")
            node = list_parts(arguments)[0] if arguments is not None and list_parts(arguments) else node
        worth = operators.as_text(self._pure(node))
        return [changes.failing(code.call("fail", worth))]


def _read_counter(script: Script, statement: Node) -> tuple[str, Node, Node, bool] | None:
    """Return name, first value, limit, and whether the limit is included."""
    start = statement.child_by_field_name("initializer")
    test, step = statement.child_by_field_name("condition"), statement.child_by_field_name("increment")
    if start is None or test is None or step is None:
        return None
    start, test, step = (_only(node) for node in (start, test, step))
    if start.type == "variable_declarator" and start.child_by_field_name("value") is not None:
        name, first = part(start, "name"), part(start, "value")
    elif start.type == "assignment_expression":
        name, first = part(start, "left"), part(start, "right")
    else:
        return None
    if test.type != "binary_expression" or script.of(part(test, "operator")) not in ("<", "<="):
        return None
    same = script.of(part(test, "left")) == script.of(name) and name.type == "identifier"
    if not same or script.of(step).replace(" ", "") not in _steps(script.of(name)):
        return None
    return script.of(name), first, part(test, "right"), script.of(part(test, "operator")) == "<="


def _only(node: Node) -> Node:
    """Return the only expression or declarator in a part of a ``for``."""
    while node.type in _WRAPPERS:
        parts = list_parts(node)
        if len(parts) != 1:
            return node
        (node,) = parts
    return node


def _steps(name: str) -> tuple[str, ...]:
    return (f"{name}++", f"++{name}", f"{name}+=1", f"{name}={name}+1")


# -- what a script declares ---------------------------------------------------------------------------


def variables(script: Script, statements: list[Node]) -> Iterator[str]:
    """Yield the names that the script declares, or assigns to without a declaration. Both make a variable."""
    for statement in statements:
        for target in _list_assigned(statement):
            if target.type == "identifier" and script.of(target) not in platform.SYSTEM:
                yield script.of(target)


def functions(script: Script, statements: list[Node]) -> Iterator[tuple[str, Function | None, Node]]:
    """Yield the functions at the top level of the script, each with its place; None for one that cannot be inlined."""
    for statement in statements:
        if statement.type in ("function_declaration", "generator_function_declaration"):
            yield script.of(part(statement, "name")), function_of(script, statement), statement
        for name, value in values(statement):
            if is_function(value):
                yield script.of(name), function_of(script, bare(value)), value


def values(statement: Node) -> Iterator[tuple[Node, Node]]:
    """Yield each name that a statement assigns a value to, with the value."""
    if statement.type in ("variable_declaration", "lexical_declaration"):
        for declarator in list_parts(statement):
            value = declarator.child_by_field_name("value")
            if value is not None:
                yield part(declarator, "name"), value
    elif statement.type == "expression_statement" and list_parts(statement):
        node = bare(list_parts(statement)[0])
        if node.type == "assignment_expression" and part(node, "left").type == "identifier":
            yield part(node, "left"), part(node, "right")


def _list_assigned(top: Node) -> Iterator[Node]:
    """Yield every node that is declared or assigned to, except inside functions."""
    waiting = [top]
    while waiting:
        node = waiting.pop()
        if node.type in _APART:
            continue
        if node.type == "variable_declarator":
            yield part(node, "name")
        elif node.type in ("assignment_expression", "augmented_assignment_expression", "for_in_statement"):
            yield part(node, "left")
        elif node.type == "update_expression":
            yield part(node, "argument")
        waiting.extend(reversed(node.named_children))


_STATEMENTS: dict[str, Callable[[_Reader, Node], list[Action]]] = {
    "expression_statement": _Reader.expression,
    **dict.fromkeys(("variable_declaration", "lexical_declaration"), _Reader.declaration),
    "if_statement": _Reader.condition,
    "statement_block": lambda reader, statement: reader.all(list_parts(statement)),
    **dict.fromkeys(("empty_statement", "function_declaration", "comment"), lambda reader, statement: []),
    "for_in_statement": _Reader.for_each,
    "for_statement": _Reader.count,
    **dict.fromkeys(("while_statement", "do_statement"), _Reader.loop),
    "throw_statement": _Reader.throw,
}
