"""The functions an expression may call. The Lua side implements exactly these names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """``most`` is None when any number of arguments may follow; ``gives`` is the JSON type of the result."""

    name: str
    least: int
    most: int | None
    usage: str
    meaning: str
    gives: str

    @property
    def arity(self) -> str:
        if self.most is None:
            return f"{self.least} or more arguments"
        if self.least == self.most:
            return "no arguments" if not self.least else f"{self.least} argument{'s' * (self.least != 1)}"
        return f"{self.least} to {self.most} arguments"

    def takes(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)


_ALL = [
    Function("len", 1, 1, "len(x)", "characters of a text, elements of a list, keys of an object", "integer"),
    Function("min", 1, None, "min(a, b, ...)", "the smallest argument; of one list, its smallest element", "any"),
    Function("max", 1, None, "max(a, b, ...)", "the largest argument; of one list, its largest element", "any"),
    Function("abs", 1, 1, "abs(n)", "the number without its sign", "number"),
    Function("round", 1, 2, "round(n, digits)", "rounded to that many decimals (0), halves to even", "number"),
    Function("floor", 1, 1, "floor(n)", "the integer at or below", "integer"),
    Function("ceil", 1, 1, "ceil(n)", "the integer at or above", "integer"),
    Function("int", 1, 1, "int(x)", "a text read as an integer; a number cut off towards zero", "integer"),
    Function("number", 1, 1, "number(x)", "a text read as a number; a number stays as it is", "number"),
    Function("str", 1, 1, "str(x)", "the value as text", "string"),
    Function("bool", 1, 1, "bool(x)", 'False for 0, "", [], {}, None and False; else True', "boolean"),
    Function("lower", 1, 1, "lower(text)", "in small letters (ASCII only)", "string"),
    Function("upper", 1, 1, "upper(text)", "in capital letters (ASCII only)", "string"),
    Function("strip", 1, 1, "strip(text)", "without spaces at both ends", "string"),
    Function("startswith", 2, 2, "startswith(text, part)", "whether the text begins so", "boolean"),
    Function("endswith", 2, 2, "endswith(text, part)", "whether the text ends so", "boolean"),
    Function("contains", 2, 2, "contains(x, part)", "the same as `part in x`", "boolean"),
    Function("split", 2, 2, "split(text, separator)", "the parts as a list", "array"),
    Function("join", 2, 2, "join(list, separator)", "the texts of the list in one", "string"),
    Function("replace", 3, 3, "replace(text, old, new)", "every old replaced by new", "string"),
    Function("keys", 1, 1, "keys(object)", "its keys as a sorted list", "array"),
    Function("values", 1, 1, "values(object)", "its values, in the order of keys(object)", "array"),
    Function("sum", 1, 1, "sum(list)", "the sum of its numbers", "number"),
    Function("sorted", 1, 1, "sorted(list)", "a sorted copy of a list of numbers or of texts", "array"),
    Function("random", 0, 0, "random()", "a number from 0 up to, not including, 1", "number"),
    Function("random_token", 1, 1, "random_token(n)", "n random capital letters and digits, at most 64", "string"),
]
FUNCTIONS: dict[str, Function] = {function.name: function for function in _ALL}
