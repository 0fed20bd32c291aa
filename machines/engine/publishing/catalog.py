"""The catalog of published machines in Redis: names, versions, programs, partitions and field types."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from machines.engine import arguments
from machines.engine.connection import waiting
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import FieldTypes, Status, build_version_refusal, require_ok
from machines.engine.definitions import CompiledDefinition, StateOutline, compile_definition, compute_digest, outline
from machines.engine.definitions.findings import Report
from machines.engine.errors import (
    BadInput,
    DefinitionError,
    EngineFault,
    EngineUnavailable,
    UnknownMachine,
    VersionRefused,
)
from machines.engine.keys import Keys, Partition, choose_partition
from machines.engine.records import PublishedMachine

from .machine_meta import (
    Growth,
    GrowthReader,
    PolicyTexts,
    RolloutStart,
    SensitiveFields,
    copy_policy,
    list_field_changes,
    make_policy_read,
    read_encrypted_fields,
    read_policy,
    read_sensitive_fields,
)

MAX_VERSION = 10**9  # far below where Lua would begin to write numbers with an exponent
RECENT = 300.0  # seconds after which versions are read anew: an earlier release may publish without a new revision
SECRET_BYTES = 16  # the seed of random_token(): as strong as the tokens it makes


Answer = TypeVar("Answer")


class Catalog:
    """Machines published below one prefix. Caches what never changes, and drops it when the server no longer knows a
    machine.

    The list of machines lies in one slot of a cluster: while that is down, the last copy stands for it. Versions lie in
    each partition of a machine: one that does not answer is replaced by the next.
    """

    def __init__(self, caller: Caller, keys: Keys, partitions: int) -> None:
        self._caller = caller
        self._keys = keys
        self._partitions_of_new = partitions
        self._partitions: dict[str, int] = {}
        self._lists: dict[str, tuple[Partition, ...]] = {}
        self._directory: dict[str, int] = {}
        self._last_policies: dict[str, PolicyTexts] = {}
        self._types: dict[tuple[str, str], FieldTypes] = {}
        self._policies: tuple[str, float, dict[str, PolicyTexts]] | None = None  # revision, moment, policies
        self._outlines: dict[tuple[str, int], Sequence[StateOutline]] = {}
        self._growth = GrowthReader(caller, keys, lambda machine: self._partitions.pop(machine, None))

    # Partitions and states

    def partitions(self, machine: str) -> list[Partition]:
        """List the partitions of a machine; of one that grows, those before and after. Raises UnknownMachine."""
        growth = self._growth.find(machine, refresh=True)
        count = max(self._count(machine), growth.after if growth else 0)
        held = self._lists.get(machine, ())
        if len(held) != count:
            held = self._lists[machine] = tuple(self._keys.partition(machine, n) for n in range(count))
        return list(held)

    def find_partitions(self, machine: str) -> list[Partition]:
        """List the partitions of a machine; none where it was deleted since the caller read its name."""
        try:
            return self.partitions(machine)
        except UnknownMachine:
            return []

    def partition(self, machine: str, id: str) -> Partition:
        """Return the partition of an instance. While its machine grows that is the old one, which knows the instances
        that have moved. Raises UnknownMachine."""
        return self._keys.partition(machine, choose_partition(id, self._count(machine)))

    def split(self, machine: str, ids: Iterable[str]) -> dict[str, list[str]]:
        """Return root -> the ids of the instances in that partition."""
        roots: dict[str, list[str]] = {}
        for id in ids:
            roots.setdefault(self.partition(machine, id).root, []).append(id)
        return roots

    def find_growth(self, machine: str) -> Growth | None:
        """Return how the machine's number of partitions has grown, None where it has not."""
        return self._growth.find(machine, refresh=True)

    def refresh(self) -> None:
        """Read now which machines grow."""
        self._growth.read()

    def find_receiver(self, machine: str, id: str, sent: int) -> Partition:
        """Return the partition that takes a message of ``sent`` ms for an instance: one from before the end of a growth
        goes to the old partition, which knows whether it has been delivered. Raises UnknownMachine."""
        growth = self.find_growth(machine)
        if growth is not None and (growth.under_way or sent < growth.over):
            return self._keys.partition(machine, choose_partition(id, growth.before))
        return self.partition(machine, id)

    def _count(self, machine: str) -> int:
        count = self._partitions.get(machine) if isinstance(machine, str) else None
        if count is None:
            arguments.check_machine(machine)
            try:
                held = self._caller.command("HGET", self._keys.machines, machine)
            except EngineUnavailable:
                if not self._caller.spread or machine not in self._directory:
                    raise
                return self._directory[machine]
            if held is None:
                raise UnknownMachine(machine, known=sorted(self.directory()))
            count = self._partitions[machine] = int(held)
        return count

    def directory(self) -> dict[str, int]:
        """Return machine -> number of its partitions; the last copy while the list cannot be read on a cluster."""
        try:
            held = self._caller.command("HGETALL", self._keys.machines)
        except EngineUnavailable:
            if not self._caller.spread or not self._directory:
                raise
            return self._directory
        self._directory = {str(name): int(count) for name, count in held.items()}
        return self._directory

    def count_partitions(self) -> dict[str, int]:
        """Return machine -> number of its partitions, of one that grows those after it included."""
        counts = self.directory()
        self._growth.read()
        growths = {name: self._growth.find(name) for name in counts}
        return {name: max(count, growth.after if (growth := growths[name]) else 0) for name, count in counts.items()}

    def read_any(self, machine: str, ask: Callable[[Partition], Answer]) -> Answer:
        """Return what ``ask`` returns for the first partition of a machine that answers."""
        try:
            return ask(self._keys.partition(machine))
        except EngineUnavailable:
            others = self.partitions(machine)[1:] if self._caller.spread else []
            for partition in others:
                with contextlib.suppress(EngineUnavailable):
                    return ask(partition)
            raise

    def forget(self, machine: str) -> None:
        """Drop what is cached about a machine, because the server no longer knows it."""
        self._partitions.pop(machine, None)
        self._types = {slot: types for slot, types in self._types.items() if slot[0] != machine}
        self._outlines = {slot: states for slot, states in self._outlines.items() if slot[0] != machine}

    def types(self, machine: str, root: str, definition: str) -> FieldTypes:
        """Return the field types of ``<version>:<digest>``; one round trip the first time."""
        types = self._types.get((machine, definition))
        if types is None:
            version = int(definition.partition(":")[0])
            program = self._caller.command("HGET", Partition(root).definition(version), "program")
            if program is None:
                raise UnknownMachine(machine, version=version)
            types = self._types[machine, definition] = FieldTypes(json.loads(program), version)
        return types

    def states(self, machine: str) -> list[str]:
        """List the state names of every published version."""
        arguments.check_machine(machine)
        return sorted(self.read_any(machine, lambda partition: self._caller.command("SMEMBERS", partition.states)))

    def leaves(self, machine: str, state: str) -> list[str]:
        """List the leaf states below a state, in any published version; a leaf stands for itself."""
        found = dict.fromkeys(leaf for types in self._list_all_types(machine) for leaf in types.leaves(state))
        return list(found) or [state]

    def final_states(self, machine: str) -> list[str]:
        """List the final states, in any published version, in which an instance can have ended."""
        return list(dict.fromkeys(state for types in self._list_all_types(machine) for state in types.ends()))

    def fields(self, machine: str) -> frozenset[str]:
        """Return the names of the data fields of every published version."""
        return frozenset().union(*(types.names for types in self._list_all_types(machine)))

    def sensitive(self, machine: str) -> SensitiveFields:
        """Return the fields that any published version marks as sensitive. One round trip. Raises UnknownMachine."""
        self._count(machine)
        return read_sensitive_fields(
            self.read_any(machine, lambda partition: self._caller.command("HGET", partition.meta, "sensitive"))
        )

    def check_state(self, machine: str, state: str) -> None:
        """Raise BadInput for a state that no version has."""
        states = self.states(machine)
        if state not in states and self.leaves(machine, state) == [state]:
            raise BadInput(f"machine {machine!r} has no state {state!r}; it has: {', '.join(states)}", code="SB412")

    def check_fields(self, machine: str, fields: Sequence[str]) -> None:
        """Raise BadInput for a data field that no version declares."""
        declared = self.fields(machine) if fields else frozenset()
        for name in fields:
            if name not in declared:
                known = ", ".join(sorted(declared)) or "none"
                raise BadInput(f"machine {machine!r} declares no data field {name!r}; it has: {known}", code="SB413")

    def find_tagged(self, machine: str, tag: str) -> list[str]:
        """List the leaf states at or below those that carry a tag, in any published version. Raises BadInput for
        none."""
        found = self.list_tagged(machine, lambda one: one == tag)
        if not found:
            raise BadInput(f"machine {machine!r} has no state with the tag {tag!r}", code="SB412")
        return found

    def list_tagged(self, machine: str, matches: Callable[[str], bool]) -> list[str]:
        """List the leaf states at or below those with a matching tag, in any published version."""
        found: dict[str, None] = {}
        for types in self._list_all_types(machine):
            slot = machine, types.version
            if slot not in self._outlines:
                self._outlines[slot] = outline(self.definition(machine, types.version)).states
            tagged = [state for state in self._outlines[slot] if any(map(matches, state.tags))]
            found |= dict.fromkeys(leaf for state in tagged for leaf in types.leaves(state.name))
        return list(found)

    def _list_all_types(self, machine: str) -> list[FieldTypes]:
        def read(partition: Partition) -> list[FieldTypes]:
            named = self._caller.command("HGETALL", partition.meta)
            definitions = [value for field, value in named.items() if field.startswith("def:")]
            return [self.types(machine, partition.root, definition) for definition in definitions]

        return self.read_any(machine, read)

    # Publishing

    def publish(
        self,
        definition: dict[str, Any] | CompiledDefinition,
        version: int | None,
        alone: bool,
        *,
        start: RolloutStart | None = None,
        store: bool = False,
        codec: bool = True,
    ) -> PublishedMachine:
        """Compile a definition and store it on every partition, after the machines embedded in it. It becomes the
        current version, unless ``start`` rolls it out or ``store`` only stores it. ``codec``: whether
        there is one for encrypted fields. Raises DefinitionError."""
        compiled = waiting.compute(compile_definition, definition)
        restored = version is not None and compiled.runs
        if compiled.has_errors and not restored:
            raise DefinitionError(list(compiled.findings))
        along = () if alone else tuple(compiled.along.values())
        newest = {}
        for one in (compiled, *along):
            if not codec:
                self._require_no_encryption(one)
            newest[one.program["machine"]] = self._require_same_encryption(one)
        for inner in along:  # machines that others invoke come first
            self._publish(inner, None, [], ("",), newest[inner.program["machine"]])
        mode = start.as_words() if start is not None else ("store" if store else "",)
        return self._publish(compiled, version, list(compiled.findings), mode, newest[compiled.program["machine"]])

    @staticmethod
    def _require_no_encryption(compiled: CompiledDefinition) -> None:
        """Raise DefinitionError for encrypted fields: there is no codec that could write and read them."""
        for field in compiled.program.get("sensitive", {}).get("encrypted", {}):
            report = Report()
            report.add("SB128", ("context", field), f"{field!r} is encrypted, and no codec is set", "set CODEC")
            raise DefinitionError(report.findings())

    def _require_same_encryption(self, compiled: CompiledDefinition) -> str:
        """Raise DefinitionError for a field that is encrypted here or in a published version and declared otherwise in
        the other: what is encrypted holds for the instances of all versions. Return the newest of these."""
        first = self._keys.partition(compiled.program["machine"])
        held = self._caller.command("HGETALL", first.meta)
        marks = json.loads(held.get("sensitive") or "{}"), compiled.program.get("sensitive", {})
        newest = held.get("newest") or "0"
        if not any(map(read_encrypted_fields, marks)):
            return newest
        report = Report()
        for number in sorted(int(name[4:]) for name in held if name.startswith("def:")):
            program = json.loads(self._caller.command("HGET", first.definition(number), "program"))
            for field in list_field_changes(compiled.program, program):
                what = f"{field!r} is declared with another type or encryption than in version {number}"
                report.add("SB128", ("context", field), what, "give the field another name")
        if report.findings():
            raise DefinitionError(report.findings())
        return newest

    def _publish(
        self, compiled: CompiledDefinition, version: int | None, findings: list[Any], mode: Sequence[Any], newest: str
    ) -> PublishedMachine:
        program = compiled.program
        # The source is part of it: a change of descriptions alone is a new version, too.
        name, fingerprint = program["machine"], compute_digest({"program": program, "source": compiled.source})
        number = "" if version is None else str(arguments.check_count("version", version, MAX_VERSION))
        source = json.dumps(compiled.source, ensure_ascii=False, separators=(",", ":"))
        text = json.dumps(program, ensure_ascii=False, separators=(",", ":"))
        held = self._caller.command("HGET", self._keys.machines, name)
        growth = self.find_growth(name)
        count = max(int(held or compiled.partitions or self._partitions_of_new), growth.after if growth else 0)
        findings = [*findings, *compiled.compare_partitions(count)]
        created = False
        for n in range(count):
            # The first partition decides what the version is; the others store it and copy that.
            row = (fingerprint, text, source)
            partition = self._keys.partition(name, n)
            stored = None
            while stored is None:
                words = (*mode, *("",) * (5 - len(mode)), newest) if n == 0 else ("store",)
                stored = self._store(name, partition, count, number, row, words)
                if stored is None:  # another process has published since the comparison
                    newest = self._require_same_encryption(compiled)
            number, new = stored
            created = created or new
        self._copy_policy(name, count)
        self._caller.command("HSETNX", self._keys.machines, name, count)
        if created or held is None or version is not None:
            self._caller.command("INCR", self._keys.revision)
        if growth is None:
            self._partitions[name] = count
        return PublishedMachine(name, int(number), fingerprint, created, findings)

    def _store(
        self, name: str, partition: Partition, count: int, number: str, row: Sequence[str], mode: Sequence[Any]
    ) -> tuple[str, bool] | None:
        """Store a version on one partition; return its number, and whether it is new; None where the newest version is
        not the one named. ``row``: digest, program, source; ``mode``: the last arguments of ``sb_publish``."""
        secret = os.urandom(SECRET_BYTES).hex()
        reply = self._caller.call("sb_publish", partition.root, *row, secret, count, number, *mode)
        if reply[0] == Status.VERSIONS:
            raise build_version_refusal(name, reply)
        if reply[0] == Status.STALE:
            return None
        if reply[0] == Status.CONFLICT:
            raise BadInput(f"version {reply[1]} of {name!r} is published with other content: versions never change")
        if reply[0] != Status.OK:
            raise EngineFault(f"publishing {name!r}: {' '.join(map(str, reply))}")
        return str(reply[1]), str(reply[2]) == "1"

    def _copy_policy(self, name: str, count: int) -> int:
        """Bring the first partition's current version and roll-out to the others; return how many were changed. Of
        publishers that race or are killed, each may leave others behind."""
        partitions = [self._keys.partition(name, n) for n in range(count)]
        return copy_policy(self._caller, partitions, lambda behind: self._copy_versions(name, count, [behind]))

    def copy_versions(self, machine: str) -> None:
        """Bring all versions of the first partition to the others. A version is published once the first partition has
        it, and reaches the others one after the other: so a call may come before it. Raises UnknownMachine."""
        self.refresh()
        _, *others = partitions = self.partitions(machine)
        self._copy_versions(machine, len(partitions), others)

    def _copy_versions(self, machine: str, count: int, partitions: Sequence[Partition]) -> None:
        first = self._keys.partition(machine)
        asked = [(each.meta, ("HKEYS", each.meta)) for each in (first, *partitions)]
        named, *held = ({str(name) for name in names} for names in self._caller.commands(asked))
        numbers = sorted(int(name[4:]) for name in named if name.startswith("def:"))
        for partition, names in zip(partitions, held, strict=True):
            for number in (number for number in numbers if f"def:{number}" not in names):
                row = self._caller.command("HMGET", first.definition(number), "digest", "program", "source")
                self._store(machine, partition, count, str(number), row, ("store",))

    def align_partitions(self, machine: str) -> int:
        """Bring the first partition's current version, roll-out, pin and withdrawn versions to the others; return how
        many partitions were behind. Raises UnknownMachine."""
        return self._copy_policy(machine, len(self.partitions(machine)))

    def policy(self, machine: str) -> PolicyTexts:
        """Read which version new instances get. One command. Raises UnknownMachine."""
        self._count(machine)
        found = self.read_any(machine, lambda partition: read_policy(self._caller, partition))
        if not found.current:
            self.forget(machine)
            raise UnknownMachine(machine)
        return found

    def policies(self, *, recent: bool = False) -> dict[str, PolicyTexts]:
        """Read the same of all machines. One round trip after the list of names; with ``recent`` only when the revision
        changed, or after five minutes. On a cluster the last copy while the revision cannot be read."""
        held, now = self._policies, time.monotonic()
        try:
            revision = self.revision()
        except EngineUnavailable:
            if not self._caller.spread:
                raise
            return dict(held[2]) if held else self._read_policies()
        if held is None or not recent or held[0] != revision or now - held[1] >= RECENT:
            held = self._policies = revision, now, self._read_policies()
        return dict(held[2])

    def _read_policies(self) -> dict[str, PolicyTexts]:
        metas = {name: self._keys.partition(name).meta for name in sorted(self.directory())}
        answers = self._caller.commands_available([make_policy_read(meta) for meta in metas.values()])
        found = {
            name: self._find_policy(name) if isinstance(row, EngineUnavailable) else PolicyTexts.read(row)
            for name, row in zip(metas, answers, strict=True)
        }
        self._last_policies = {name: policy for name, policy in found.items() if policy is not None and policy.current}
        return dict(self._last_policies)

    def _find_policy(self, machine: str) -> PolicyTexts | None:
        """Read the policy of a machine whose first partition does not answer: of another, or the last that was read."""
        try:
            return self.read_any(machine, lambda partition: read_policy(self._caller, partition))
        except EngineUnavailable:
            return self._last_policies.get(machine)

    def unsettled_machines(self, among: Collection[str] | None = None) -> list[str]:
        """List the machines of which a partition has another policy than the first. Two round trips; a partition that
        does not answer is left out."""
        roots = {
            name: [self._keys.partition(name, n) for n in range(count)]
            for name, count in sorted(self.count_partitions().items())
            if among is None or name in among
        }
        every = [partition for each in roots.values() for partition in each]
        answers = self._caller.commands_available([make_policy_read(p.meta) for p in every])
        policies = dict(zip(every, answers, strict=True))

        def is_settled(first: Partition, partition: Partition) -> bool:
            expected, own = policies[first], policies[partition]
            away = isinstance(expected, EngineUnavailable) or isinstance(own, EngineUnavailable)
            return away or own[1] is None or own == expected

        return [name for name, each in roots.items() if not all(is_settled(each[0], p) for p in each)]

    def change_policy(self, machine: str, words: Sequence[Any]) -> None:
        """Call ``sb_rollout`` on the first partition and bring its outcome to the others. Raises VersionRefused,
        UnknownMachine."""
        self._count(machine)
        reply = self._caller.call("sb_rollout", self._keys.partition(machine).root, *words)
        if reply[0] == Status.VERSIONS:
            raise build_version_refusal(machine, reply)
        if reply[0] == Status.CONFLICT:
            raise VersionRefused(machine, "the versions were changed meanwhile: read them again", code="SB630")
        require_ok("sb_rollout", reply, machine)
        self.align_partitions(machine)
        self._caller.command("INCR", self._keys.revision)

    # Versions

    def machines(self) -> dict[str, int]:
        """Return machine name -> number of its current version."""
        return {name: int(current.partition(":")[0]) for name, current in self.current_versions().items()}

    def current_versions(self) -> dict[str, str]:
        """Return machine name -> ``<version>:<digest>``. One round trip after the list of names."""
        return {name: policy.current for name, policy in self._read_policies().items()}

    def recent_versions(self) -> dict[str, str]:
        """Return the same for callers that ask again and again: read anew when the revision changed, or after five
        minutes."""
        return {name: policy.current for name, policy in self.policies(recent=True).items()}

    def revision(self) -> str:
        """Return a text that changes when a machine is published or deleted by a process of this release."""
        keys = self._keys
        answers = self._caller.commands(
            [(keys.revision, ("GET", keys.revision)), (keys.machines, ("HLEN", keys.machines))]
        )
        return f"{answers[0] or 0}:{answers[1]}"

    def versions(self, machine: str) -> list[int]:
        self._count(machine)
        held = self.read_any(machine, lambda partition: self._caller.command("HKEYS", partition.meta))
        return sorted(int(field[4:]) for field in held if field.startswith("def:"))

    def version_keys(self, machine: str) -> dict[int, str]:
        """Return number of each published version -> its digest. Raises UnknownMachine."""
        self._count(machine)
        held = self.read_any(machine, lambda partition: self._caller.command("HGETALL", partition.meta))
        found = [value.partition(":") for field, value in held.items() if field.startswith("def:")]
        return {int(number): digest for number, _, digest in sorted(found, key=lambda parts: int(parts[0]))}

    def definition(self, machine: str, version: int | None) -> dict[str, Any]:
        self._count(machine)
        return self.read_any(machine, lambda partition: self._read_definition(machine, partition, version))

    def _read_definition(self, machine: str, partition: Partition, version: int | None) -> dict[str, Any]:
        if version is None:
            current = self._caller.command("HGET", partition.meta, "current")
            if current is None:
                self.forget(machine)
                raise UnknownMachine(machine)
            version = int(current.partition(":")[0])
        arguments.encode_whole("version", version, least=1)
        source = self._caller.command("HGET", partition.definition(version), "source")
        if source is None:
            raise UnknownMachine(machine, version=version)
        found: dict[str, Any] = json.loads(source)
        return found
