"""Remembered addresses are those that Django's resolver gives."""

from __future__ import annotations

import pytest
from django.template import Context, Template
from django.test import RequestFactory
from django.urls import NoReverseMatch, reverse, set_script_prefix, set_urlconf
from hypothesis import given
from hypothesis import strategies as st

from dashboard.shared import addresses
from dashboard.shared.addresses import find_instance_address, find_page_address
from tests.cases import for_each


@given(st.text(min_size=1, max_size=40))
def test_the_address_of_an_instance_is_that_of_reverse(id):
    assert find_instance_address("activation", id) == reverse("signalbox:instance", args=["activation", id])


@for_each("id", ["a/b", ".", "..", ".x", "~2F", "%2F", "a b", "é🚦", "instance", "x?y#z", "'\"<>&", "//"])
def test_so_it_is_for_odd_ids(id):
    assert find_instance_address("instance", id) == reverse("signalbox:instance", args=["instance", id])


def test_an_address_is_remembered_by_all_it_depends_on():
    assert find_page_address("signalbox:queue", "m", "q") == reverse("signalbox:queue", args=["m", "q"])
    set_script_prefix("/ops/")
    try:
        assert find_page_address("signalbox:queue", "m", "q") == "/ops/queues/m/q/"
        assert find_instance_address("m", "1").startswith("/ops/machines/")
    finally:
        set_script_prefix("/")
    assert find_page_address("signalbox:queue", "m", "q") == "/queues/m/q/"
    set_urlconf("dashboard.api.urls")
    try:
        with pytest.raises(NoReverseMatch):
            find_page_address("signalbox:queue", "m", "q")
    finally:
        set_urlconf(None)


def test_what_has_no_address_raises_each_time():
    for _ in range(2):
        with pytest.raises(NoReverseMatch):
            find_page_address("signalbox:queue", "not a name", "q")


def test_no_more_addresses_are_kept_than_the_bound():
    for number in range(addresses.MOST + 10):
        find_page_address("signalbox:error-group", number)
    assert addresses._find.cache_info().currsize == addresses.MOST


@for_each(
    "tag",
    [
        "'signalbox:overview'",
        "'signalbox:machine' name",
        "'signalbox:machine' machine=name",
        "'signalbox:instance' name id",
        "'admin:index'",
        "where",
        "'signalbox:machine' name as found %}{{ found }}{% if found",
    ],
)
def test_the_tag_writes_what_django_writes(tag):
    tag, _, rest = tag.partition(" %}")
    text = f"{{% url {tag} %}}" if not rest else f"{{% url {tag} %}}{{{{ found }}}}"
    context = {"name": "m", "id": "a&b/'c", "where": "signalbox:queues"}
    assert Template("{% load room %}" + text).render(Context(context)) == Template(text).render(Context(context))


def test_the_tag_says_where_an_address_cannot_be(rf: RequestFactory):
    for text in ("{% url 'signalbox:machine' none %}", "{% url 'signalbox:nowhere' %}"):
        with pytest.raises(NoReverseMatch):
            Template("{% load room %}" + text).render(Context({"request": rf.get("/")}))
    quiet = "{% load room %}{% url 'signalbox:nowhere' as url %}[{{ url }}]"
    assert Template(quiet).render(Context({})) == "[]"
