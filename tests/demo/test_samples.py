"""What a demo that is started again does with its sample machines."""

import json

import pytest

from dashboard.demo import preparation
from dashboard.site import home
from machines.catalog.publishing import publish
from machines.connections import get_engine

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("prefix")]


def test_a_sample_that_a_newer_version_replaced_is_not_published_again(tmp_path):
    text = (home.SAMPLES / "payment.json").read_text(encoding="utf-8")
    (tmp_path / "payment.json").write_text(text, encoding="utf-8")
    assert preparation.machines([tmp_path]) == "payment v1"
    newer = json.loads(text)
    name = next(iter(newer["states"]))
    newer["states"][name].setdefault("on", {})["noted"] = {"target": name}
    assert publish(newer).number == 2

    assert preparation.machines([tmp_path]) == "payment v2"
    assert get_engine().live("payment").version == 2
