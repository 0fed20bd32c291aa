"""Checks a text while it is written: findings with their places, names for completion, and the diagram, in one answer.

The text is the body of the request. One check of a person runs at a time, in a helper process with a limit on its time;
the browser sends the newest text when an answer has come, so typing fast costs no more than typing.
"""

import json
import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST

from dashboard.shared.errors.statuses import status_of
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.rendering import answer_json
from machines.catalog import offload
from machines.catalog.editing import runs
from machines.catalog.editing.checking import WRITTEN
from machines.catalog.editing.places import vocabulary
from machines.catalog.editing.runs import describe_run
from machines.catalog.queries import find_latest, get_version
from machines.catalog.submissions import FORMAT_NAMES, GUESS
from machines.connections import get_pattern
from machines.engine import BadInput, EngineUnavailable, SignalboxError
from machines.engine.limits import MAX_DEFINITION, VIEWERS_DEFINITION
from machines.engine.verification.report import FOUND, PROVEN, UNDECIDED, VerificationFinding
from machines.models import MachineVersion
from machines.patterns import Throttle
from machines.people.actor import Actor
from machines.worker.registry import handlers

MOST = 200  # machines whose definitions are looked through
CPU, VIEWERS_CPU = 6.0, 3.0  # seconds of processor time that one check may take
CHECKS, PER = 900, 60  # checks of one person in so many seconds; what is large counts as several
PER_BYTES = 64 * 1024


@require("view")
@require_POST
def check(request: HttpRequest, machine: str) -> JsonResponse:
    """Check the text. An account that may not publish can only read it, and has smaller limits."""
    may = Actor.of(request).may("publish", machine)
    return _answer(request, MAX_DEFINITION if may else VIEWERS_DEFINITION, CPU if may else VIEWERS_CPU)


@require("publish")
@require_POST
def check_new(request: HttpRequest) -> JsonResponse:
    return _answer(request, MAX_DEFINITION, CPU)


def _answer(request: HttpRequest, most: int, cpu: float) -> JsonResponse:
    text = read_text(request, most, what="checked while it is written")
    if isinstance(text, JsonResponse):
        return text
    terms = _read_terms(request)
    if request.content_type == "application/json":
        try:
            text, terms["wanted"] = _read_change(text)
        except (ValueError, KeyError, TypeError, RecursionError):
            return refuse(400, "SB700", 'Send {"text": the text, "change": {"do": what}}.')
    try:
        done = offload.run("study", text, who=Actor.of(request).id, cpu=cpu, **terms)
    except offload.OffloadError as error:
        return refuse_error(error)
    found = done.answer | {"cpu": round(done.cpu * 1000)}
    if "known" in request.GET:
        found |= {"known": list_known(Actor.of(request))}
    return answer_json(found)


def _read_change(body: str) -> tuple[str, dict[str, Any]]:
    """Read a text with the change made in its diagram. Raises KeyError, RecursionError, TypeError, ValueError."""
    read = json.loads(body)
    text, change = read["text"], read["change"]
    if not isinstance(text, str) or not isinstance(change, dict):
        raise TypeError
    return text, change


def read_text(request: HttpRequest, most: int, *, what: str, cost: int = 1) -> str | JsonResponse:
    """Return the text of the body, or the answer that refuses it: too large, too many of them, or no UTF-8."""
    if refused := admit(request, most, what=what, cost=cost):
        return refused
    try:
        return request.body.decode()
    except UnicodeDecodeError:
        return refuse(400, "SB700", "The text is not valid UTF-8.")


