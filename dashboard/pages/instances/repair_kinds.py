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
            "retry", "Retry job", "Retry job",
            "A dead job becomes ready again with its attempts reset; a delayed job runs immediately.", of_job=True,
        ),
        Kind(
            "skip", "Skip job", "Skip job",
            "Removes the job and continues as if it had completed with the given result. Transitions and actions run as"
            " usual.", of_job=True,
        ),
        Kind(
            "cancel", "Cancel job", "Cancel job",
            "Removes the job. The instance receives error.invoke with the kind Withdrawn.",
            danger=True, of_job=True,
        ),
        Kind(
            "edit", "Edit data", "Save changes",
            "Changes data fields, by their declared types. No transitions run.",
            ready=False,
        ),
        Kind(
            "force", "Force state", "Force state",
            "Sets the state, ignoring the transitions. No entry or exit actions run.",
            danger=True, ready=False,
        ),
        Kind(
            "reset", "Reset instance", "Reset instance",
            "Returns to the initial state and initial data. No actions run; jobs, timers and child instances end.",
            danger=True,
        ),
        Kind(
            "suspend", "Suspend instance", "Suspend instance",
            "No events are accepted, timers are paused and messages are queued until the instance is resumed.",
        ),
        Kind(
            "resume", "Resume instance", "Resume instance",
            "Delivers the queued messages in order and restarts the timers.",
        ),
        Kind(
            "delete", "Delete instance", "Delete instance",
            "Deletes this instance with its history and open jobs. This cannot be undone.", danger=True,
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
        return f"Already applied: {after.id} is at revision {after.version}"
    if name == "suspend":
        return f"{after.id} suspended until it is resumed"
    if name == "resume":
        return f"{after.id} resumed in {after.state}, revision {after.version}"
    if name == "delete":
        return f"{after.id} deleted; last state: {after.state}"
    moved = after.state if before.configuration == after.configuration else f"{before.state} → {after.state}"
    word = {"force": "Forced", "edit": "Changed", "reset": "Reset", "retry": "Retried", "skip": "Skipped"}
    return f"{word.get(name, 'Cancelled')}: {moved}, revision {after.version}"
