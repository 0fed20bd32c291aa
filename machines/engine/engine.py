"""The engine's public class: every call that changes an instance is one atomic function call inside Redis."""

from __future__ import annotations

import copy
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from . import arguments, limits
from .base import Replication, return_errors
from .connection import client, replies
from .connection.calls import Caller, translate
from .connection.client import FAILURES, Client
from .connection.library_loader import Visit
from .connection.partition_check import PartitionFault, check_partitions
from .connection.retries import Retries, get_root, retry_methods
from .connection.routing import name_nodes
from .definitions import CompiledDefinition
from .errors import EngineFault, EngineUnavailable, SignalboxError, UnknownMachine
from .ids import Claims, Generator, make_instance_id
from .instances.encryption import Codec, FieldEncryption
from .instances.inspection import InspectionMethods
from .instances.repairs import RepairMethods
from .instances.retirement import Retirement
from .jobs.clock_jump import ClockBounds, ClockJumps
from .jobs.group_admissions import GroupAdmissions
from .jobs.queue_operations import JobMethods
from .jobs.records import WorkerInfo
from .jobs.wakeups import ReadyQueues, Wakeups
from .jobs.workers import WorkerRegistry
from .keys import PREFIX, Keys, Partition
from .messages.delivery import Delivery, DeliveryReport
from .messages.emitted import EmittedLogs
from .permits import Permit
from .publishing.catalog import Catalog
from .publishing.machine_meta import SensitiveFields
from .records import Fire, Instance, PartialList, PublishedMachine
from .search.search import SearchMethods
from .search.survey import Survey, SurveyReader
from .simulation import SimulationMethods
from .verification.report import VerificationFinding
from .versions.migration import VersionMethods
from .versions.rollout.rollouts import GuardSettings as GuardSettings

log = logging.getLogger(__name__)

Data = Mapping[str, Any]
MOST_SNAPSHOTS = 1_000_000


