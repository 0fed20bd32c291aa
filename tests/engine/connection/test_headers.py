"""Every function of the library opens with the same header, and the header tells the truth."""

import re

from machines.engine.connection import library
from machines.engine.connection.replies import Status
from tests.cases import for_each
from tests.docs import engine_reference

FILES = list(library.function_paths().values())
REQUIRED = ("KEYS", "ARGV", "Returns", "Notifies", "Cost")
ENGINE = library.FOLDER.parent
PYTHON = sorted([*ENGINE.rglob("*.py"), *(ENGINE.parent / "patterns").glob("*.py")])

each_function = for_each("path", FILES)


def returned(header) -> set[str]:
    """The first words of the replies a header lists."""
    return set(re.findall(r"\{([A-Z]+)\b", header.fields["Returns"]))


def code_of(path) -> str:
    return re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8"))


@each_function
def test_a_header_says_purpose_keys_arguments_replies_notifications_and_cost(path):
    header = engine_reference.read_header(path)
    assert header.purpose, "its purpose in one sentence"
    assert header.purpose.endswith(".")
    assert [name for name in REQUIRED if not header.fields.get(name)] == []


@each_function
def test_a_file_is_opened_by_its_own_name(path):
    assert f"-- {path.stem}: " in path.read_text(encoding="utf-8")
    assert path.stem.startswith(("sb_", "sm_"))


@each_function
def test_every_word_a_function_returns_is_one_that_python_knows(path):
    assert returned(engine_reference.read_header(path)) <= set(Status)


@each_function
def test_every_word_the_body_names_stands_in_its_header(path):
    words = dict(re.findall(r"^replies\.([A-Z_]+) = '([A-Z]+)'", _replies(), re.MULTILINE))
    named = {words[name] for name in re.findall(r"replies\.([A-Z_]+)", code_of(path))}
    assert named <= returned(engine_reference.read_header(path))


def _replies() -> str:
    return library.module_paths()["replies"].read_text(encoding="utf-8")


def test_lua_and_python_know_the_same_words():
    assert set(re.findall(r"^replies\.[A-Z_]+ = '([A-Z]+)'", _replies(), re.MULTILINE)) == set(Status)


def test_every_word_is_returned_by_some_function():
    assert set().union(*(returned(header) for header in engine_reference.read_headers())) == set(Status)


@each_function
def test_every_function_is_called_from_python(path):
    assert any(f'"{path.stem}"' in file.read_text(encoding="utf-8") for file in PYTHON), path.stem


def test_python_calls_no_function_that_is_not_there():
    called = {name for file in PYTHON for name in re.findall(r'"(s[bm]_\w+)"', file.read_text(encoding="utf-8"))}
    assert called - {"sb_library"} == {path.stem for path in FILES}


@each_function
def test_a_function_flagged_no_writes_writes_nothing_and_any_other_has_no_flag(path):
    flags = engine_reference.read_header(path).fields.get("flags", "")
    assert flags in ("", "no-writes", "no-writes, allow-cross-slot-keys")
    if flags:
        assert engine_reference.read_header(path).fields["Notifies"] == "nothing"


@each_function
def test_every_argument_that_is_read_is_numbered_in_the_header(path):
    read = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", code_of(path))}
    listed = {
        int(number) for number in re.findall(r"(?:^|· )(\d+) ", engine_reference.read_header(path).fields["ARGV"])
    }
    assert read <= listed


@each_function
def test_no_function_walks_the_whole_keyspace(path):
    commands = set(re.findall(r"redis\.p?call\('(\w+)'", code_of(path)))
    assert commands & {"KEYS", "SCAN", "FLUSHDB", "FLUSHALL"} == set()