def admit(request: HttpRequest, most: int, *, what: str, cost: int = 1) -> JsonResponse | None:
    """Return the answer to a body that is too large, or to one too many of them; None for one that may be read."""
    size = int(request.META.get("CONTENT_LENGTH") or 0)
    if size > most:
        return refuse(413, "SB713", f"The text has {size:,} bytes; at most {most:,} are {what}.")
    if wait := spend(request, cost + size // PER_BYTES):
        return refuse(429, "SB711", "Too many checks in a short time.", retry_after=wait)
    return None


def _read_terms(request: HttpRequest) -> dict[str, Any]:
    """Read the terms of the address: all optional, anything else is ignored."""
    asked = request.GET
    write = asked.get("write", "")
    return {
        "format": read_format(asked.get("format", GUESS)),
        "draw": asked.get("draw") != "0",
        "seen": asked.get("seen", "")[:64],
        "write": write if write in WRITTEN else "",
    }


def spend(request: HttpRequest, cost: int) -> int:
    """Count checks of a person. Return seconds to wait, 0 for none. A check needs no Redis: without one, it goes on."""
    try:
        verdict = get_pattern(Throttle).take("studio.check", str(request.user.pk), limit=CHECKS, per=PER, cost=cost)
    except EngineUnavailable:
        return 0
    return 0 if verdict.allowed else max(1, math.ceil(verdict.retry_after))


def refuse(status: int, code: str, message: str, *, retry_after: int = 0, **facts: Any) -> JsonResponse:
    response = answer_json({"error": message, "code": code} | facts, status=status)
    if retry_after:
        response["Retry-After"] = str(retry_after)
    return response


def refuse_error(error: SignalboxError) -> JsonResponse:
    return refuse(status_of(type(error)), error.code, error.message, retry_after=getattr(error, "retry_after", 0))


def read_format(text: str, known: Collection[str] = FORMAT_NAMES) -> str:
    """Return a format by its name; for any other text the one that guesses."""
    return text if text in known else GUESS


def list_known(actor: Actor) -> dict[str, Any]:
    """List what the editor may suggest: ``machines`` that the actor sees, ``handlers`` that those invoke or that this
    process has, and the language."""
    names = dict(sorted(_list_current_versions(actor).items())[:MOST])
    found: dict[str, None] = dict.fromkeys(handlers)
    recorded = MachineVersion.objects.filter(machine__name__in=names)
    for name, number, definition in recorded.values_list("machine__name", "number", "definition"):
        if names[name] == number:
            found |= dict.fromkeys(_list_sources(definition))
    return vocabulary() | {"machines": list(names), "handlers": sorted(found)}


def _list_current_versions(actor: Actor) -> dict[str, int]:
    try:
        return RedactedEngine(actor).machines()
    except EngineUnavailable:  # what is completed then is the language alone
        return {}


def _list_sources(part: Any) -> list[str]:
    """List every ``src`` of a definition."""
    if isinstance(part, dict):
        own = [part["src"]] if isinstance(part.get("src"), str) else []
        return own + [name for value in part.values() for name in _list_sources(value)]
    return [name for value in part for name in _list_sources(value)] if isinstance(part, list) else []


VERIFICATION_CPU = 6.0  # seconds of processor time to read the text, and again to find the places
MOST_VERIFIED = 128 * 1024  # bytes of a text
SNAPSHOTS, SECONDS = 500, 3.0  # while an author writes: Redis, which computes them, serves others too
MORE_SNAPSHOTS, MORE_SECONDS = 5_000, 20.0  # when the author asks for it
RESULTS = {FOUND: "found", UNDECIDED: "not decided", PROVEN: "proven"}
COST, MORE_COST = 15, 60  # checks, of the pace that a person has


@require("view")
@require_POST
def verify(request: HttpRequest, machine: str) -> JsonResponse:
    return _answer_verification(request, machine)


@require("publish")
@require_POST
def verify_new(request: HttpRequest) -> JsonResponse:
    return _answer_verification(request, "")


def _answer_verification(request: HttpRequest, machine: str) -> JsonResponse:
    """Answer a verification. ``?longer``: with a larger budget."""
    longer, format = "longer" in request.GET, read_format(request.GET.get("format", GUESS))
    cost = MORE_COST if longer else COST
    text = read_text(request, MAX_DEFINITION, what="verified", cost=cost)
    if isinstance(text, JsonResponse):
        return text
    try:
        return answer_json(_verify(request, machine, text, format=format, longer=longer))
    except SignalboxError as error:
        return refuse_error(error)


def _verify(request: HttpRequest, machine: str, text: str, *, format: str, longer: bool) -> dict[str, Any]:
    """Return ``findings``, each with ``range`` (offsets of JavaScript), ``said`` (its verdict in words) and ``steps``
    (its run in words), perhaps ``run_text`` (that the simulator plays) and ``link`` (to it), and ``counts``, of each
    verdict. ``unread``: why there is nothing to verify.

    The text is read in a helper process like every other; the walk waits for Redis, which computes it. One verification
    of a person runs at a time.
    """
    if len(text.encode(errors="replace")) > MOST_VERIFIED:
        return _refuse(f"At most {MOST_VERIFIED:,} bytes are verified here: use manage.py machine verify.")
    who = Actor.of(request).id
    with offload.pool.turn(f"{who}:verify" if who else ""):
        read = offload.read_submission(
            offload.run("read", text, who="", cpu=VERIFICATION_CPU, format=format, whole=True)
        )
        if read.compiled is None:
            return _refuse("Correct the errors under Findings first.")
        budget, seconds = (MORE_SNAPSHOTS, MORE_SECONDS) if longer else (SNAPSHOTS, SECONDS)
        found = redacted_engine(request).verify(read.compiled, budget=budget, seconds=seconds)
        paths = [one.path for one in found]
        ranges = offload.run("locate", text, who="", cpu=VERIFICATION_CPU, format=read.format, paths=paths).answer
    version = _find_same(machine, read.compiled.source)
    findings = [_describe(one, place, machine, version) for one, place in zip(found, ranges, strict=True)]
    counts = {verdict: sum(one.verdict == verdict for one in found) for verdict in RESULTS}
    return {"findings": findings, "counts": counts, "longer": longer}


def _find_same(machine: str, definition: dict[str, Any]) -> int | None:
    """Return the newest version of a machine, if it has that definition."""
    version = find_latest(machine) if machine else None
    if version is None or get_version(machine, version, without=("drawing",)).definition != definition:
        return None
    return version


def _refuse(why: str) -> dict[str, Any]:
    return {"findings": [], "counts": {}, "unread": why}


def _describe(finding: VerificationFinding, place: Sequence[int], machine: str, version: int | None) -> dict[str, Any]:
    """Tell a finding. Its run is linked to the simulator where that has the same definition, as a ``version``."""
    described = finding.as_dict() | {"said": RESULTS[finding.verdict], "range": place, "steps": []}
    if finding.verdict == FOUND:
        described["steps"] = describe_run(finding)
        with suppress(BadInput):
            described["run_text"] = runs.encode(runs.make(finding.run, finding.data))
        if version is not None:
            with suppress(BadInput):  # a run that fits in no link
                described["link"] = runs.link(machine, version, finding.run, finding.data)
    return described
