"""The names that an expression of a config can use: ``context``, ``event``, ``params``, ``input``, and the script's."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

from machines.engine import expressions
from machines.engine.definitions.findings import CODES
from machines.engine.definitions.place import Place
from machines.formats.javascript import scope
from machines.formats.javascript.code import ATOM, CHOICE, Code, literal
from machines.formats.javascript.kinds import ANY, BOOLEAN, NUMBER, STRING
from machines.formats.javascript.parsing import Node, SyntaxProblem, is_function, parse_expression
from machines.formats.javascript.translator import Translator
from machines.formats.report import Report
from machines.formats.xstate.context import Reading, Scope
from machines.formats.xstate.dialect import unbrace

CONTEXT, EVENT, PARAMS = Code("\0context"), Code("event", kinds=ANY), Code("\0params")
BOTH, INPUT = Code("\0both"), Code("\0input")
MAX_FUNCTIONS = 200  # of one script
MAX_CALLS = 1000  # of functions inlined in one expression, elements of written lists included
_OTHERS = "only context, event and params mean something here"
_OF_ACTORS = ("spawn", "self", "system", "enqueue", "check")


@dataclass(frozen=True, slots=True)
class Untranslated:
    why: str
    hint: str = ""


class Notes(Report):
    """The translator's findings: only the first refusal counts. ``calls``: how many functions were inlined."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.refusal: Untranslated | None = None
        self.calls = 0
        self._place = place

    def count_call(self) -> None:
        self.calls += 1
        if self.calls > MAX_CALLS:
            self.refusal = self.refusal or Untranslated(f"more than {MAX_CALLS} calls of functions")

    def add(self, code: str, where: str | Callable[[], str], message: str, hint: str = "") -> None:
        if CODES[code].severity == "error":
            self.refusal = self.refusal or Untranslated(message.removesuffix(" cannot be translated"), hint)
        else:
            self._place.report.add(code, self._place.path, message, hint)


class ExpressionScope(scope.Scope):
    """Translates ``context.field``, ``event.field`` and ``params.name``. It stops after the first refusal."""

    def __init__(self, where: Scope, place: Place) -> None:
        reading = where.reading
        self.notes = Notes(place)
        states = {name: name for name in reading.states.names}
        super().__init__(
            self.notes,
            scope.Fields(),
            _functions_of(reading),
            states,
            reading.machine,
            idle=frozenset(["assertEvent", "console"]),
            constants=reading.constants,
            loops=where.loops,
            may_fail=False,
        )
        self.params = _parameter(where.params) if isinstance(where.params, str) else PARAMS
        self.taken_inputs: set[str] = set()
        self._where = where
        self._place = place

    @property
    def names(self) -> dict[str, Code]:
        """Return the names that each expression can use."""
        return {"context": CONTEXT, "event": EVENT, "params": self.params}

    @property
    def is_stopped(self) -> bool:
        return self.notes.refusal is not None

    def inside(self, *, loops: bool = True) -> ExpressionScope:
        self.notes.count_call()
        if loops:
            return self
        inner = copy(self)
        inner.loops = None
        return inner

    def declare_helper(self, name: str) -> None:
        undeclared = self._where.reading.undeclared
        if name not in undeclared:
            undeclared.append(name)

    def translate_undeclared(self, translator: Translator, node: Node, name: str) -> Code:
        """Translate a name that is not declared.

        It is a constant of the script, or a data field: some tools omit ``context.`` before it.
        """
        reading = self._where.reading
        if name in reading.constants:
            return literal(reading.constants[name])
        if name in reading.fields:
            return translator.property(node, CONTEXT, name)
        return translator.refuse(node, f"the name {name}", _OTHERS)

    def property(self, translator: Translator, node: Node, owner: Code, name: str) -> Code | None:
        reading = self._where.reading
        if owner is CONTEXT:
            field = reading.field(name, self._place)
            return Code(field, kinds=reading.kinds.get(field, ANY))
        if owner is BOTH:
            return self._of_both(translator, node, name)
        if owner is INPUT:
            self.taken_inputs.add(name)
            return Code(reading.input_field(name, self._place), kinds=ANY)
        if owner is PARAMS:
            return self._param(translator, node, name)
        if owner is EVENT:
            return self._of_event(name)
        return owner if owner.text == "event.error" and name == "message" else None

    def _of_both(self, translator: Translator, node: Node, name: str) -> Code:
        known = self.names | {"input": INPUT}
        if name in known:
            return known[name]
        if name in _OF_ACTORS:
            return Code(f"\0{name}")  # refused where it is used
        return translator.refuse(node, f"the name {name}", _OTHERS)

    def _param(self, translator: Translator, node: Node, name: str) -> Code:
        params = self._where.params
        if not isinstance(params, dict) or name not in params:
            return translator.refuse(node, f"the parameter {name}", "it is not given a value here")
        return _parameter(params[name])

    def _of_event(self, name: str) -> Code | None:
        """Translate a member of the event: its name, the output of finished work, or an error have other names here."""
        four = self._where.reading.four
        if name == "type":
            return Code("trigger.name", kinds=STRING)
        if name == ("data" if four else "output") and self._where.output:
            return Code(self._where.output, kinds=ANY)
        return Code("event.error", kinds=STRING) if name == "data" and four and self._where.failing else None

    def whole(self, text: str) -> str:
        """Replace whole contexts and parameters in an expression by an object of all their fields."""
        reading = self._where.reading
        if CONTEXT.text in text:
            fields = ", ".join(f"{name!r}: {field}" for name, field in reading.fields.items())
            text = text.replace(CONTEXT.text, f"{{{fields}}}")
        if PARAMS.text in text and isinstance(self._where.params, dict):
            params = ", ".join(f"{name!r}: {value}" for name, value in self._where.params.items())
            text = text.replace(PARAMS.text, f"{{{params}}}")
        return text


def _parameter(text: str) -> Code:
    """Return an expression that was given as a parameter. The kind is known only for a literal."""
    tree = expressions.read(text).tree
    kinds = {"num": NUMBER, "str": STRING, "bool": BOOLEAN}.get(str(tree[0]), ANY)
    return Code(text, ATOM if kinds is not ANY and text[:1] != "-" else CHOICE, kinds)


def _functions_of(reading: Reading) -> dict[str, scope.Function]:
    """Return the functions beside the machine whose parameters are plain names.

    They are parsed when the first expression is read.
    """
    if reading.functions is None:
        place = reading.implementations.get("functions") if reading.implementations else None
        texts = list((place.value if place else {}).items())[:MAX_FUNCTIONS]
        found = {name: _read_function(unbrace(text) or "") for name, text in texts}
        reading.functions = {name: function for name, function in found.items() if function is not None}
    return reading.functions


def _read_function(text: str) -> scope.Function | None:
    try:
        script, node = parse_expression(text, typed=True)
    except SyntaxProblem:
        return None
    return scope.function_of(script, node) if is_function(node) and not text.startswith("async") else None
