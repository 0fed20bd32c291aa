"""The plan of a migration: where the instances of other versions stand in the new version of their machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from machines.engine.definitions import Finding
from machines.engine.definitions.compiled import rebuild
from machines.engine.errors import PlanError

from .document import PlanOptions, check_document, compile_value, make_plan_finding

FORMAT = 1
"""The format of the program of a plan, and of its JSON."""
Suggestion = tuple[str, str, float, str]  # old state, new state, score from 0 to 1, why


@dataclass(frozen=True, kw_only=True)
class SourcePlan:
    """What a plan does with the instances of one version.

    ``version`` and ``digest``: the version that they have; ``to`` and ``to_digest``: the one that they get. ``states``:
    leaf -> states of the new version; ``unmapped_states``: leaves without a place; ``reasons``: leaf -> why it maps as
    it does; ``suggestions``: (leaf, state, score from 0 to 1, why), never applied by themselves. ``data``: new field ->
    expression over the old data; ``fields``: new field -> old field that it is copied from; ``added`` gets its initial
    value, ``removed`` has no place. ``timers``: event of a timer -> (event, state) of the same timer; ``invokes``:
    id -> id; ``histories``: history state -> history state. ``back``: the way back.
    """

    version: int
    digest: str
    to: int
    to_digest: str
    states: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unmapped_states: tuple[str, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)
    suggestions: tuple[Suggestion, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    timers: dict[str, tuple[str, str]] = field(default_factory=dict)
    invokes: dict[str, str] = field(default_factory=dict)
    histories: dict[str, str] = field(default_factory=dict)
    back: SourcePlan | None = None

    @property
    def key(self) -> str:
        """Return ``<version>:<digest>`` of the instances that it moves."""
        return f"{self.version}:{self.digest}"

    @property
    def to_key(self) -> str:
        """Return ``<version>:<digest>`` that they get."""
        return f"{self.to}:{self.to_digest}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        found = {one.name: _as_json(getattr(self, one.name)) for one in fields(self) if one.name != "back"}
        return found | ({"back": self.back.as_dict()} if self.back else {})

    def program(self) -> dict[str, Any]:
        """Return its part of the program."""
        return {
            "states": {name: list(targets) for name, targets in self.states.items()},
            "histories": dict(self.histories),
            "timers": {event: list(pair) for event, pair in self.timers.items()},
            "invokes": dict(self.invokes),
            "data": [[name, compile_value(value).tree] for name, value in self.data.items()],
            "fields": dict(self.fields),
        }


@dataclass(frozen=True)
class MigrationPlan:
    """How instances of other versions get the version ``to`` of their machine. Made by ``Engine.plan``.

    ``unmapped``: what happens to an instance in a state without a place: "refuse", "keep" (it stays in its version) or
    "suspend". ``sources``: one part for each version. ``options``: the policies ``timers``, ``removed``, ``suspended``,
    ``actions`` and ``keep_undo``. ``findings``: what is worth a look before it runs. ``inverse_of``: of a way back, the
    id of the plan. A way back to several versions has the highest as ``to``; each source names its own.
    """

    machine: str
    to: int
    unmapped: str
    sources: tuple[SourcePlan, ...]
    findings: tuple[Finding, ...] = ()
    options: dict[str, Any] = field(default_factory=lambda: PlanOptions().as_dict())
    inverse_of: str = ""

    @property
    def digest(self) -> str:
        """Return the digest of the version that instances get."""
        return next((source.to_digest for source in self.sources if source.to == self.to), "")

    @property
    def id(self) -> str:
        """Return 12 hexadecimal digits that stand for what the plan does, findings and suggestions left aside."""
        content = self.as_dict(whole=False)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]

    def source(self, version: int) -> SourcePlan | None:
        """Return the part for one version."""
        return next((one for one in self.sources if one.version == version), None)

    def as_dict(self, *, whole: bool = True) -> dict[str, Any]:
        """Return it as plain JSON-able data, which can be stored and reviewed; ``from_dict`` restores it. Not
        ``whole``: without what explains it."""
        found: dict[str, Any] = {
            "format": FORMAT,
            "machine": self.machine,
            "to": self.to,
            "unmapped": self.unmapped,
            "options": dict(self.options),
            "sources": [source.as_dict() for source in self.sources],
        }
        if whole:
            return found | {
                "id": self.id,
                "inverse_of": self.inverse_of,
                "findings": [finding.as_dict() for finding in self.findings],
            }
        for source in found["sources"]:
            for part in filter(None, (source, source.get("back"))):
                for key in ("reasons", "suggestions", "unmapped_states", "added", "removed"):
                    del part[key]
        return found

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> MigrationPlan:
        """Restore what ``as_dict`` returned. Nothing of it is trusted: raises PlanError (SB600) with a finding for each
        fault. ``Engine.check_plan`` compares it with the published versions."""
        findings = check_document(cls, found)
        if findings:
            raise PlanError("this is not a plan", findings)
        held = {one.name: found[one.name] for one in fields(cls) if one.name in found}
        plan = rebuild(cls, held | {"options": PlanOptions.from_dict(found["options"]).as_dict()})
        if found.get("id", plan.id) != plan.id:
            message = (
                f"the id {found['id']} is not that of the content, {plan.id}: the plan was changed after it was made"
            )
            raise PlanError("this is not a plan", [make_plan_finding("SB600", "id", message, "make the plan anew")])
        return plan

    def program(self, to: int | None = None) -> dict[str, Any]:
        """Return what the functions library takes. ``to``: of a way back to several versions, the one that is meant.
        Raises PlanError where that is not said."""
        targets = {source.to: source.to_key for source in self.sources}
        if to is None and len(targets) > 1:
            raise PlanError(f"the plan leads to versions {join_numbers(targets)}: name one, or take programs()")
        wanted = self.to if to is None else to
        if wanted not in targets:
            raise PlanError(f"the plan does not lead to version {wanted}")
        options = PlanOptions.from_dict(self.options)
        program = {
            "format": FORMAT,
            "id": self.id,
            "to": targets[wanted],
            "unmapped": self.unmapped,
            "timers": options.timers,
            "removed": options.removed,
            "suspended": options.suspended,
            "actions": list(options.actions),
            "undo": options.undo,
            "from": {source.key: source.program() for source in self.sources if source.to == wanted},
        }
        return program | ({"inverse_of": self.inverse_of} if self.inverse_of else {})

    def programs(self) -> list[dict[str, Any]]:
        """Return a program for each version that the plan leads to; but for a way back to several versions that is
        one."""
        return [self.program(to) for to in sorted({source.to for source in self.sources})]

    def inverse(self) -> MigrationPlan:
        """Return the way back: each instance gets the version that it had, in the state that its own maps to.

        Of states that share a place, the one with the same name, else the first, is the way back. The inverse of the
        inverse maps as the plan does.
        """
        turned = []
        for source in self.sources:
            if source.back is None:
                raise PlanError(f"the plan has no way back to version {source.version}")
            turned.append(replace(source.back, back=replace(source, back=None)))
        inverse_of = "" if self.inverse_of else self.id
        to = max((source.to for source in turned), default=self.to)
        return replace(self, to=to, sources=tuple(turned), findings=(), inverse_of=inverse_of)

    def __str__(self) -> str:
        versions = join_numbers({source.version: "" for source in self.sources})
        return f"plan {self.id}: {self.machine} v{versions} to v{self.to}"


def _as_json(value: Any) -> Any:
    """Return a value with lists in the place of tuples."""
    if isinstance(value, dict):
        return {name: _as_json(one) for name, one in value.items()}
    return [_as_json(one) for one in value] if isinstance(value, list | tuple) else value


def join_numbers(numbers: Mapping[int, Any]) -> str:
    return ", ".join(str(number) for number in sorted(numbers))
