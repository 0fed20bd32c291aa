"""Each fault still fits the code that it is put into."""

from __future__ import annotations

from pathlib import Path

import pytest

from .faults import FAULTS

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[2]


def test_each_fault_stands_once_in_its_file():
    assert [fault.what for fault in FAULTS if not fault.fits(ROOT)] == []


def test_each_fault_has_tests_beside_it():
    assert [path for fault in FAULTS for path in fault.tests if not (ROOT / path).exists()] == []
