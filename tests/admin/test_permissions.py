"""Every screen of the admin of machines, and who may have it."""

from __future__ import annotations

import pytest

from machines.catalog.admin import instance_url, instances_url
from machines.models import Machine

from .conftest import ID

LIST = "/admin/machines/machine/"
NO_GRANTS = {f"{kind}_grants-{form}_FORMS": "0" for kind in ("user", "group") for form in ("TOTAL", "INITIAL")}
SCREENS = ["list", "machine", "versions", "version", "instances", "instance"]


def address(screen: str, machine: Machine) -> str:
    return {
        "list": LIST,
        "machine": f"{LIST}{machine.pk}/change/",
        "versions": "/admin/machines/machineversion/",
        "version": f"/admin/machines/machineversion/{machine.version().pk}/change/",
        "instances": instances_url(machine),
        "instance": instance_url(machine, ID),
        "add": f"{LIST}add/",
    }[screen]


@pytest.mark.parametrize("screen", SCREENS)
def test_viewers_see_everything(screen: str, staff, machine: Machine, instance: str) -> None:
    assert staff("view").get(address(screen, machine)).status_code == 200


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("rights", [(), ("fire", "operate", "publish")], ids=["none", "all but view"])
def test_without_view_nothing_is_seen(screen: str, rights: tuple, staff, machine: Machine, instance: str) -> None:
    assert staff(*rights).get(address(screen, machine)).status_code == 403


@pytest.mark.parametrize("screen", [*SCREENS, "add"])
def test_visitors_are_sent_to_the_login(screen: str, client, machine: Machine, instance: str) -> None:
    response = client.get(address(screen, machine))
    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/")


def test_nobody_adds_a_machine_here(admin_client, machine: Machine) -> None:
    assert admin_client.get(address("add", machine)).status_code == 403
    assert admin_client.post(address("add", machine), {"name": "door"}).status_code == 403


@pytest.mark.parametrize("rights", [("view",), ("view", "operate", "publish"), ("fire",)])
def test_firing_takes_its_permission(rights: tuple, staff, machine: Machine, instance: str, engine) -> None:
    posted = staff(*rights).post(address("instance", machine), {"event": "entitle", "expect": 2})
    assert posted.status_code == 403
    assert engine.get("activation", ID).revision == 2


def test_without_fire_there_are_no_actions(staff, machine: Machine, instance: str) -> None:
    page = staff("view").get(address("instance", machine)).content.decode()
    assert "Fire entitle" not in page
    assert "machines.fire_machine" in page


@pytest.mark.parametrize("action", ["change", "delete"])
@pytest.mark.parametrize("model", ["machine", "machineversion"])
def test_nothing_is_changed_or_deleted_by_the_admins_own_forms(action: str, model: str, admin_client, machine) -> None:
    """On a machine's page rights on it can be given, and nothing else."""
    pk = machine.pk if model == "machine" else machine.version().pk
    given = {"name": "x", "current": "7", "post": "yes"} | NO_GRANTS
    response = admin_client.post(f"/admin/machines/{model}/{pk}/{action}/", given)
    assert response.status_code == (302 if (model, action) == ("machine", "change") else 403)
    assert Machine.objects.values_list("name", "current").get() == ("activation", 1)


def test_versions_cannot_be_added(admin_client, machine: Machine) -> None:
    assert admin_client.get("/admin/machines/machineversion/add/").status_code == 403


@pytest.mark.parametrize("path", ["instances/", "instance/?id=x"])
def test_screens_of_a_machine_that_is_not_there_are_not_found(path: str, admin_client, machine: Machine) -> None:
    assert admin_client.get(f"{LIST}999/{path}").status_code == 404


@pytest.mark.parametrize("key", ["999", "nonsense", "1/../2"])
def test_a_machine_that_is_not_there_is_said_so(key: str, admin_client, machine: Machine) -> None:
    assert admin_client.get(f"{LIST}{key}/change/").status_code in (302, 404)


def test_an_unknown_instance_is_not_found(admin_client, machine: Machine) -> None:
    assert admin_client.get(instance_url(machine, "nobody")).status_code == 404
    assert admin_client.get(instance_url(machine, "")).status_code == 404
    assert admin_client.get(instance_url(machine, "a\x00b")).status_code == 404
