"""System checks of the definitions in apps: without Redis, by files and handlers alone."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from machines.catalog.definition_checks import check_definitions
from machines.worker.registry import discover, handlers

from .repository import ORDER, Repository

FILE = "shop/statemachines/order.yaml"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    discover()  # before the copy: a module is imported once, and its handlers stay for later tests
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(handlers, "_handlers", dict(handlers._handlers))
    found = Repository(tmp_path, monkeypatch)
    found.add_app("shop")
    return found


def messages() -> list[tuple[str, str]]:
    return [(str(found.id), found.msg) for found in check_definitions(None)]


def test_an_invoke_without_handler_names_the_nearest(repository: Repository) -> None:
    repository.write(FILE, ORDER)
    repository.write(
        "shop/handlers.py",
        "from machines.worker import handler\n\n@handler('ship_orders')\ndef ship(job): ...\n",
    )
    assert messages() == [
        (
            "signalbox.W033",
            f'{FILE}: state Paid of order invokes "ship_order", and no app has that handler; '
            'did you mean "ship_orders"?',
        )
    ]
    handlers.handler("ship_order")(lambda job: None)
    assert messages() == []


def test_handlers_that_cannot_be_imported_are_a_warning(repository: Repository) -> None:
    repository.write(FILE, ORDER)
    repository.write("shop/handlers.py", "import nothing_of_that_name")
    ((id, text),) = messages()
    assert id == "signalbox.W034"
    assert "nothing_of_that_name" in text


def test_a_file_with_errors_stops_commands_that_check(repository: Repository) -> None:
    repository.write(FILE, ORDER.replace("pay: Paid", "pay: Piad"))
    ((id, text),) = messages()
    assert (id, text.startswith(f"{FILE}:4: SB101 states.New.on.pay: ")) == ("signalbox.E031", True)
    with pytest.raises(CommandError, match=r"order\.yaml:4: SB101"):
        call_command("check", "--tag", "statemachines", stdout=io.StringIO(), stderr=io.StringIO())


def test_two_files_with_one_machine_are_an_error(repository: Repository) -> None:
    text = "id: door\ninitial: A\nstates: {A: {on: {x: A}}}\n"
    repository.write("shop/statemachines/a.yaml", text)
    repository.write("shop/statemachines/b.yaml", text)
    ((id, said),) = messages()
    assert id == "signalbox.E032"
    assert "stands in shop/statemachines/a.yaml and shop/statemachines/b.yaml" in said


def test_a_machine_of_the_product_is_not_replaced_by_a_file(repository: Repository) -> None:
    repository.write("shop/statemachines/bulk.yaml", "id: bulk\ninitial: A\nstates: {A: {on: {x: A}}}\n")
    ((id, said),) = messages()
    assert (id, "comes with Signalbox, and shop/statemachines/bulk.yaml defines another one" in said) == (
        "signalbox.E032",
        True,
    )


def test_without_folders_nothing_is_imported_or_found() -> None:
    assert messages() == []
