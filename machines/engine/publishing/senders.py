"""Who may send to a machine: what its definition names, and what was granted to those who did before it named any.

A definition says it under ``accepts``. Machines that are older than that key have no such list: as long as nobody has
looked (``granted`` is None) they take what anyone sends; then what was found in use is granted, until a version says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from machines.engine import arguments
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status, refuse
from machines.engine.definitions.recipients import Recipient, find_recipients
from machines.engine.errors import UnknownMachine

from .catalog import Catalog


@dataclass(frozen=True, slots=True)
class Acceptance:
    """``declared``: by the current version, ``*`` for any machine; None where it says nothing. ``granted``: None where
    nobody has looked yet who sends to it."""

    declared: tuple[str, ...] | None
    granted: tuple[str, ...] | None

    def takes(self, machine: str) -> bool:
        """Whether another machine may send to it; every machine may send to itself, to parents and to children."""
        if self.declared is not None:
            return machine in self.declared or "*" in self.declared
        return self.granted is None or machine in self.granted


@dataclass(frozen=True, slots=True)
class Senders:
    """``known``: receiver -> sender -> where its definition sends or invokes; ``unknown``: sender -> where it computes
    the machine, so that no definition tells which."""

    known: Mapping[str, Mapping[str, tuple[Recipient, ...]]]
    unknown: Mapping[str, tuple[Recipient, ...]]


class SenderMethods:
    """The part of the front door that is about who sends to whom."""

    _caller: Caller
    _catalog: Catalog

    def acceptance(self, machine: str) -> Acceptance:
        """Raises UnknownMachine."""
        first = self._catalog.partitions(machine)[0]
        current, granted = self._caller.command("HMGET", first.meta, "current", "granted")
        if current is None:
            raise UnknownMachine(machine)
        declared = self._catalog.types(machine, first.root, str(current)).accepts
        return Acceptance(declared, None if granted is None else tuple(str(granted).split()))

    def granted(self) -> dict[str, tuple[str, ...] | None]:
        """Machine -> the machines that are granted to send to it, None where nobody has looked yet. Two round trips."""
        names = sorted(self._catalog.machines())
        metas = [self._catalog.partitions(name)[0].meta for name in names]
        answers = self._caller.commands([(meta, ("HGET", meta, "granted")) for meta in metas])
        return {n: None if a is None else tuple(str(a).split()) for n, a in zip(names, answers, strict=True)}

    def grant(self, machine: str, senders: Iterable[str] | None, *, once: bool = False) -> tuple[str, ...]:
        """Let these machines go on sending to one whose definition does not say who may; what holds from now on.

        None: nobody has looked yet who does, and all may. ``once``: what was granted before stays. A version that
        declares ``accepts`` ends it. Raises UnknownMachine.
        """
        names = " ".join(dict.fromkeys(arguments.check_machine(one) for one in senders or ()))
        manner = "open" if senders is None else "once" if once else ""
        for partition in self._catalog.partitions(machine):
            reply = self._caller.call("sb_grant", partition.root, names, manner)
            if reply[0] == Status.NO_MACHINE:
                raise UnknownMachine(machine)
            if reply[0] != Status.OK:
                refuse("sb_grant", reply)
            names = str(reply[1])
        return tuple(names.split())

    def senders(self) -> Senders:
        """Who sends to whom, by the current definitions of all machines: two round trips for each."""
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
