"""The lock names all that is installed, with hashes; the question for known holes says when it got no answer."""

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.installation.processes import ROOT

LOCKS = {
    name.replace(".txt", ".lock"): name
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-docs.txt")
}
ENTRY = re.compile(r"^(?P<pin>[^\s#\\-][^\\\n]*?) \\\n(?P<rest>(?: +--hash=.*\n)+)", re.MULTILINE)


def locked(name: str) -> dict[str, Requirement]:
    """Package -> how it is locked. Of two versions that are for different Pythons, the one for this Python."""
    text = (ROOT / name).read_text()
    entries = list(ENTRY.finditer(text))
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith(("#", "--hash"))]
    assert len(lines) == len(entries), "a line without a hash"
    for entry in entries:
        for line in entry["rest"].splitlines():
            assert re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}( \\)?", line), line
    found = [Requirement(entry["pin"]) for entry in entries]
    assert all(re.fullmatch(r"==[^,*]+", str(one.specifier)) for one in found)
    found.sort(key=lambda one: one.marker is None or one.marker.evaluate())
    return {canonicalize_name(one.name): one for one in found}


def pinned(name: str) -> list[Requirement]:
    """What a requirements file pins, with what it includes."""
    found = []
    for line in (ROOT / name).read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            found += pinned(text.removeprefix("-r "))
        elif text:
            found.append(Requirement(text))
    return found


@pytest.mark.parametrize("name", LOCKS.values())
def test_a_pin_says_why_it_is_there(name: str):
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith(("#", "-r "))]
    assert lines
    assert [line for line in lines if len(line.partition("#")[2].split()) < 3] == []


def version(one: Requirement) -> str:
    return str(one.specifier).removeprefix("==")


@pytest.mark.parametrize(("lock", "source"), LOCKS.items())
def test_each_pin_is_locked_in_that_version(lock, source):
    held = locked(lock)
    for pin in pinned(source):
        assert version(held[canonicalize_name(pin.name)]) == version(pin), f"run `make lock`: {pin.name}"


def test_what_is_tested_is_what_runs():
    tested = locked("requirements-dev.lock")
    for name, one in locked("requirements.lock").items():
        assert version(tested[name]) == version(one)
        assert tested[name].marker is None or one.marker is not None


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_all_that_an_installed_package_needs_is_locked_too(lock):
    """By what the packages that are installed here say of themselves."""
    held = locked(lock)
    pins = pinned(LOCKS[lock])
    left = [(canonicalize_name(pin.name), tuple(sorted(pin.extras))) for pin in pins]
    seen = set()
    while left:
        name, extras = one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        for text in importlib.metadata.distribution(name).requires or ():
            needed = Requirement(text)
            marker = needed.marker
            if marker and not any(marker.evaluate({"extra": extra}) for extra in extras or ("",)):
                continue
            lock_of = held[canonicalize_name(needed.name)]
            assert needed.specifier.contains(version(lock_of), prereleases=True), f"{name} needs {needed}"
            left.append((canonicalize_name(needed.name), tuple(sorted(needed.extras))))
    assert len(seen) > len(pins)


def test_nothing_is_locked_that_no_pin_brings_along():
    text = (ROOT / "requirements-dev.lock").read_text()
    assert len(re.findall(r"^    # via", text, re.MULTILINE)) == len(ENTRY.findall(text))


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_place_that_packages_come_from(lock):
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*--(?!hash=)", text, re.MULTILINE)


# Known holes


def audit(folder: Path, answer: str, code: int = 0) -> tuple[int, str]:
    """The question, put to a pip-audit that answers so: how it ended, and its last line."""
    (folder / "pip_audit.py").write_text(f"import sys\nprint({answer!r})\nsys.exit({code})\n")
    done = subprocess.run(
        [ROOT / ".ci" / "audit", sys.executable], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)},
    )  # fmt: skip
    return done.returncode, done.stdout.strip().splitlines()[-1]


ROW = '{"name": "a", "version": "1", "vulns": [%s]}'
HOLE = '{"id": "PYSEC-1", "fix_versions": ["2"]}'


@pytest.mark.parametrize(
    ("rows", "code", "last"),
    [
        (ROW % "", 0, "audit: no known hole in 1 packages"),
        (ROW % HOLE, 1, "audit: 1 known holes in 1 packages"),
        ('{"name": "a", "skip_reason": "unknown"}', 2, "audit: NOT DONE, the index knows none of 1 packages"),
        (ROW % "" + ', {"name": "b", "skip_reason": "unknown"}', 2, "audit: NOT DONE, the index knows nothing of b"),
        (ROW % HOLE + ', {"name": "b", "skip_reason": "unknown"}', 1, "audit: 1 known holes"),
    ],
)
def test_the_question_for_holes_fails_where_one_is_known_and_where_nobody_could_be_asked(tmp_path, rows, code, last):
    assert audit(tmp_path, f'{{"dependencies": [{rows}]}}', 1 if HOLE in rows else 0)[0] == code
    assert audit(tmp_path, f'{{"dependencies": [{rows}]}}')[1].startswith(last)


@pytest.mark.parametrize("answer", ["", "no JSON", "{}", "[]"])
def test_an_index_that_says_nothing_of_use_is_said(tmp_path, answer):
    code, last = audit(tmp_path, answer, 1)
    assert (code, last[:16]) == (2, "audit: NOT DONE,")


def test_ci_ends_with_its_result():
    text = (ROOT / ".ci" / "run").read_text()
    assert text.rstrip().splitlines()[-1] == (
        'echo "ci: all checks passed; ${audited:-audit: NOT DONE, it could not be run}"'
    )
