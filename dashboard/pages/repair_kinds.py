"""The repairs there are: what each is called, what it does, when it makes sense, and what it says when it is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from machines.engine import Instance, Preview, Wait


@dataclass(frozen=True, slots=True)
class Kind:
    """``ready``: what it would do can be told before anything is filled in. ``of_job``: it is about one of its jobs."""

    name: str
    title: str
    label: str
    about: str
    danger: bool = False
    ready: bool = True
    of_job: bool = False


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "retry", "Retry its job", "Retry it",
            "Its dead job is ready again with all its attempts; one that is delayed runs at once.", of_job=True,
        ),
        Kind(
            "skip", "Skip its job", "Skip it",
            "Takes the job away and goes on as if it had ended with the result you give. Transitions and actions run as"
            " they would have.", of_job=True,
        ),
        Kind(
            "cancel", "Cancel its job", "Cancel it",
            "Takes the job away. The instance gets error.invoke with the kind Withdrawn, if it listens for it.",
            danger=True, of_job=True,
        ),
        Kind(
            "edit", "Edit its data", "Change it",
            "Changes fields, each by its declared type. Nothing else happens: guards see it with the next event.",
            ready=False,
        ),
        Kind(
            "force", "Force it into a state", "Force it",
            "Puts it into a state whatever its transitions say. No entry or exit action runs.",
            danger=True, ready=False,
        ),
        Kind(
            "reset", "Reset it", "Reset it",
            "Back to its initial state and its initial data. No action runs; jobs, timers and what it runs end.",
            danger=True,
        ),
        Kind(
            "suspend", "Suspend it", "Suspend it",
            "It takes no event, its timers wait, and what is sent to it queues up until someone resumes it.",
        ),
        Kind(
            "resume", "Resume it", "Resume it",
            "It goes on: what waited for it is applied in order, and its timers run again.",
        ),
        Kind(
            "delete", "Delete it", "Delete it",
            "Removes this one instance with its history and its open jobs. This cannot be undone.", danger=True,
        ),
    )
}  # fmt: skip


def changes(preview: Preview, held: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """For each data field that would change, what it holds and what it would hold. ``held``: the data as this person
    sees it."""
    return [
        (name, {"was_set": name in held, "old": held.get(name), "new": new}) for name, new in preview.changes.items()
    ]


@dataclass(frozen=True, slots=True)
class Choice:
    """A repair that makes sense now. ``of``: the handler of the job it is about."""

    kind: Kind
    url: str
    of: str = ""


def choices(instance: Instance, waits: Iterable[Wait]) -> list[Choice]:
    """In the order of the page: jobs first, for they are what mostly needs a hand."""
    return list(_choices(instance, list(waits)))


def _choices(instance: Instance, waits: list[Wait]) -> Iterator[Choice]:
    for name, kind in KINDS.items():
        url = reverse(name, args=[instance.machine, instance.id])
        if kind.of_job:
            for wait in waits:
                if name in wait.repairs:
                    yield Choice(kind, f"{url}?{urlencode({'invoke': wait.invoke})}", wait.src)
        elif _makes_sense(name, instance):
            yield Choice(kind, url)


def _makes_sense(name: str, instance: Instance) -> bool:
    if name == "suspend":
        return not instance.done and not instance.suspended
    return name != "resume" or bool(instance.suspended)


def told(name: str, before: Instance, after: Instance) -> str:
    """What came of it, in one line."""
    if after.outcome and after.outcome.replayed:
        return f"It had counted already: {after.id} is at version {after.version}"
    if name == "suspend":
        return f"{after.id} is suspended: nothing moves it until it is resumed"
    if name == "resume":
        return f"{after.id} goes on, in {after.state}, version {after.version}"
    if name == "delete":
        return f"{after.id} deleted; it was in {after.state}"
    moved = after.state if before.configuration == after.configuration else f"{before.state} → {after.state}"
    word = {"force": "Forced", "edit": "Changed", "reset": "Reset", "retry": "Retried", "skip": "Skipped"}
    return f"{word.get(name, 'Cancelled')}: {moved}, version {after.version}"
