"""Drafts of definitions: texts with author, base version and note, which people compare, check and publish.

Each action takes the right to publish on the machine. A draft is never written over by accident: a writer names the
revision that they saw, and a draft whose base is no longer the current version is a conflict until it is rebased.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, cast

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from machines.catalog import offload, queries, submissions
from machines.catalog.errors import DraftChanged, DraftClosed, DraftConflict
from machines.catalog.models import Draft, MachineVersion
from machines.catalog.rules import VersionChange, prepare_change
from machines.catalog.submissions import FORMAT_NAMES, GUESS, Submission
from machines.catalog.version_rules import PUBLISH, find_rule
from machines.engine import BadInput, DefinitionError, SignalboxError, arguments
from machines.engine.definitions import CompiledDefinition
from machines.engine.limits import MAX_DEFINITION, MAX_REASON
from machines.people.actor import Actor

from . import editors
from . import publication as definitions

CPU = 20.0  # seconds of processor time that reading one draft may take
REPOSITORY = "repository"
"""The author of drafts that ``machine sync --draft`` makes."""
SITTING = timedelta(minutes=15)  # between two writes of one person that are one entry of the audit
MOST_OPEN = 200  # open drafts of one machine
State = Draft.State
Charge = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Check:
    """What is to be known of a draft before it is published. ``current``: the version that the next one comes after, so
    the current one or the one that is rolled out, None for a new machine; ``needs_second``: whether its publication
    takes the approval of another person."""

    draft: Draft
    submission: Submission
    current: int | None
    needs_second: bool

    @property
    def is_stale(self) -> bool:
        """Whether its base is no longer the current version."""
        return self.current != self.draft.base

    @property
    def machine(self) -> str:
        """What the text calls its machine; it has to be the draft's."""
        return self.submission.name

    @property
    def publishable(self) -> bool:
        """Whether nothing in the text, and no newer version, keeps it from being published."""
        return self.machine == self.draft.machine and not self.submission.errors and not self.is_stale


def list_drafts(actor: Actor, machine: str = "", *, state: str = "open") -> QuerySet[Draft]:
    """List drafts of a machine, or of all on which the actor may publish, latest change first, without their texts.
    ``state``: one of them, or "" for any."""
    if machine:
        actor.demand("publish", machine)
    found = Draft.objects.defer("text")
    found = found.filter(machine=machine) if machine else actor.scope("publish").narrow(found)
    return found.filter(state=state) if state else found


def get(actor: Actor, id: int, *, action: str = "") -> Draft:
    """Return a draft. Raises Forbidden, also for one that does not exist where the actor may not publish every
    machine; else DoesNotExist.

    ``action``: of the audit, which then has the refusal."""
    return cast(Draft, actor.find_row(Draft.objects.all(), id, "publish", "draft", action=action))


def save(  # noqa: PLR0913
    actor: Actor,
    machine: str,
    text: str,
    *,
    format: str = GUESS,
    note: str = "",
    id: int | None = None,
    expect: int | None = None,
    base: int | None = None,
) -> Draft:
    """Keep a definition that is not published: a new draft, or with ``id`` other words of one that is open.

    Anything may be in it: ``check`` says what is wrong. ``base``: the version that it was made from, the current one
    where none is given. ``expect``: the revision of the draft that was looked at; any other raises DraftChanged.

    Raises Forbidden, BadInput, DraftClosed, DraftChanged, DoesNotExist.
    """
    with actor.records("draft.save", machine=machine, target="" if id is None else f"draft {id}", reason=note) as entry:
        actor.demand("publish", machine)
        arguments.check_machine(machine)
        _check_words(text, format, note)
        if id is None:
            made = _create(actor, machine, text, format, note, base)
        else:
            draft = Draft.objects.get(pk=id, machine=machine)
            _demand_open(draft)
            made = _update(draft, expect, text=text, format=format, note=note, **_writer(actor))
        entry.name(target=f"draft {made.pk}")
        entry.note(base=made.base, revision=made.revision, digest=made.digest)
    return made


def autosave(actor: Actor, machine: str, text: str, *, format: str, note: str, id: int, expect: int) -> Draft:
    """Keep what the last writer of a draft goes on typing: like ``save``, but not each pause is an entry of the audit.

    The first write of an author, and one after ``SITTING``, is one. Raises what ``save`` raises.
    """
    draft = Draft.objects.filter(pk=id, machine=machine).first()
    goes_on = (
        draft is not None
        and draft.is_open
        and (draft.editor_id, draft.revision, draft.note) == (actor.id, expect, note)
        and timezone.now() - draft.updated_at < SITTING
        and actor.may("publish", machine)
    )
    if draft is None or not goes_on:
        return save(actor, machine, text, format=format, note=note, id=id, expect=expect)
    _check_words(text, format, note)
    return _update(draft, expect, text=text, format=format)


