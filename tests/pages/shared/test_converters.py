"""Every instance id has exactly one address, and the address leads back to it."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from django.urls import resolve, reverse
from hypothesis import given
from hypothesis import strategies as st

from dashboard.shared.addresses import InstanceId
from tests.cases import for_each

ODD = [
    "ATV-123:NBCSports",
    "a/b",
    "/",
    "//etc",
    ".",
    "..",
    "../..",
    "...",
    ".hidden",
    "~",
    "~2F",
    "~7E2F",
    "a~2Eb",
    "%2F",
    "%252F",
    "100%",
    "%",
    "a b",
    " ",
    "a+b&c=d?e#f;g",
    '"quoted"',
    "it's",
    "<script>alert(1)</script>",
    "{braces}",
    "{{ template }}",
    "{% tag %}",
    "back\\slash",
    "line\u2028separator",
    "🚦 emoji 👩‍🚒",
    "日本語",
    "fire",
    "create",
    "a/fire",
    "é",
    "e\u0301",
]

texts = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=60)


@for_each("id", ODD)
def test_an_odd_id_comes_back_out_of_its_address(id):
    assert _through_a_browser(reverse("signalbox:instance", args=["activation", id])) == id


@given(texts)
def test_any_id_comes_back_out_of_its_address(id):
    assert _through_a_browser(reverse("signalbox:instance", args=["activation", id])) == id


@given(texts, texts)
def test_two_ids_never_share_an_address(one, other):
    assert (InstanceId().to_url(one) == InstanceId().to_url(other)) == (one == other)


@for_each("id", ODD)
@for_each("page", ["fire", "force", "delete"])
def test_what_can_be_done_with_an_odd_id_has_its_address_below(page, id):
    found = resolve(unquote(reverse(f"signalbox:{page}", args=["activation", id])))
    assert (found.url_name, found.kwargs) == (page, {"machine": "activation", "id": id})


@pytest.mark.parametrize("name", ["1st", "a b", "a/b", "", "a" * 65, "naïve", "-x", ".."])
def test_what_cannot_be_a_machine_name_has_no_address(client, name):
    assert client.get(f"/machines/{name}/").status_code == 404


def _through_a_browser(address: str) -> str:
    """What the site sees when a browser follows the address: dots resolved, then quoting undone."""
    path = urlsplit(address).path
    segments = path.split("/")
    assert not {unquote(segment) for segment in segments} & {".", ".."}, f"{path} would be resolved away"
    assert address.isascii()
    found = resolve(unquote(path))
    assert found.url_name == "instance"
    return found.kwargs["id"]
