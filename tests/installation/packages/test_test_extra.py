"""The extra ``test``: a project without Django tests its machines with the wheel, and starts nothing by itself."""

from __future__ import annotations

from pathlib import Path

from tests.installation.packages.conftest import Environment
from tests.testing.projects import read_blocks


def test_a_project_tests_its_machines_with_the_extra_alone(wheel: Path, environment: Environment):
    environment.install(wheel, "test")
    assert len(environment.lacks("django", "tree_sitter", "channels", "uvicorn")) == 4
    files = read_blocks("docs/testing.md")
    (environment.home / "statemachines").mkdir()
    (environment.home / "statemachines/order.yaml").write_text(files["shop/statemachines/order.yaml"])
    (environment.home / "pytest.ini").write_text("[pytest]\nsignalbox_definitions = statemachines\n")
    names = ("test_retries", "test_asyncio", "test_door")
    for name in names:
        (environment.home / f"{name}.py").write_text(files[f"tests/{name}.py"])
    assert f"{len(names)} passed" in environment.run("python", "-m", "pytest", "-q")
    assert environment.run("python", "-m", "pytest", "-q", "-p", "no:signalbox", code=1).count("ERROR test_") == len(
        names
    )
