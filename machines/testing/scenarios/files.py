"""Which scenario files there are, and the definitions that they run."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from machines.catalog.definition_files import compile_file, find_files, name_path, read_file
from machines.engine.definitions import CompiledDefinition, Outline
from machines.engine.errors import DefinitionError

from .document import Finding, ScenarioFile, When, find_target, list_names
from .reader import NOT_READ, read_text
from .runner import Find, describe_transition, find_involved

FOLDER = "tests"
ENDINGS = (".yaml", ".yml")
UNKNOWN_NAME = "SB675"


@dataclass(slots=True)
class Collection:
    """Scenario files that can be run, with their definitions by machine, and what is wrong with others."""

    files: list[ScenarioFile] = field(default_factory=list)
    definitions: dict[str, CompiledDefinition] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    broken: dict[str, list[str]] = field(default_factory=dict)

    def add(self, path: Path, find: Find | None = None) -> None:
        """Read a scenario file, and compare it with its definition. ``find``: looks a machine up that no file has."""
        file, findings = read_path(path)
        if file is not None and self.find(file.machine, find) is None:
            self.problems += self.broken.get(file.machine, [])
            known = ", ".join(sorted(self.definitions)) or "none"
            self.problems.append(
                f"{name_path(path)}: no definition of {file.machine!r} can be used; those here: {known}"
            )
            return
        if file is not None:
            findings = check_names(file, self.definitions[file.machine].outline)
        self.problems += [describe(path, finding) for finding in findings]
        if file is not None and not findings:
            self.files.append(file)

    def add_definitions(self, paths: Iterable[Path]) -> None:
        """Read definitions; those that were read before stay. Broken ones matter when a scenario needs them."""
        for path in paths:
            try:
                compiled = compile_file(path)
            except DefinitionError:
                file = read_file(path)
                self.broken[file.name] = [file.describe(finding) for finding in file.submission.errors]
                continue
            self.definitions.setdefault(str(compiled.source["id"]), compiled)

    def find(self, machine: str, find: Find | None) -> CompiledDefinition | None:
        """Find a definition, and those of the machines that it talks to."""
        self.definitions |= find_involved(machine, lambda name: self.definitions.get(name) or (find and find(name)))
        return self.definitions.get(machine)


def list_scenario_files(folder: Path) -> list[Path]:
    """List the scenario files of a folder of definitions: those in its folder ``tests``, and below that."""
    tests = folder / FOLDER
    return list_folder(tests) if tests.is_dir() else []


def list_folder(folder: Path) -> list[Path]:
    """List the scenario files of a folder and those below it. Names that begin with ``_`` or ``.`` are left out."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in ENDINGS and not path.name.startswith(("_", ".")) and is_scenario_text(path)
    )


def list_definitions_beside(path: Path) -> list[Path]:
    """List the definitions of the folder whose folder ``tests`` a scenario file is in; of its own folder otherwise."""
    around = next((parent.parent for parent in path.resolve().parents if parent.name == FOLDER), path.resolve().parent)
    return list_definitions(around)


def list_definitions(folder: Path) -> list[Path]:
    """List the definitions of a folder, those at the top before those below."""
    found = sorted(find_files(folder), key=lambda one: (len(one.parts), one))
    return [one for one in found if not is_scenario_text(one)]


def is_scenario_text(path: Path) -> bool:
    """Tell whether a YAML file holds scenarios and not a definition: by a line that begins with ``scenarios:``."""
    if path.suffix not in ENDINGS:
        return False
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(line.startswith("scenarios:") for line in lines)


def read_path(path: Path) -> tuple[ScenarioFile | None, list[Finding]]:
    """Read one scenario file. Never raises."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        return None, [Finding(NOT_READ, 0, "", f"the file cannot be read: {error.strerror}")]
    return read_text(raw, path)


def describe(path: Path, finding: Finding) -> str:
    """Return a finding with its file and line."""
    where = f"{name_path(path)}:{finding.line}" if finding.line else name_path(path)
    return f"{where}: {finding}"


def collect(paths: Sequence[Path], definitions: Iterable[Path] = (), find: Find | None = None) -> Collection:
    """Read scenario files, with the definitions beside them, others, and those that ``find`` looks up by name."""
    found = Collection()
    for path in paths:
        found.add_definitions(list_definitions_beside(path))
    found.add_definitions(definitions)
    for path in paths:
        found.add(path, find)
    return found


def check_names(file: ScenarioFile, outline: Outline) -> list[Finding]:
    """List the states, data fields and transitions of a file that the machine does not have."""
    return [
        Finding(
            UNKNOWN_NAME,
            file.places.find_line(path),
            path,
            f"{file.machine} has no {what} {name!r}",
            _hint(name, known),
        )
        for path, what, name, known in _list_names(file, outline)
        if name not in known
    ]


def _list_names(file: ScenarioFile, outline: Outline) -> Iterator[tuple[str, str, str, set[str]]]:
    """List path, what it is, the name, and the names there are."""
    fields = {field.name for field in outline.data}
    states = {state.name for state in outline.states} | {state.path for state in outline.states}
    transitions = [one for state in outline.states for one in state.transitions]
    known = {one.id for one in transitions} | {describe_transition(one) for one in transitions}
    for number, scenario in enumerate(file.scenarios):
        for name in scenario.given.get("data", ()):
            yield f"scenarios[{number}].given.data.{name}", "data field", name, fields
        for step in scenario.steps:
            if step.then is None:
                continue
            for name in list_names(step.then.get("state")):
                yield f"{step.path}.then.state", "state", name, states
            for name in step.then.get("data", ()):
                yield f"{step.path}.then.data.{name}", "data field", name, fields
            for name in step.then.get("transitions", ()):
                yield f"{step.path}.then.transitions", "transition", name, known
            if step.when is not None and "job" in step.when:
                yield from _list_jobs(step.when, f"{step.path}.when.job", outline)


def _list_jobs(when: When, path: str, outline: Outline) -> Iterator[tuple[str, str, str, set[str]]]:
    invokes = [one for state in outline.states for one in state.invokes]
    if find_target(when) in ("", outline.id) and not any(one.machine for one in invokes):
        names = {one.id for one in invokes} | {one.src for one in invokes}
        if not any(state.enqueues for state in outline.states) and names:
            yield path, "invoke or handler", when["job"], names


def _hint(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"it has {', '.join(sorted(known))}" if 0 < len(known) <= 20 else ""
