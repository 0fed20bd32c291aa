"""Tags that write the parts of a page: what they are given is escaped, and what stands in them is markup."""

from __future__ import annotations

import pytest
from django.template import Context, Template

pytestmark = pytest.mark.pure

LINK = '<a href="/">x</a>'
HOSTILE = "<script>"
SAFE = "&lt;script&gt;"


def render(text: str) -> str:
    return Template("{% load room %}" + text).render(Context({"hostile": HOSTILE}))


def test_a_panel_is_named_by_its_heading():
    assert render(
        '{% panel "jobs" hostile aside=hostile class="wide" data_region="jobs" %}' + LINK + "{% endpanel %}"
    ) == (
        '<section aria-labelledby="jobs" class="panel wide" data-region="jobs"><header>'
        f'<h2 id="jobs">{SAFE}</h2><span class="aside">{SAFE}</span></header>{LINK}</section>'
    )


def test_a_panel_takes_markup_for_its_heading_and_beside_it():
    made = render(
        '{% panel "a" %}{% heading %}<b>A</b>{% endheading %}{% aside %}{{ hostile }}{% endaside %}x{% endpanel %}'
    )
    assert made == (
        '<section aria-labelledby="a" class="panel"><header><h2 id="a"><b>A</b></h2>'
        f'<span class="aside">{SAFE}</span></header>x</section>'
    )
    assert (
        render('{% panel "a" %}{% heading %}A{% endheading %}{% endpanel %}{% panel "b" "B" %}{% endpanel %}').count(
            "A"
        )
        == 1
    )


def test_a_notice_has_the_sign_of_its_kind_or_its_own():
    assert render('{% notice "warn" role="alert" %}{{ hostile }}{% endnotice %}') == (
        '<div class="notice warn" role="alert"><span class="sign" aria-hidden="true">▲</span>'
        f'<p class="said">{SAFE}</p></div>'
    )
    assert '<div class="notice"><span class="sign" aria-hidden="true">◎</span>' in render(
        '{% notice "" sign="◎" %}gone{% endnotice %}'
    )


def test_a_table_has_its_heads_and_scrolls_by_itself():
    assert render('{% table "Job" "Tries:num" class="cards" %}<tr></tr>{% endtable %}') == (
        '<div class="scroll"><table class="cards"><thead><tr><th scope="col">Job</th>'
        '<th scope="col" class="num">Tries</th></tr></thead><tbody><tr></tr></tbody></table></div>'
    )


def test_a_head_may_have_a_note_and_an_empty_one_is_no_column():
    assert render('{% columns "Wait|last hour:num" "" "Actions:unseen" %}') == (
        '<thead><tr><th scope="col" class="num">Wait <small>last hour</small></th>'
        '<th scope="col"><span class="unseen">Actions</span></th></tr></thead>'
    )


def test_a_fact_grows_unless_it_has_a_class():
    assert render("{% fact hostile %}" + LINK + "{% endfact %}") == (
        f'<tr><th scope="row">{SAFE}</th><td class="grow">{LINK}</td></tr>'
    )
    assert render('{% fact "lease" class="" %}5 s{% endfact %}') == '<tr><th scope="row">lease</th><td>5 s</td></tr>'
