"""Publishes definitions for commands, as the command line or in the name of an account; and ``machine sync``: publishes
the definitions of the apps' ``statemachines/`` folders, or saves drafts of them, or says how they differ.
"""

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from machines.approvals import actions as approvals
from machines.approvals.models import Approval
from machines.catalog import definition_files, sync
from machines.catalog.definition_files import FOLDER, AppFile, name_path
from machines.catalog.errors import ApprovalNeeded, DraftNeeded
from machines.catalog.models import MachineVersion
from machines.catalog.rules import prepare_change
from machines.catalog.sync import NEWER, UNCHANGED, Comparison
from machines.catalog.versions import drafts
from machines.catalog.versions import publication as definitions
from machines.engine.definitions import CompiledDefinition
from machines.engine.errors import EngineUnavailable, SignalboxError
from machines.people.actor import Actor
from machines.worker.registry import discover


def add_user_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--user",
        default="",
        metavar="NAME",
        help="publish with the rights of this account; where that takes a second person, ask for the approval",
    )


def find_actor(name: str) -> Actor:
    """Return the account of a name, the command line where none is given. Raises CommandError."""
    if not name:
        return Actor.console()
    model = get_user_model()
    user = model.objects.filter(**{model.USERNAME_FIELD: name}, is_active=True).first()
    if user is None:
        raise CommandError(f"--user: there is no active account {name!r}")
    return Actor(user, "command line")


def publish(
    actor: Actor, compiled: CompiledDefinition, reason: str, *, operation: str = "publish"
) -> MachineVersion | Approval:
    """Publish a definition. Where that takes a second person, an account asks for the approval of a draft; the command
    line has no account to ask with. Raises DraftNeeded, and what ``definitions.publish`` raises."""
    try:
        return definitions.publish(actor, compiled, reason=reason, operation=operation)
    except DraftNeeded as needed:
        named = compiled.source["id"]
        if not actor.is_person or needed.machine != named:
            raise
        draft = drafts.save(actor, named, json.dumps(compiled.source, indent=2, ensure_ascii=False), note=reason)
        try:
            return drafts.publish(actor, draft.pk)
        except ApprovalNeeded as asked:
            return approvals.ask(actor, asked, reason=reason or f"draft {draft.pk}")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--check", action="store_true", help="publish nothing; exit with 1 for findings and differences"
    )
    parser.add_argument("--dry-run", action="store_true", help="publish nothing; print what would be published")
    parser.add_argument("--offline", action="store_true", help="with --check: findings only, without Redis")
    parser.add_argument("--strict", action="store_true", help="warnings count like errors")
    parser.add_argument(
        "--overwrite", action="store_true", help="publish files also where a newer version was published by hand"
    )
    parser.add_argument("--app", metavar="LABEL", help="the definitions of this app only")
    parser.add_argument("--draft", action="store_true", help="publish nothing; save what differs as drafts for review")
    add_user_argument(parser)
    parser.add_argument(
        "--commit", metavar="ID", default="", help="with --draft: the commit, for the notes of the drafts"
    )


def run(
    command: BaseCommand,
    *,
    check: bool,
    dry_run: bool,
    offline: bool,
    strict: bool,
    overwrite: bool,
    app: str | None,
    draft: bool,
    commit: str,
    user: str,
) -> None:
    """Run the command. Raises CommandError for findings, differences that were asked for, and what was left."""
    if offline and not check:
        raise CommandError("--offline goes with --check: nothing can be published without Redis")
    if draft and (check or dry_run):
        raise CommandError("--draft saves drafts, and --check and --dry-run write nothing: leave out one of them")
    if commit and not draft:
        raise CommandError("--commit goes with --draft")
    files, findings = _read(command, app, handlers=check or dry_run)
    broken = findings["error"] + (findings["warning"] if strict else 0)
    if broken and not check:
        raise CommandError(f"nothing was published: {_count(findings)}")
    comparisons = None if offline else _compare(command, files, check)
    if comparisons is not None:
        outcomes = (
            {} if check or dry_run else _write(comparisons, overwrite, commit if draft else None, find_actor(user))
        )
        _print_table(command, comparisons, outcomes)
    _print_summary(command, files, comparisons, findings)
    if check:
        _fail_for_drift(comparisons, broken, offline)
    elif left := [one.name for one in comparisons or () if one.status == NEWER and not overwrite]:
        raise CommandError(
            f"left as they are: {', '.join(left)}. Bring the newer version into the file (`manage.py machine export "
            "NAME -o FILE`), or publish the file with --overwrite"
        )


def _read(command: BaseCommand, app: str | None, *, handlers: bool) -> tuple[list[AppFile], Counter[str]]:
    """Read the files of all apps, since a name may clash with that of another one, and print errors and warnings;
    return the files of ``app``, and the number of each."""
    try:
        definition_files.list_folders(app)
    except LookupError as error:
        raise CommandError(f"--app: {error}") from error
    everything = definition_files.read_files()
    files = [one for one in everything if app in (None, one.label)]
    found = [
        (finding.severity, one.file.describe(finding)) for one in files for finding in one.file.submission.findings
    ]
    for duplicate in definition_files.find_duplicates(everything):
        if any(one in files for one in duplicate.files):
            found.append(("error", str(duplicate)))
    found += [("warning", text) for text in _find_missing_handlers(files)] if handlers else []
    for severity, text in found:
        command.stderr.write(f"{severity}: {text}")
    return files, Counter(severity for severity, _ in found)