def save_from_repository(actor: Actor, machine: str, text: str, *, format: str, note: str) -> Draft:
    """Keep a definition of a repository: it replaces the open draft that an earlier commit made, whose base stays, so
    that what was published in between is a conflict. The same text again changes nothing."""
    former = Draft.objects.filter(machine=machine, state=State.OPEN, author=REPOSITORY, author_id="").first()
    if former is not None and (former.text, former.format) == (text, format):
        return former
    made = save(actor, machine, text, format=format, note=note, id=former.pk if former is not None else None)
    if former is None:
        Draft.objects.filter(pk=made.pk).update(author=REPOSITORY, author_id="")
        made.author, made.author_id = REPOSITORY, ""
    return made


def check(actor: Actor, id: int, *, charge: Charge | None = None) -> Check:
    """Return every finding of a draft, and whether it can be published now. ``charge`` gets the seconds of processor
    time."""
    draft = get(actor, id)
    current = queries.find_latest(draft.machine)
    submission = read(actor, draft, charge=charge)
    outline = None if submission.errors else queries.outline_from(json.dumps(submission.definition))
    return Check(draft, submission, current, find_rule(PUBLISH, draft.machine, definition=outline) is not None)


def read(actor: Actor, draft: Draft, *, whole: bool = False, charge: Charge | None = None) -> Submission:
    """Read and check the text in a helper process. ``whole``: with all that publishing it takes. Raises
    OffloadError."""
    if not actor.is_person:  # the command line has a process of its own
        return submissions.read(draft.text, format=draft.format)
    done = offload.run("read", draft.text, who=actor.id, cpu=CPU, format=draft.format, whole=whole)
    if charge is not None:
        charge(done.cpu)
    return offload.read_submission(done)


def rebase(actor: Actor, id: int, *, onto: int, expect: int | None = None) -> Draft:
    """Say that the draft was compared with version ``onto``, which has to be the current one, and is to replace it.
    The text stays: what the other version changed is in it, or is meant to go.

    Raises Forbidden, DraftClosed, DraftChanged, DraftConflict where ``onto`` is not the current version.
    """
    draft = get(actor, id, action="draft.rebase")
    with actor.records("draft.rebase", machine=draft.machine, target=f"draft {id}") as entry:
        entry.note(before=draft.base, after=onto)
        _demand_open(draft)
        current = queries.find_latest(draft.machine)
        if current != onto:
            raise DraftConflict(draft.pk, draft.machine, onto, current)
        return _update(draft, expect, base=onto)


def discard(actor: Actor, id: int, *, expect: int | None = None, reason: str = "") -> Draft:
    """Close a draft without publishing it; its text stays, for who looks it up. Raises Forbidden, DraftClosed,
    DraftChanged."""
    draft = get(actor, id, action="draft.discard")
    with actor.records("draft.discard", machine=draft.machine, target=f"draft {id}", reason=reason):
        _demand_open(draft)
        return _update(draft, expect, state=State.DISCARDED, closed_by=actor.name)


@dataclass(frozen=True, slots=True)
class ApprovedPublication:
    """What was approved: by ``second``, of the text with ``digest``, at the ``turn`` of the machine's versions."""

    second: str = ""
    digest: str = ""
    turn: int | None = None


def publish(
    actor: Actor,
    id: int,
    *,
    reason: str = "",
    rollout: float | None = None,
    expect: int | None = None,
    approved: ApprovedPublication | None = None,
    charge: Charge | None = None,
) -> MachineVersion:
    """Make the draft its machine's current version, or with ``rollout`` that of so many per cent of new instances.

    ``reason``: kept with the version, the draft's note where there is none. Raises Forbidden, DraftClosed,
    DraftConflict, DraftChanged, VersionRefused, ApprovalNeeded, DefinitionError, and what ``definitions.publish``
    raises. Of several who publish at once, one goes first, and the base of the others is no longer current.
    """
    draft = get(actor, id, action="publish")
    approved, why = approved or ApprovedPublication(), reason or draft.note
    seen, turn = approved.digest or draft.digest, approved.turn

    def check(change: VersionChange) -> None:
        change.demand_turn(turn)
        draft.refresh_from_db()
        _check_publishable(draft, expect=expect, digest=seen)
        change.demand_second(
            actor, approved.second, action=PUBLISH,
            asked={"draft": draft.pk, "digest": draft.digest, "rollout": rollout}, reason=why,
            target=f"draft {draft.pk}", hint=f"publish draft {draft.pk} in the room",
        )  # fmt: skip

    try:
        if turn is not None:
            prepare_change(PUBLISH, draft.machine).demand_turn(turn)
        _check_publishable(draft, expect=expect, digest=seen)
    except SignalboxError as error:
        _refuse(actor, draft, why, error)
    compiled = _compile(actor, draft, why, charge)
    version = definitions.publish(
        actor, compiled, reason=why, rollout=rollout, second=approved.second, draft=draft.pk, check=check
    )
    # Other words that were saved meanwhile stay an open draft, whose base is no longer current.
    Draft.objects.filter(pk=draft.pk, state=State.OPEN, revision=draft.revision).update(
        state=State.PUBLISHED, published=version.number, closed_by=actor.name, updated_at=timezone.now()
    )
    return version


