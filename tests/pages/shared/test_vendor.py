"""What others wrote is in the repository as they published it."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

VENDOR = Path(__file__).parents[3] / "static/signalbox/vendor"
UPLOT = VENDOR / "uplot"
OURS = b"export default uPlot;\n"  # makes the published script a module


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("uPlot.min.js", "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"),
        ("uPlot.min.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
    ],
)
def test_the_chart_library_is_the_published_one(name, digest):
    assert sha256((UPLOT / name).read_bytes().removesuffix(OURS)).hexdigest() == digest
    assert "1.6.32" in (UPLOT / "README.md").read_text()
    assert "MIT" in (UPLOT / "LICENSE").read_text()


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("inter/inter-latin.woff2", "3100e775e8616cd2611beecfa23a4263d7037586789b43f035236a2e6fbd4c62"),
        ("inter/inter-latin-ext.woff2", "34b9c504cab7a73e37b746343a449132e56cf7b5481af2cb81dc74dcff25c956"),
        (
            "jetbrains-mono/jetbrains-mono-latin.woff2",
            "18be452724bfdc236c074ca94a249a7f41a86752c7d04ab258ce9ed5651f6a7e",
        ),
        (
            "jetbrains-mono/jetbrains-mono-latin-ext.woff2",
            "79bfdab9ba467e26eea4122e6f2567e188dd8a09a8c730d501fc487c4ab99c6e",
        ),
    ],
)
def test_the_fonts_are_the_published_ones(name, digest):
    path = VENDOR / name
    assert sha256(path.read_bytes()).hexdigest() == digest
    assert "5.3.0" in (path.parent / "README.md").read_text()
    assert "SIL Open Font License, Version 1.1" in (path.parent / "LICENSE").read_text()


def test_the_editor_is_the_bundle_of_the_named_packages():
    """``deploy/codemirror`` builds it: the same versions give the same bytes."""
    folder = VENDOR / "codemirror"
    digest = "1e2a731fae55848c5cf4d5c54928a9021c45d210e07088aedaa823966000497b"
    assert sha256((folder / "codemirror.js").read_bytes()).hexdigest() == digest
    named = json.loads((Path(__file__).parents[3] / "deploy/codemirror/package.json").read_text())["dependencies"]
    readme = (folder / "README.md").read_text()
    for package, version in named.items():
        assert package == "esbuild" or f"{package.rpartition('/')[2]} {version}" in readme.replace("`", ""), package
    assert "MIT License" in (folder / "LICENSE").read_text()