def _find_missing_handlers(files: Sequence[AppFile]) -> list[str]:
    if not any(definition_files.has_jobs(one) for one in files):
        return []
    try:
        known = discover()
    except Exception as error:
        return [f"the handlers of an app cannot be imported, so they were not compared with the definitions: {error!r}"]
    return [str(missing) for missing in definition_files.find_missing_handlers(files, known)]


def _compare(command: BaseCommand, files: Sequence[AppFile], check: bool) -> list[Comparison] | None:
    """Compare the files; None where a check cannot, because Redis does not answer."""
    try:
        return sync.compare(definition_files.sort_by_dependency(files))
    except EngineUnavailable as error:
        if not check:
            raise
        command.stderr.write(f"differences were not checked: {error}")
        return None


def _write(comparisons: Sequence[Comparison], overwrite: bool, commit: str | None, actor: Actor) -> dict[str, str]:
    """Publish what differs, those that others send to first, or with ``commit`` make drafts; return name -> version or
    draft. Calling again goes on where an error ended it."""
    done: dict[str, str] = {}
    wanted = [one for one in comparisons if one.status != UNCHANGED and (one.status != NEWER or overwrite)]
    if commit is None and not actor.is_person:
        _refuse_for_second(actor, wanted)
    for one in wanted:
        note = f"{sync.NOTE}{one.file.name}"
        try:
            if commit is None:
                made = publish(actor, one.compiled, note, operation="sync")
                asked = isinstance(made, Approval)
                done[one.name] = f"{made.target}, request {made.pk}" if asked else f"v{made.number}"
            else:
                text, format = sync.read_text(one)
                about = f"{note} at {commit}" if commit else note
                draft = drafts.save_from_repository(actor, one.name, text, format=format, note=about)
                done[one.name] = f"draft {draft.pk}"
        except SignalboxError as error:
            before = f"; {'published' if commit is None else 'saved'} before it: {', '.join(done)}" if done else ""
            what = f"{name_path(one.file.file.path)}: {error.code} {error.message}{before}"
            raise CommandError(f"{what}. It is safe to run the command again") from error
    sync.adopt_unrecorded(comparisons)
    return done


def _refuse_for_second(actor: Actor, wanted: Sequence[Comparison]) -> None:
    """Refuse all before anything is written, where one takes a second person. Raises CommandError."""
    held = []
    for one in wanted:
        change = prepare_change("sync", one.name, definition=one.compiled.outline)
        if change.rule is not None:
            held.append(f"{one.name} ({change.rule})")
            with (
                suppress(DraftNeeded),
                actor.records("publish", machine=one.name, reason=f"{sync.NOTE}{one.file.name}"),
            ):
                raise DraftNeeded(one.name, change.rule)
    if held:
        raise CommandError(
            f"{DraftNeeded.code} nothing was published: these take the approval of a second person: {', '.join(held)}."
            " --draft saves drafts for review; --user NAME asks for the approval of drafts as that account"
        )


def _print_table(command: BaseCommand, comparisons: Sequence[Comparison], outcomes: dict[str, str]) -> None:
    """Print a line for each machine. ``outcomes``: name -> its outcome."""
    rows = []
    for one in comparisons:
        current = f"v{one.current}" if one.current is not None else "-"
        now = outcomes.get(one.name, current)
        version = current if now == current or one.status == UNCHANGED else f"{current} → {now}"
        version = now if one.current is None else version
        rows.append((one.name, one.status, version, name_path(one.file.file.path), one.note))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for row in rows:
        cells = "  ".join(f"{cell:{width}}" for cell, width in zip(row[:4], widths, strict=True))
        command.stdout.write(f"{cells}  {row[4]}".rstrip())


def _print_summary(
    command: BaseCommand, files: Sequence[AppFile], comparisons: Sequence[Comparison] | None, findings: Counter[str]
) -> None:
    if not files:
        command.stdout.write(f"no app has a folder {FOLDER}/ with definitions")
        return
    counts = Counter(one.status for one in comparisons or ())
    said = ", ".join(f"{count} {status}" for status, count in counts.items()) or "not compared"
    total = len(comparisons) if comparisons is not None else len(files)
    command.stdout.write(f"{total} machine{'' if total == 1 else 's'}: {said}; {_count(findings)}")


def _fail_for_drift(comparisons: Sequence[Comparison] | None, broken: int, offline: bool) -> None:
    """Raise for all that a check found."""
    why = [f"{broken} finding{'' if broken == 1 else 's'}"] if broken else []
    if comparisons is None and not offline:
        why.append("differences were not checked (--offline leaves them out)")
    drift = [one for one in comparisons or () if one.status != UNCHANGED]
    if drift:
        why.append("not as in the files: " + ", ".join(f"{one.name} ({one.status})" for one in drift))
    if why:
        raise CommandError("; ".join(why))


def _count(findings: Counter[str]) -> str:
    said = [
        f"{findings[kind]} {kind}{'' if findings[kind] == 1 else 's'}"
        for kind in ("error", "warning")
        if findings[kind]
    ]
    return ", ".join(said) or "no findings"