@retry_methods
class Engine(JobMethods, RepairMethods, SearchMethods, InspectionMethods, VersionMethods, SimulationMethods):
    """Runs the state machines of one Redis. Safe to share between threads; make one per process.

    Every call that changes an instance is one function call in Redis: it happens wholly or not at all, and two callers
    never interleave. Times given as ``now`` are ms since the epoch and replace the server's clock. All calls raise
    ``EngineUnavailable`` when Redis cannot be used; before that each repeats by itself what is safe to repeat, for
    ``retry_for`` seconds (``machines.engine.connection.retries``).
    """

    def __init__(
        self,
        redis: Client,
        *,
        prefix: str = PREFIX,
        partitions: int = 1,
        replicas: int = 0,
        replica_timeout: int = 1000,
        retry_for: float | None = None,
        codec: Codec | None = None,
    ) -> None:
        self.client = redis
        self._retries = Retries(retry_for)
        self.keys = Keys(prefix)
        self._caller = Caller(redis, prefix)
        self._catalog = Catalog(self._caller, self.keys, partitions)
        self._encryption = FieldEncryption(codec, self._catalog.sensitive)
        self._replication = Replication(self._caller, replicas, replica_timeout)
        self._delivery = Delivery(self._caller, self._catalog)
        self._admissions = GroupAdmissions(self._caller)
        self._worker_registry = WorkerRegistry(self._caller, self.keys)
        self._ready_queues = ReadyQueues(redis, self.keys, self._catalog)
        self.wakeups = Wakeups(self._caller, self.keys, self._catalog, self._worker_registry)
        self._surveys = SurveyReader(self._caller, self._catalog, self.wakeups.memory)
        self.clock_jumps = ClockJumps(self._caller, self.keys)
        self.ids = Generator(Claims(self._caller, prefix=self.keys.prefix))

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        prefix: str = PREFIX,
        partitions: int = 1,
        replicas: int = 0,
        replica_timeout: int = 1000,
        retry_for: float | None = None,
        codec: Codec | None = None,
        **options: Any,
    ) -> Engine:
        """Connect to ``redis://``, ``unix://``, ``redis+cluster://`` (any number of seeds) or ``redis+sentinel://``;
        with TLS ``rediss…``. ``partitions`` applies to machines that are published for the first time: 1 on a single
        server, several times the number of primaries on a cluster. ``replicas``: how many replicas each change of an
        instance waits for, ``replica_timeout`` ms at most; its outcome says how many had it. ``retry_for``: the seconds
        for which a call repeats by itself what is safe to repeat while Redis does not answer; 5 by default, 0 for
        none. ``codec``: encrypts the fields that definitions mark as encrypted."""
        return cls(
            client.connect(url, **options),
            prefix=prefix,
            partitions=partitions,
            replicas=replicas,
            replica_timeout=replica_timeout,
            retry_for=retry_for,
            codec=codec,
        )

    def at_once(self) -> Engine:
        """Return this engine without repeats of its own, on the same connections: for callers with a loop of their own,
        as workers."""
        engine = copy.copy(self)
        engine._retries = Retries(0)
        return engine

    def ping(self) -> None:
        """Raise EngineUnavailable unless Redis answers, of a cluster at least one primary."""
        self._caller.everywhere("PING")

    def read_clock(self) -> int:
        """Return the time of Redis in ms, of a cluster that of any node. Raises EngineUnavailable."""
        return self._caller.read_clocks()[0]

    def name_nodes(self, keys: Sequence[str]) -> list[str]:
        """List the nodes of a cluster that hold these keys, as ``host:port``; none for a single server."""
        return name_nodes(self.client, keys)

    def load_library(self, *, again: bool = True) -> list[Visit]:
        """Load the functions library now, in place of the one the server has, unless that is a newer release's; return
        what became of each server. ``again``: also over this very one. Normally the first call does this. Raises
        LibraryNotLoaded for an account that may not load, EngineFault for data of a newer release (SB512)."""
        return self._caller.load(again=again)

    def load_missing_library(self) -> None:
        """Load the functions library because the server lacks a function. Raises EngineFault where the library of
        another release stays."""
        self._caller.load_missing()

    def require_library(self) -> None:
        """Make sure that the server holds a functions library that this release works with, and data that it can read;
        load this release's library where there is none or an older one.

        A library of a newer release stays: calls work with it. Raises EngineUnavailable or EngineFault, whose message
        names the command to run where this account may not load.
        """
        self._caller.require()

    def check_partitions(self) -> list[PartitionFault]:
        """List the partitions of published machines that are split over nodes, on their way, unserved or incomplete.
        Reads only; it asks every node of a cluster about each slot."""
        machines = self._caller.command("HGETALL", self.keys.machines)
        partitions = [self.keys.partition(name, n) for name in sorted(machines) for n in range(int(machines[name]))]
        try:
            return check_partitions(self.client, partitions)
        except FAILURES as error:
            translate(error)

    # Machines

    def publish(
        self,
        definition: dict[str, Any] | CompiledDefinition,
        *,
        version: int | None = None,
        alone: bool = False,
        rollout: float | None = None,
        guard: GuardSettings = None,
        actor: str = "",
        reason: str = "",
    ) -> PublishedMachine:
        """Check, compile and store a definition as the machine's current version. A compiled definition is only stored.

        The same content again is the same version. ``version`` publishes under a known number, to restore a backup.
        ``alone``: without the machines embedded in it. ``rollout``: the percentage of new instances that get the
        version, for ``actor`` and ``reason``; the current one stays. ``guard``: when that stops by itself, False for
        never. Without ``rollout`` a new version ends the roll-out of another. Raises DefinitionError with every
        finding, VersionRefused.
        """
        start = None
        if rollout is not None:
            name = definition.program["machine"] if isinstance(definition, CompiledDefinition) else definition.get("id")
            start = self._start_words(name, rollout, guard, actor, reason)
        published = self._catalog.publish(
            definition, version, alone, start=start, codec=self._encryption.codec is not None
        )
        self._encryption.forget(published.name)
        self._ready_queues.announce(published)
        if published.created:
            self._count_leased(published.name)
        return published

    def machines(self) -> dict[str, int]:
        """Return machine name -> number of its current version."""
        return self._catalog.machines()

    def current_versions(self) -> dict[str, str]:
        """Return machine name -> ``<version>:<digest>`` of the current version; no other content has the same."""
        return self._catalog.current_versions()

    def recent_versions(self) -> dict[str, str]:
        """Return the same for duties that ask again and again: what an earlier release publishes is seen after five
        minutes."""
        return self._catalog.recent_versions()

    def catalog_revision(self) -> str:
        """Return a text that changes when a machine is published or deleted: cheap, for callers that look often. A
        publication by an earlier release may not change it."""
        return self._catalog.revision()

    def versions(self, machine: str) -> list[int]:
        """List the numbers of a machine's published versions. Raises UnknownMachine."""
        return self._catalog.versions(machine)

    def definition(self, machine: str, version: int | None = None) -> dict[str, Any]:
        """Return the definition as it was published, by default the current version. Raises UnknownMachine."""
        return self._catalog.definition(machine, version)

    def count_partitions(self, machine: str) -> int:
        """Return the number of partitions that a machine got with its first publication. Raises UnknownMachine."""
        return len(self._catalog.partitions(machine))

    def list_partition_counts(self) -> dict[str, int]:
        """Return machine -> number of its partitions; on a cluster the last copy while the list does not answer."""
        return self._catalog.directory()

    def sensitive(self, machine: str) -> SensitiveFields:
        """Return the fields that any published version marks as sensitive. The engine itself returns them in clear:
        the code that shows data to people redacts it. Raises UnknownMachine."""
        return self._catalog.sensitive(machine)

    def encrypt(self, machine: str, value: Any) -> Any:
        """Return data or a payload with the values of encrypted fields as ciphertexts, as every call sends them: for
        what is stored elsewhere until it is sent. Raises BadPayload, EncryptionFailed."""
        return self._encryption.encrypt(machine, value)

    def encrypt_terms(self, machine: str, where: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the ``where`` of a search with the values of encrypted fields as ciphertexts. Raises BadInput."""
        return self._encryption.encrypt_terms(machine, where)

    def decrypt(self, value: Any, *, machine: str | None = None, found: set[str] | None = None) -> Any:
        """Return a value with every ciphertext in it decrypted, at any depth; add the texts of what was decrypted to
        ``found``. Raises EncryptionFailed; with ``machine`` only for the fields that it encrypts."""
        return self._encryption.decrypt(value, machine, found)

    def decrypt_for_people(self, machine: str, value: Any) -> Any:
        """Return a value with the ciphertexts of the machine's encrypted fields decrypted, and words in place of what
        cannot be decrypted now."""
        return self._encryption.show(machine, value)

    def missing_commands(self) -> list[str]:
        """List the commands that a step runs and the account in use may not run, as ACL SETUSER names them. Raises
        EngineFault where a library of another release is loaded."""
        return self._caller.missing_commands(f"{self.keys.prefix}permitted")

    def emitted_logs(self) -> EmittedLogs:
        """Return a reader of the logs of what machines emitted, as far as the logs are kept."""
        return EmittedLogs(self._caller, self.keys, self._catalog.count_partitions)

    def retirement(self) -> Retirement:
        """Return what lets go of finished instances, and reads those that were archived."""
        return Retirement(self._caller, self._catalog)

    def verify(
        self,
        definition: Mapping[str, Any] | CompiledDefinition | str,
        *,
        budget: int = 3_000,
        seconds: float = 20.0,
    ) -> list[VerificationFinding]:
        """Walk over what a machine can do, by the interpreter in Redis and without reading or writing a key; return
        what is wrong with it ("found", each with a run), what could not be decided, and what was proven.

        ``definition``: a definition, or the name of a published machine. ``budget``: snapshots to try at most;
        ``seconds``: how long at most. It assumes that instances are created with the values that the definition
        declares. ``docs/simulate-and-verify.md`` has the codes. Raises DefinitionError, BadInput, UnknownMachine.
        """
        arguments.check_count("budget", budget, MOST_SNAPSHOTS)
        arguments.check_seconds("seconds", seconds)
        compiled, root = self._compile_given(definition)
        from .verification.verifier import Verifier  # few processes verify

        return Verifier(self._caller, root, compiled).verify(budget, seconds)

    # Instances

    def new_id(self) -> str:
        """Make an id for records kept beside instances: it sorts by time and never repeats. Returns a random id when
        Redis is unavailable. Most calls need no round trip."""
        try:
            return make_instance_id(self.ids, "", "")
        except EngineUnavailable:
            return uuid.uuid4().hex

    def create(
        self,
        machine: str,
        id: str | None = None,
        data: Data | None = None,
        *,
        version: int | None = None,
        key: str | None = None,
        actor: str = "",
        reason: str = "",
        now: int | None = None,
        replicas: int | None = None,
    ) -> Instance:
        """Create an instance in its initial state and return it.

        Without an ``id`` it gets one that sorts by time; with a ``key``, the id that this key always makes, so that the
        same call sent twice creates one instance. ``replicas``: as of ``fire``. Raises InstanceExists, UnknownMachine,
        BadPayload, Refused (an entry action failed).
        """
        given = None if id is None else arguments.check_instance(id)
        words = (
            arguments.encode_fields("data", self._encryption.encrypt(machine, data), limits.MAX_DATA),
            arguments.encode_whole("version", version, least=1),
            arguments.check_key(key),
            arguments.check_actor(actor),
            arguments.check_reason(reason),
            arguments.encode_whole("now", now),
        )
        if given is None:  # after the checks, since making an id may take a range of ids
            given = make_instance_id(self.ids, machine, key or "")
        try:
            return self._change("sb_create", machine, given, (given, *words), now=now, replicas=replicas)
        except UnknownMachine:
            if version is None:
                raise
            self.versions(machine)  # raises when the machine itself is not there
            raise UnknownMachine(machine, version=version) from None

    def fire(
        self,
        machine: str,
        id: str,
        event: str,
        payload: Data | None = None,
        *,
        expect: int | None = None,
        key: str | None = None,
        actor: str = "",
        reason: str = "",
        now: int | None = None,
        permit: Permit | None = None,
        replicas: int | None = None,
    ) -> Instance:
        """Send an event to an instance and return the instance as it is afterwards.

        ``expect`` is the revision the caller saw: any other raises Conflict. The same ``key`` again within a day
        returns the first outcome and changes nothing. ``permit``: the rights of the person behind the call; None for a
        program. ``replicas``: wait until so many replicas have written the step, by default as many as the engine's
        option says; ``outcome.replicated`` is the number that had it in time, and ``outcome.durability`` says it in
        words. Raises Refused, UnknownEvent, UnknownInstance, BadPayload; with a permit also NotAllowed and
        NeedsApproval.
        """
        payload = self._encryption.encrypt(machine, payload)
        call = Fire(machine, id, event, payload, expect, key=key, actor=actor, reason=reason, now=now, permit=permit)
        args = arguments.encode_fire(call)
        return self._change("sb_fire", machine, id, args, expect=expect, now=now, replicas=replicas)

    def fire_revision(
        self,
        machine: str,
        id: str,
        event: str,
        payload: Data | None = None,
        *,
        expect: int | None = None,
        key: str | None = None,
        actor: str = "",
        reason: str = "",
        now: int | None = None,
        permit: Permit | None = None,
        replicas: int | None = None,
    ) -> int:
        """Send an event as ``fire`` does; return the instance's new revision alone, which is faster."""
        payload = self._encryption.encrypt(machine, payload)
        call = Fire(machine, id, event, payload, expect, key=key, actor=actor, reason=reason, now=now, permit=permit)
        args = arguments.encode_fire(call, revision_only=True)
        root = self._root(machine, id)
        reply, _ = self._replication.call(self._replication.choose(replicas), "sb_fire", root, args)
        self._require_ok(machine, id, reply, expect)
        if replies.has_messages(reply):
            self._deliver(get_root(reply, root), now)
        return replies.read_revision(reply)

    def fire_many(
        self, calls: Iterable[Fire | Mapping[str, Any] | Sequence[Any]], *, replicas: int | None = None
    ) -> list[Instance | SignalboxError]:
        """Send many events in one round trip, two for large batches; return, in order, the new instance or the error of
        each.

        Each event is a step of its own: one that is refused does not stop the others. ``replicas``: as of ``fire``,
        waited for once on each server.
        """
        return self._fire_all(calls, replicas, revision_only=False)

    def fire_revisions(
        self, calls: Iterable[Fire | Mapping[str, Any] | Sequence[Any]], *, replicas: int | None = None
    ) -> list[int | SignalboxError]:
        """Send many events as ``fire_many`` does; return, in order, the new revision or the error of each."""
        return self._fire_all(calls, replicas, revision_only=True)

    def _fire_all(self, calls: Iterable[Any], replicas: int | None, *, revision_only: bool) -> list[Any]:
        wanted = self._replication.choose(replicas)
        results: list[Any] = []
        known: list[tuple[int, Fire, str]] = []
        for index, item in enumerate(calls):
            results.append(None)
            try:
                call = arguments.read_fire(item)
                if self._encryption.find_marks(call.machine):
                    call = replace(call, payload=self._encryption.encrypt(call.machine, call.payload))
                known.append((index, call, self._catalog.partition(call.machine, call.id).root))
            except EngineUnavailable:
                raise
            except SignalboxError as error:
                results[index] = error
        sent: list[tuple[int, Fire, str]] = []
        posted: dict[str, int | None] = {}
        wire = self._build_calls(known, sent, results, revision_only)
        for place, reply, count in self._replication.stream(wanted, wire) if known else ():
            index, call, root = sent[place]
            result = return_errors(self._read_fired, call, root, reply, revision_only)
            results[index] = self._replication.mark(result, wanted, count) if isinstance(result, Instance) else result
            if not isinstance(reply, Exception) and replies.has_messages(reply):
                posted[get_root(reply, root)] = call.now
        for root, now in posted.items():
            self._deliver(root, now)
        return results

    def _build_calls(
        self,
        known: Sequence[tuple[int, Fire, str]],
        sent: list[tuple[int, Fire, str]],
        results: list[Any],
        revision_only: bool,
    ) -> Iterator[tuple[str, str, Sequence[Any]]]:
        """Yield the calls of a batch and note them in ``sent``; put the error of one that cannot be sent into
        ``results``. They are built while the server works on those before, so nothing else may be raised here."""
        for entry in known:
            index, call, root = entry
            try:
                args = arguments.encode_fire(call, revision_only)
            except SignalboxError as error:
                results[index] = error
                continue
            sent.append(entry)
            yield "sb_fire", root, args

    def _read_fired(self, call: Fire, root: str, reply: Any, revision_only: bool) -> Instance | int:
        if not revision_only:
            return self._instance(call.machine, call.id, root, reply, call.expect)
        self._require_ok(call.machine, call.id, reply, call.expect)
        return replies.read_revision(reply)

    def survey(self, *, trust: bool = False) -> Survey:
        """Read all machines, their queues and the workers, in few round trips however many there are. What did not
        change since the last call in this process is not read again. With ``trust`` the servers' memory says what
        changed, for callers that ask again and again: after a failover figures may then be five minutes old."""
        return self._surveys.read(self.workers, trust=trust)

    # Periodic duties

    def tick(self, machine: str | None = None, *, now: int | None = None) -> int:
        """Do the periodic work once, as every live process does all the time; return how many timers, jobs and messages
        moved.

        Takes back expired leases, fires due timers, delivers messages. ``now`` replaces the server's clock.
        """
        names = [machine] if machine is not None else list(self.machines())
        moved = 0
        faults: list[SignalboxError] = []
        for name in names:
            try:
                moved += self.sweep(name, now=now)
            except EngineFault as fault:  # a fault of one machine does not keep the others waiting
                faults.append(fault)
        driven = self.drive(names, now=now, retry=True)
        faults += driven.faults
        if faults:
            raise faults[0]
        return moved + driven.moved

    def advance(self, machine: str, *, now: int | None = None) -> tuple[int, int | None]:
        """Do what is due in one machine and deliver its messages; return how many moved, and ms of its next timer or
        None.

        Timers fire, expired leases are taken back, delayed jobs become ready.
        """
        self._catalog.partitions(machine)  # raises when there is none
        driven = self.drive([machine], now=now)
        if driven.faults:
            raise driven.faults[0]
        return driven.moved, driven.due

    def drive(
        self, machines: Iterable[str], *, now: int | None = None, retry: bool = False, look: bool = True
    ) -> DeliveryReport:
        """Do what is due in several machines and deliver their messages: one round trip when nothing is due. Machines
        that no longer exist are skipped.

        A message that could not be delivered is tried again after a pause, and with ``retry`` at once. Without ``look``
        the server answers from its memory where it knows that nothing is due, and reads no key: for callers that call
        often.
        """
        partitions = [one for machine in machines for one in self._catalog.find_partitions(machine)]
        return self._delivery.drive(partitions, arguments.encode_whole("now", now), retry=retry, look=look)

    def drive_roots(self, roots: Sequence[str], *, look: bool, clock: ClockBounds | None = None) -> DeliveryReport:
        """Do the same in single partitions, given by their roots. ``DeliveryReport.dues`` says when each is due
        next. Where the clock is later than it can be by ``clock``, nothing is done."""
        return self._delivery.drive([Partition(root) for root in roots], look=look, clock=clock)

    # Workers

    def beat(self, row: WorkerInfo) -> dict[str, Any] | None:
        """Write a worker's row; return the order that waits for it, ``{"order", "actor", "reason", "at"}``, or None."""
        return self._worker_registry.beat(row)

    def direct(self, worker: str, order: str, *, actor: str, reason: str) -> None:
        """Order a worker to be "quiet" (take no further jobs), to "work" again, or to "stop" as after SIGTERM.

        The worker obeys with its next heartbeat. Raises LookupFailed for a worker without a row.
        """
        self._worker_registry.direct(worker, order, actor=actor, reason=reason)

    def leave(self, worker: str) -> None:
        """Remove a worker's row, as it stops."""
        self._worker_registry.leave(worker)

    def workers(self) -> PartialList[WorkerInfo]:
        """List the workers that are alive. The attribute ``missing`` of the result lists the keys that did not
        answer."""
        return self._worker_registry.workers()
