"""The functions an expression may call. The Lua side implements exactly these names."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A function. ``most`` is None for any number of arguments; ``gives`` is the JSON type of the result."""

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
    Function("sqrt", 1, 1, "sqrt(n)", "the square root", "number"),
    Function("exp", 1, 1, "exp(n)", "e to the power of n", "number"),
    Function("log", 1, 1, "log(n)", "the natural logarithm", "number"),
    Function("sign", 1, 1, "sign(n)", "-1, 0 or 1, as n is below, at or above zero", "integer"),
    Function("range", 2, 2, "range(from, to)", "the numbers from one to before the other, in steps of 1", "array"),
    Function("fail", 1, 1, "fail(message)", "nothing: the evaluation ends with that error", "any"),
    # Parts and changed copies
    Function("item", 2, 2, "item(x, key)", "x[key], and None for every key that x does not have", "any"),
    Function("length", 1, 1, "length(x)", "of a text or a list; of an object, its field `length`", "any"),
    Function("has", 2, 2, "has(x, key)", "whether x is an object or a list with that key", "boolean"),
    Function("filled", 1, 1, "filled(x)", "x; None where x is an object without keys", "any"),
    Function("put", 3, 3, "put(x, key, value)", "a copy of x in which x[key] is the value", "any"),
    Function("without", 2, 2, "without(x, key)", "a copy of x without x[key]", "any"),
    Function(
        "concat",
        1,
        None,
        "concat(x, ...)",
        "a list with the others, or the items of those that are lists, added; a text with the others as text",
        "any",
    ),
    Function(
        "slice",
        1,
        3,
        "slice(x, from, to)",
        "the part of a text or list from one position to before the other; negative ones count from the end",
        "any",
    ),
    Function("substring", 2, 3, "substring(text, from, to)", "the characters between two positions", "string"),
    Function("char_at", 2, 2, "char_at(text, position)", "one character, or an empty text", "string"),
    Function("char_code", 2, 2, "char_code(text, position)", "the number of a character in Unicode, or None", "any"),
    Function("repeated", 2, 2, "repeated(text, times)", "the text that many times over", "string"),
    Function("characters", 1, 1, "characters(text)", "its characters as a list", "array"),
    Function(
        "index_of", 2, 3, "index_of(x, part, from)", "where part first is in a text or list; -1 if nowhere", "integer"
    ),
    Function(
        "last_index_of",
        2,
        2,
        "last_index_of(x, part)",
        "where part last is in a text or list; -1 if nowhere",
        "integer",
    ),
    Function("replace_first", 3, 3, "replace_first(text, old, new)", "the first old replaced by new", "string"),
    Function("reversed", 1, 1, "reversed(list)", "a copy in the opposite order", "array"),
    Function("is_list", 1, 1, "is_list(x)", "whether x is a list", "boolean"),
    Function("json", 1, 1, "json(x)", "the value as JSON, keys sorted", "string"),
    Function("parse_json", 1, 1, "parse_json(text)", "the value of a JSON text", "any"),
    # ECMAScript's rules, where Python's differ
    Function("truthy", 1, 1, "truthy(x)", "ECMAScript's truth: [] and {} count as true", "boolean"),
    Function("typeof", 1, 1, "typeof(x)", "undefined, boolean, number, string or object", "string"),
    Function("plus", 2, 2, "plus(a, b)", "ECMAScript's a + b: joins as text what is not two numbers", "any"),
    Function("remainder", 2, 2, "remainder(a, b)", "what a / b leaves, with the sign of a", "number"),
    Function(
        "loosely_equal",
        2,
        2,
        "loosely_equal(a, b)",
        "ECMAScript's a == b: '1' equals 1, and '' equals False",
        "boolean",
    ),
    Function("less", 2, 2, "less(a, b)", "ECMAScript's a < b: never fails", "boolean"),
    Function("more", 2, 2, "more(a, b)", "ECMAScript's a > b: never fails", "boolean"),
    Function("at_most", 2, 2, "at_most(a, b)", "ECMAScript's a <= b: never fails", "boolean"),
    Function("at_least", 2, 2, "at_least(a, b)", "ECMAScript's a >= b: never fails", "boolean"),
    Function("to_text", 1, 1, "to_text(x)", "the value as ECMAScript writes it: true, 1.5, a,b", "string"),
    Function("joined", 1, 2, "joined(list, separator)", "its values as text, in one", "string"),
    Function("fixed", 1, 2, "fixed(n, digits)", "the number with that many decimals (0)", "string"),
    Function("parse_int", 1, 2, "parse_int(x, base)", "the whole number a text begins with, or None", "any"),
    Function("parse_float", 1, 1, "parse_float(x)", "the number a text begins with, or None", "any"),
    Function("is_nan", 1, 1, "is_nan(x)", "whether x cannot be read as a number", "boolean"),
]
FUNCTIONS: dict[str, Function] = {function.name: function for function in _ALL}
