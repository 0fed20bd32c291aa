"""Each error has a code of its own, tells its facts, and is raised somewhere."""

import json
import re
from pathlib import Path

from machines.engine import errors
from machines.engine.definitions import make_finding
from machines.engine.records import Explanation
from tests.cases import for_each

FOLDER = Path(errors.__file__).parent
CLASSES = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.SignalboxError)
]
BRANCHES = {errors.SignalboxError, errors.LookupFailed}  # named by what is below them
NOTHING = Explanation("m", "x", "go", False, 1, ["A"])
SAMPLES = {
    errors.SignalboxError: lambda: errors.SignalboxError("why"),
    errors.DefinitionError: lambda: errors.DefinitionError(["SB101 states: none"]),
    errors.BadInput: lambda: errors.BadInput("why"),
    errors.BadPayload: lambda: errors.BadPayload("why", field="n"),
    errors.PlanError: lambda: errors.PlanError("why", [make_finding("SB101", "states", "none")]),
    errors.LookupFailed: lambda: errors.LookupFailed("why"),
    errors.UnknownMachine: lambda: errors.UnknownMachine("m", version=3, known=["a", "b"]),
    errors.UnknownInstance: lambda: errors.UnknownInstance("m", "x"),
    errors.InstanceExists: lambda: errors.InstanceExists("m", "x"),
    errors.Refused: lambda: errors.Refused(NOTHING),
    errors.UnknownEvent: lambda: errors.UnknownEvent(NOTHING),
    errors.TooMuchWork: lambda: errors.TooMuchWork(NOTHING),
    errors.Suspended: lambda: errors.Suspended("m", "x", since=1),
    errors.NotAllowed: lambda: errors.NotAllowed("m", "x", "go", groups=["a", "b"], transition="t1", target="Done"),
    errors.NeedsApproval: lambda: errors.NeedsApproval("m", "x", "fire:go", revision=3, version=1, transitions=["t1"]),
    errors.Conflict: lambda: errors.Conflict("m", "x", expected=1, actual=2),
    errors.JobHandled: lambda: errors.JobHandled("m", "0-1"),
    errors.Miscounted: lambda: errors.Miscounted("work", "dead", expected=1, actual=2),
    errors.VersionRefused: lambda: errors.VersionRefused("m", "no version is rolled out"),
    errors.LeaseLost: lambda: errors.LeaseLost("0-1", why="taken back"),
    errors.EngineUnavailable: lambda: errors.EngineUnavailable("why"),
    errors.EngineFault: lambda: errors.EngineFault("why"),
    errors.NotPermitted: lambda: errors.NotPermitted(["zadd"]),
    errors.EncryptionFailed: lambda: errors.EncryptionFailed("card", "no CODEC is set"),
    errors.LibraryNotLoaded: lambda: errors.LibraryNotLoaded("the server has no functions library"),
}


def made() -> set[str]:
    """Names of the classes that some file of the engine makes an error of."""
    found = set()
    for path in FOLDER.rglob("*.py"):
        if path.name != "errors.py":
            found |= set(
                re.findall(
                    r"(?:raise|return|yield|else|[=(,]) (?:errors\.)?([A-Z]\w+)\(", path.read_text(encoding="utf-8")
                )
            )
    return found


def test_every_class_is_raised_somewhere():
    assert {error.__name__ for error in CLASSES if error not in BRANCHES} - made() == set()


def test_every_class_has_a_code_of_its_own():
    codes = [error.code for error in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"SB\d{3}", code) for code in codes)


def test_every_class_stands_in_the_tree_at_the_top():
    assert {error.__name__ for error in CLASSES} <= set(re.findall(r"\w+", errors.__doc__))


def test_codes_given_at_the_place_of_the_error_mean_one_thing_each():
    """A code is told in one module only, and is none of a class, so that a page may rely on it."""
    places: dict[str, set[str]] = {}
    for path in FOLDER.rglob("*.py"):
        for code in re.findall(r'code="(SB\d{3})"', path.read_text(encoding="utf-8")):
            places.setdefault(code, set()).add(path.name)
    assert not {error.code for error in CLASSES} & set(places)
    assert {code for code, where in places.items() if len(where) > 1} <= set()


@for_each("error", CLASSES)
def test_an_error_tells_its_facts_as_plain_data(error):
    sample = SAMPLES[error]()
    facts = sample.facts()
    assert facts["code"] == sample.code == error.code
    assert facts["message"] == str(sample)
    assert json.loads(json.dumps(facts)) == facts


def test_an_error_carries_what_it_is_about():
    conflict = SAMPLES[errors.Conflict]()
    assert (conflict.machine, conflict.id, conflict.expected, conflict.actual) == ("m", "x", 1, 2)
    assert str(conflict) == "m/x is at revision 2, not 1: the instance changed"
    unknown = SAMPLES[errors.UnknownMachine]()
    assert (unknown.machine, unknown.version) == ("m", 3)
    assert str(unknown) == "no version 3 of machine 'm' is published"
    assert (unknown.known, unknown.__notes__) == (("a", "b"), ["published here: a, b"])
    assert SAMPLES[errors.BadPayload]().facts()["field"] == "n"
    assert SAMPLES[errors.LeaseLost]().facts()["why"] == "taken back"
    assert SAMPLES[errors.Refused]().candidates == []


def test_one_except_catches_all_and_a_branch_its_kind():
    assert all(issubclass(error, errors.SignalboxError) for error in CLASSES)
    assert issubclass(errors.BadPayload, errors.BadInput)
    assert issubclass(errors.UnknownEvent, errors.Refused)
    assert issubclass(errors.UnknownInstance, errors.LookupFailed)
