"""What the read-only screens show, and what no screen may hold."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from django.utils.html import escape

from machines.catalog.admin import instance_url, instances_url
from machines.catalog.publishing import adopt_published, publish
from machines.models import Machine
from tests.catalog.samples import door, example
from tests.configuration import configure

from .conftest import ID

LIST = "/admin/machines/machine/"


def test_a_machine_shows_its_diagram_and_its_versions(admin_client, machine: Machine) -> None:
    publish(example("activation") | {"description": "Better words."}, notes="words")
    page = " ".join(admin_client.get(f"{LIST}{machine.pk}/change/").content.decode().split())
    assert 'class="sb-diagram"' in page
    assert "Better words." in page
    assert "v2</a> (current)" in page
    assert f'href="{instances_url(machine)}"' in page


def test_a_version_shows_its_document_and_diagram_and_takes_no_input(admin_client, machine: Machine) -> None:
    page = admin_client.get(f"/admin/machines/machineversion/{machine.version().pk}/change/").content.decode()
    assert "&quot;initial&quot;: &quot;New&quot;" in page
    assert 'id="state-1"' in page
    assert 'name="_save"' not in page


def test_lists_cost_the_same_however_long_they_are(admin_client, engine, django_assert_max_num_queries) -> None:
    for n in range(5):
        publish(door(id=f"door{n}"))
    with django_assert_max_num_queries(8):
        admin_client.get(LIST)
    with django_assert_max_num_queries(8):
        admin_client.get("/admin/machines/machineversion/")


def test_the_list_names_what_scripts_have_published_and_writes_nothing(admin_client, engine, db) -> None:
    engine.publish(door(id="scripted"))
    assert "scripted" in admin_client.get(LIST).content.decode()
    assert Machine.objects.count() == 0
    adopt_published({})
    assert Machine.objects.get().adopted


def test_the_list_is_there_while_redis_is_down(admin_client, machine: Machine, settings) -> None:
    configure(settings, REDIS_URL="unix:///nonexistent/admin.sock")
    page = admin_client.get(LIST).content.decode()
    assert "activation" in page
    assert "could not be looked up" in page


def test_instances_are_listed_with_their_states(admin_client, machine: Machine, instance: str, engine) -> None:
    engine.create("activation", "fresh")
    page = admin_client.get(instances_url(machine)).content.decode()
    assert "ATV-1/2:&quot;NBC&quot; {🚂} &lt;b&gt;?&amp;id=x" in page
    assert "Waiting <b>1</b>" in page
    only = admin_client.get(instances_url(machine, state="New")).content.decode()
    assert "fresh" in only
    assert "ATV-1/2" not in only


def test_the_list_goes_on_where_the_page_ends(admin_client, machine: Machine, engine) -> None:
    for n in range(60):
        engine.create("activation", f"i{n:02}")
    first = admin_client.get(instances_url(machine)).content.decode()
    further = re.search(r'href="([^"]*cursor[^"]*)" rel="next"', first)
    assert further is not None
    second = admin_client.get(further[1].replace("&amp;", "&")).content.decode()
    shown = re.findall(r">(i\d\d)</a>", first) + re.findall(r">(i\d\d)</a>", second)
    assert sorted(shown) == [f"i{n:02}" for n in range(60)]


def test_an_instance_is_found_by_its_id(admin_client, machine: Machine, instance: str) -> None:
    response = admin_client.get(instances_url(machine, id=ID))
    assert response["Location"] == instance_url(machine, ID)
    assert admin_client.get(response["Location"]).status_code == 200


def test_an_id_that_is_not_there_is_said_so(admin_client, machine: Machine) -> None:
    page = admin_client.get(instances_url(machine, id="nobody"), follow=True).content.decode()
    assert "has no instance &#x27;nobody&#x27; (SB421)" in page


def test_a_cursor_that_nobody_gave_is_refused(admin_client, machine: Machine, engine) -> None:
    assert admin_client.get(instances_url(machine, cursor="nonsense")).status_code == 400


def test_a_machine_that_redis_lost_is_explained(admin_client, machine: Machine, engine, prefix) -> None:
    from tests.conftest import remove

    remove(engine.client, prefix)
    response = admin_client.get(instances_url(machine))
    assert response.status_code == 404
    assert b"SB420" in response.content


def test_an_instance_shows_its_state_lit_its_data_and_its_history(admin_client, machine, instance) -> None:
    page = admin_client.get(instance_url(machine, ID)).content.decode()
    assert '<g id="state-2" class="node state current"' in page
    assert "<code>&quot;T0KEN&quot;</code>" in page
    assert "not set" in page
    assert "New → Waiting" in page
    assert "<b>?" not in page


@pytest.mark.parametrize("screen", ["machine", "version", "instances", "instance"])
def test_no_screen_needs_inline_script_or_style(screen: str, admin_client, machine: Machine, instance: str) -> None:
    path = {
        "machine": f"{LIST}{machine.pk}/change/",
        "version": f"/admin/machines/machineversion/{machine.version().pk}/change/",
        "instances": instances_url(machine),
        "instance": instance_url(machine, ID),
    }[screen]
    page = admin_client.get(path).content.decode()
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=\"|javascript:", page)
    scripts = re.findall(r"<script([^>]*)>([^<]*)</script>", page)
    assert all("src=" in attributes or 'type="application/json"' in attributes for attributes, _ in scripts)
    assert "signalbox/admin/diagram.css" in page
    assert "signalbox/admin/admin.css" in page


def test_the_admin_leads_back_to_the_pages_and_wears_their_colours(admin_client, machine: Machine, engine) -> None:
    if not engine.find("activation").instances:
        engine.create("activation", ID)
    index = admin_client.get("/admin/").content.decode()
    assert '<a class="sb-home" href="/">' in index
    assert "signalbox/css/shared/tokens.css" in index
    assert "signalbox/css/admin/colours.css" in index
    assert 'href="/machines/activation/"' in admin_client.get(f"{LIST}{machine.pk}/change/").content.decode()
    id = engine.find("activation").instances[0].id
    page = admin_client.get(instance_url(machine, id)).content.decode()
    assert f'href="{escape(reverse("signalbox:instance", args=["activation", id]))}"' in page
    assert "admin/css/forms.css" in page
