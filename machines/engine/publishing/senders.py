"""Which machines may send to a machine: those its definition accepts, and those that were granted.

A definition lists them under ``accepts``. Machines older than that key have no such list: until their senders are
looked up (``granted`` is None) they accept every machine; then the senders in use are granted, until a version declares
``accepts``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from machines.engine import arguments
from machines.engine.base import EngineBase
from machines.engine.connection.replies import require_ok
from machines.engine.definitions.compiled import Recipient, find_recipients
from machines.engine.errors import UnknownMachine
from machines.engine.keys import Partition


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Whom a machine accepts. ``declared``: by its current version, ``*`` for any machine, None where the definition
    has no ``accepts``. ``granted``: None where the senders were not looked up yet."""

    declared: tuple[str, ...] | None
    granted: tuple[str, ...] | None

    def takes(self, machine: str) -> bool:
        """Tell whether another machine may send to it; every machine may send to itself, to parents and to children."""
        if self.declared is not None:
            return machine in self.declared or "*" in self.declared
        return self.granted is None or machine in self.granted


@dataclass(frozen=True, slots=True)
class Senders:
    """Who sends to whom. ``known``: receiver -> sender -> where its definition sends or invokes; ``unknown``: sender
    -> where it computes the machine's name, so that its definition does not tell the receiver."""

    known: Mapping[str, Mapping[str, tuple[Recipient, ...]]]
    unknown: Mapping[str, tuple[Recipient, ...]]


class SenderMethods(EngineBase):
    """Senders that machines accept: a part of ``Engine``."""

    def acceptance(self, machine: str) -> Acceptance:
        """Return whom a machine accepts. Raises UnknownMachine."""
        self._catalog.partitions(machine)
        return self._catalog.read_any(machine, lambda partition: self._read_acceptance(machine, partition))

    def _read_acceptance(self, machine: str, partition: Partition) -> Acceptance:
        current, granted = self._caller.command("HMGET", partition.meta, "current", "granted")
        if current is None:
            raise UnknownMachine(machine)
        declared = self._catalog.types(machine, partition.root, str(current)).accepts
        return Acceptance(declared, None if granted is None else tuple(str(granted).split()))

    def list_granted(self) -> dict[str, tuple[str, ...] | None]:
        """Return machine -> the machines granted to send to it, None where they were not looked up yet. Two round
        trips."""
        names = sorted(self._catalog.machines())
        metas = [self._catalog.partitions(name)[0].meta for name in names]
        answers = self._caller.commands([(meta, ("HGET", meta, "granted")) for meta in metas])
        return {n: None if a is None else tuple(str(a).split()) for n, a in zip(names, answers, strict=True)}

    def grant(self, machine: str, senders: Iterable[str] | None, *, once: bool = False) -> tuple[str, ...]:
        """Grant machines to send to one whose definition does not declare ``accepts``; return what is granted from now
        on.

        None: the senders are not known yet, and all may send. ``once``: an earlier grant stays. A version that declares
        ``accepts`` ends the grant. Raises UnknownMachine.
        """
        names = " ".join(dict.fromkeys(arguments.check_machine(one) for one in senders or ()))
        manner = "open" if senders is None else "once" if once else ""
        for partition in self._catalog.partitions(machine):
            reply = require_ok("sb_grant", self._caller.call("sb_grant", partition.root, names, manner), machine)
            names = str(reply[1])
        return tuple(names.split())

    def senders(self) -> Senders:
        """Find who sends to whom, by the current definitions of all machines: two round trips for each."""
        known: dict[str, dict[str, list[Recipient]]] = defaultdict(lambda: defaultdict(list))
        unknown: dict[str, tuple[Recipient, ...]] = {}
        replies: dict[str, list[Recipient]] = defaultdict(list)
        for name in self._catalog.machines():
            found = find_recipients(self._catalog.definition(name, None))
            for one in found:
                if one.machine:
                    known[one.machine][name].append(one)
                elif one.kind == "reply":
                    replies[name].append(one)
            computed = tuple(one for one in found if one.kind == "computed")
            unknown |= {name: computed} if computed else {}
        for name, answers in replies.items():
            for asker in list(known.get(name, ())):
                known[asker][name] += answers
        return Senders({to: {by: tuple(at) for by, at in found.items()} for to, found in known.items()}, unknown)
