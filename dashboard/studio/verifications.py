"""Verifies a text while it is written: what the machine can never do, and never should, with the runs that show it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST

from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import answer_json
from machines.catalog import offload
from machines.catalog.editing import runs
from machines.catalog.editing.runs import describe_run
from machines.catalog.queries import find_latest, get_version
from machines.catalog.submissions import GUESS
from machines.engine import BadInput, SignalboxError
from machines.engine.limits import MAX_DEFINITION
from machines.engine.verification.findings import FOUND, PROVEN, UNDECIDED, VerificationFinding
from machines.people.actor import Actor
from machines.people.errors import TooFast

from . import checks

CPU = 6.0  # seconds of processor time to read the text, and again to find the places
MOST = 128 * 1024  # bytes of a text
SNAPSHOTS, SECONDS = 500, 3.0  # while somebody writes: Redis, which computes them, serves others too
MORE_SNAPSHOTS, MORE_SECONDS = 5_000, 20.0  # when somebody asks for it
RESULTS = {FOUND: "found", UNDECIDED: "not decided", PROVEN: "proven"}
COST, MORE_COST = 15, 60  # checks, of the pace that a person has


@require("view")
@require_POST
def verify(request: HttpRequest, machine: str) -> JsonResponse:
    return _answer(request, machine)


@require("publish")
@require_POST
def verify_new(request: HttpRequest) -> JsonResponse:
    return _answer(request, "")


def _answer(request: HttpRequest, machine: str) -> JsonResponse:
    """Answer a verification. ``?longer``: with a larger budget."""
    longer, format = "longer" in request.GET, checks.read_format(request.GET.get("format", GUESS))
    cost = MORE_COST if longer else COST
    text = checks.read_text(request, MAX_DEFINITION, what="verified", cost=cost)
    if isinstance(text, JsonResponse):
        return text
    try:
        return answer_json(_verify(request, machine, text, format=format, longer=longer))
    except SignalboxError as error:
        return checks.refuse_error(error)


def verify_text(request: HttpRequest, machine: str, text: str) -> dict[str, Any]:
    """Verify the text of a form. Raises TooFast, OffloadError, EngineUnavailable."""
    if wait := checks.spend(request, COST):
        raise TooFast(f"{checks.CHECKS}/{checks.PER}s", "account", wait)
    return _verify(request, machine, text)


def _verify(
    request: HttpRequest, machine: str, text: str, *, format: str = GUESS, longer: bool = False
) -> dict[str, Any]:
    """Return ``findings``, each with ``range`` (offsets of JavaScript), ``said`` (its verdict in words) and ``steps``
    (its run in words), perhaps ``run_text`` (that the simulator plays) and ``link`` (to it), and ``counts``, of each
    verdict. ``unread``: why there is nothing to verify.

    The text is read in a helper process like every other; the walk waits for Redis, which computes it. One verification
    of a person runs at a time.
    """
    if len(text.encode(errors="replace")) > MOST:
        return _refuse(f"At most {MOST:,} bytes are verified here: use manage.py machine verify.")
    who = Actor.of(request).id
    with offload.pool.turn(f"{who}:verify" if who else ""):
        read = offload.read_submission(offload.run("read", text, who="", cpu=CPU, format=format, whole=True))
        if read.compiled is None:
            return _refuse("Correct the errors under Findings first.")
        budget, seconds = (MORE_SNAPSHOTS, MORE_SECONDS) if longer else (SNAPSHOTS, SECONDS)
        found = redacted_engine(request).verify(read.compiled, budget=budget, seconds=seconds)
        paths = [one.path for one in found]
        ranges = offload.run("locate", text, who="", cpu=CPU, format=read.format, paths=paths).answer
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