def _compile(actor: Actor, draft: Draft, why: str, charge: Charge | None) -> CompiledDefinition | None:
    """Compile a draft that is to be published. Raises DefinitionError where it cannot be."""
    submission = read(actor, draft, whole=True, charge=charge)
    if submission.definition is None or submission.errors:
        _refuse(actor, draft, why, DefinitionError(list(submission.findings)))
    if submission.name != draft.machine:
        text = (
            f"the draft is of {draft.machine!r}, and its text of {submission.name!r}: its `id` has to be the machine's"
            " name; nothing was published"
        )
        _refuse(actor, draft, why, BadInput(text, code="SB643"))
    return submission.compiled


def demand_same(draft: Draft, digest: str) -> None:
    """Refuse another text: an approval covers one text, and one alone. Raises DraftClosed, DraftChanged."""
    _demand_open(draft)
    if draft.digest != digest:
        raise DraftChanged(draft.pk)


def _check_publishable(draft: Draft, *, expect: int | None, digest: str) -> None:
    """Check all that can be said without reading the text. Raises DraftClosed, DraftChanged, DraftConflict."""
    if expect is not None and draft.is_open and draft.revision != expect:
        raise DraftChanged(draft.pk, expected=expect, actual=draft.revision)
    demand_same(draft, digest)
    current = queries.find_latest(draft.machine)
    if current != draft.base:
        raise DraftConflict(draft.pk, draft.machine, draft.base, current)


def _refuse(actor: Actor, draft: Draft, why: str, error: Exception) -> None:
    with actor.records("publish", machine=draft.machine, target=f"draft {draft.pk}", reason=why):
        raise error


def _create(actor: Actor, machine: str, text: str, format: str, note: str, base: int | None) -> Draft:
    if Draft.objects.filter(machine=machine, state=State.OPEN).count() >= MOST_OPEN:
        raise BadInput(f"{machine!r} has {MOST_OPEN} open drafts: publish or discard some", code="SB647")
    if base is not None:
        queries.get_version(machine, base, without=("definition", "drawing"))  # raises where there is no such version
    else:
        base = queries.find_latest(machine)
    return Draft.objects.create(
        machine=machine, base=base, text=text, format=format, note=note, author=actor.name, author_id=actor.id,
        **_writer(actor),
    )  # fmt: skip


def _writer(actor: Actor) -> dict[str, str]:
    return {"editor": actor.name, "editor_id": actor.id}


def _demand_open(draft: Draft) -> None:
    if not draft.is_open:
        raise DraftClosed(draft.pk, draft.state)


def _update(draft: Draft, expect: int | None, **facts: Any) -> Draft:
    """Write an open draft, if it is at the revision that was read, and that ``expect`` names."""
    seen = draft.revision if expect is None else expect
    rows = Draft.objects.filter(pk=draft.pk, state=State.OPEN, revision=seen)
    count = rows.update(**facts, revision=F("revision") + 1, updated_at=timezone.now())
    draft.refresh_from_db()
    if not count:
        _demand_open(draft)
        raise DraftChanged(draft.pk, expected=seen, actual=draft.revision)
    transaction.on_commit(partial(editors.announce, draft.machine))
    return draft


def _check_words(text: str, format: str, note: str) -> None:
    """Check what a database takes, and helpers can read. Raises BadInput."""
    if format not in FORMAT_NAMES:
        raise BadInput(f"format is one of {', '.join(FORMAT_NAMES)}, not {format[:40]!r}", code="SB643")
    for name, words, most in (("text", text, MAX_DEFINITION), ("note", note, MAX_REASON)):
        try:
            size = len(words.encode())
        except UnicodeEncodeError:
            raise BadInput(f"the {name} of a draft is not text: half a character stands in it", code="SB643") from None
        if "\0" in words:
            raise BadInput(f"the {name} of a draft holds the character NUL, which no format takes", code="SB643")
        if size > most:
            raise BadInput(f"the {name} of a draft has {size:,} bytes; at most {most:,} are kept", code="SB643")
    if not text.strip():
        raise BadInput("the text of a draft is empty", code="SB643")
