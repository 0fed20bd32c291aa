"""Backends of Django's tasks beside ours: what is pinned is what TASKS.md names, and all of them have settings."""

from __future__ import annotations

import re

import benchmarks.tasks.__main__ as tasks


def test_the_page_names_every_backend_that_is_measured():
    named = tasks.PAGE.read_text(encoding="utf-8")
    pins = re.findall(r"^(django[\w-]*)\S*==(\S+)", tasks.REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    backends = [f"{name} {version}" for name, version in pins if name != "django-guardian"]
    assert len(backends) == 4
    assert all(backend in named for backend in backends)
    assert all(f"| {each.title} |" in named for each in tasks.CONTENDERS)
