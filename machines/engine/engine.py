"""The engine's front door: every call is one atomic step inside Redis."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import arguments, limits
from .connection import client, replies
from .connection.calls import Caller, translate
from .connection.client import FAILURES, Client
from .connection.replies import Status
from .definitions import CompiledDefinition
from .errors import EngineFault, EngineUnavailable, LookupFailed, SignalboxError, UnknownMachine
from .ids.generator import Claims, Generator, make_instance_id
from .instances import fire as firing
from .instances.activity import Activity
from .instances.bulk_reads import BulkReadMethods
from .instances.inspection import InspectionMethods
from .instances.repairs import RepairMethods
from .jobs.lifecycle import Queues
from .jobs.methods import JobMethods
from .jobs.queue_operations import QueueOperations
from .jobs.ready_queues import ReadyQueues
from .jobs.records import WorkerInfo
from .jobs.workers import WorkerRegistry
from .keys import PREFIX, Keys, Partition
from .messages.delivery import Delivery, DeliveryReport
from .messages.emitted import EmittedLogs
from .permits import Permit
from .publishing.catalog import Catalog
from .publishing.senders import SenderMethods
from .publishing.sensitive_fields import SensitiveFields
from .records import Explanation, Fire, Instance, Live, PublishedMachine, Step
from .search.methods import SearchMethods
from .search.survey import Survey, read_survey

log = logging.getLogger(__name__)

Data = Mapping[str, Any]


class Engine(JobMethods, BulkReadMethods, RepairMethods, SearchMethods, InspectionMethods, SenderMethods):
    """State machines that live in one Redis. Safe to share between threads; make one per process.

    Every call that changes an instance is one function call in Redis, so it happens wholly or not at all, and two
    callers never interleave. Times given as ``now`` are ms since the epoch and stand in for the server's clock.
    All calls raise ``EngineUnavailable`` when Redis cannot be used.
    """

    def __init__(self, redis: Client, *, prefix: str = PREFIX, partitions: int = 1) -> None:
        self.client = redis
        self.keys = Keys(prefix)
        self._caller = Caller(redis)
        self._catalog = Catalog(self._caller, self.keys, partitions)
        self._delivery = Delivery(self._caller, self._catalog)
        self._queues = Queues(self._caller, self._catalog, self._deliver)
        self._operator = QueueOperations(self._caller, self._catalog, self._queues)
        self._roster = WorkerRegistry(redis, self.keys)
        self._lookout = ReadyQueues(redis, self.keys, self._catalog)
        self.ids = Generator(Claims(self._caller, prefix=self.keys.prefix))

    @classmethod
    def from_url(cls, url: str, *, prefix: str = PREFIX, partitions: int = 1, **options: Any) -> Engine:
        """``redis://``, ``rediss://``, ``unix://`` or ``redis+cluster://``. ``partitions`` is for machines published
        for the first time: 1 on a single server, several times the number of primaries on a cluster."""
        return cls(client.connect(url, **options), prefix=prefix, partitions=partitions)

    def ping(self) -> None:
        try:
            self.client.ping()
        except FAILURES as error:
            translate(error)

    def load_library(self) -> None:
        """Load the functions library now, replacing what the server has. Normally done on first use."""
        self._caller.load()

    def require_library(self) -> None:
        """Raises EngineUnavailable or EngineFault unless the server holds a functions library of ours, or took this
        one now. One of another release stays: calls get along with it until a process of either loads its own."""
        self._caller.require()

    # Machines

    def lacking(self) -> list[str]:
        """The commands that a step may run and the account in use may not, as ACL SETUSER has them. EngineFault where
        another release's library is loaded, which cannot be asked."""
        return self._caller.lacking(f"{self.keys.prefix}permitted")

    def publish(
        self, definition: dict[str, Any] | CompiledDefinition, *, version: int | None = None, alone: bool = False
    ) -> PublishedMachine:
        """Check, compile and store a definition as the machine's current version; one that is compiled is stored.

        The same content again is the same version. ``version`` re-publishes under a known number, for restoring.
        ``alone``: without the machines that it brings along. Raises DefinitionError with every finding.
        """
        published = self._catalog.publish(definition, version, alone)
        self._lookout.announce(published)
        return published

    def machines(self) -> dict[str, int]:
        """Name -> current version."""
        return self._catalog.machines()

    def current(self) -> dict[str, str]:
        """Name -> ``<version>:<digest>`` of the current version, which no other content ever has."""
        return self._catalog.current()

    def versions(self, machine: str) -> list[int]:
        return self._catalog.versions(machine)

    def definition(self, machine: str, version: int | None = None) -> dict[str, Any]:
        """The definition as it was published. Raises UnknownMachine."""
        return self._catalog.definition(machine, version)

    def emitted(self) -> EmittedLogs:
        """What machines emitted, as far as their logs go back."""
        return EmittedLogs(self._caller, self.keys)

    def moving(self) -> Activity:
        """Which instances moved on a day, and for how long those that stand in a state have."""
        return Activity(self._caller, self._catalog)

    def sensitive(self, machine: str) -> SensitiveFields:
        """The fields that any published version marks as sensitive. The engine itself hides nothing: whoever shows them
        to people does. Raises UnknownMachine."""
        return self._catalog.sensitive(machine)

    # Instances

    def new_id(self) -> str:
        """An id for what lies beside instances: sorts by time, never repeats, and is a random one where Redis cannot be
        asked. Seldom a call."""
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
    ) -> Instance:
        """A new instance in its initial state. Without an ``id`` it gets one that sorts by time, or with a ``key`` the
        one that this key always makes: sent twice, it is one instance.

        Raises InstanceExists, UnknownMachine, BadPayload, Refused (an entry action failed).
        """
        given = None if id is None else arguments.check_instance(id)
        words = (
            arguments.encode_fields("data", data, limits.MAX_DATA),
            arguments.encode_whole("version", version, least=1),
            arguments.check_key(key),
            arguments.check_actor(actor),
            arguments.check_reason(reason),
            arguments.encode_whole("now", now),
        )
        if given is None:  # last of all: it may take a range, and what is refused changes nothing
            given = make_instance_id(self.ids, machine, key or "")
        try:
            return self._change("sb_create", machine, given, (given, *words), now=now)
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
    ) -> Instance:
        """Send an event; the instance as it is afterwards.

        ``expect`` is the revision the caller saw: any other raises Conflict. The same ``key`` again, within a day,
        gives the first outcome and changes nothing. ``permit``: what the person behind it may; None for a program.
        Raises Refused, UnknownEvent, UnknownInstance, BadPayload; with a permit NotAllowed and NeedsApproval, too.
        """
        call = Fire(machine, id, event, payload, expect, key=key, actor=actor, reason=reason, now=now, permit=permit)
        return self._change("sb_fire", machine, id, firing.build_arguments(call), expect=expect, now=now)

    def fire_many(self, calls: Iterable[Fire | Mapping[str, Any] | Sequence[Any]]) -> list[Instance | SignalboxError]:
        """Many events in one round trip; for each, in order, the new instance or the error it met.

        Each is a step of its own: one that is refused does not stop the others.
        """
        results: list[Any] = []
        sent: list[tuple[int, Fire, str]] = []
        wire: list[tuple[str, str, Sequence[Any]]] = []
        posted: dict[str, int | None] = {}
        for index, item in enumerate(calls):
            results.append(None)
            try:
                call = firing.read_call(item)
                args = firing.build_arguments(call)
                root = self._catalog.partition(call.machine, call.id).root
            except EngineUnavailable:
                raise
            except SignalboxError as error:
                results[index] = error
                continue
            sent.append((index, call, root))
            wire.append(("sb_fire", root, args))
        for (index, call, root), reply in zip(sent, self._caller.many(wire), strict=True):
            results[index] = self._outcome(call, root, reply)
            if not isinstance(reply, Exception) and replies.has_messages(reply):
                posted[root] = call.now
        for root, now in posted.items():
            self._deliver(root, now)
        return results

    def _outcome(self, call: Fire, root: str, reply: Any) -> Instance | SignalboxError:
        try:
            if isinstance(reply, Exception):
                translate(reply)
            return self._instance(call.machine, call.id, root, reply, call.expect)
        except SignalboxError as error:
            return error

    def explain(
        self, machine: str, id: str, event: str, payload: Data | None = None, *, now: int | None = None
    ) -> Explanation:
        """What ``fire`` would do, and why; changes nothing. Raises UnknownInstance, BadPayload."""
        root = self._root(machine, id)
        body = arguments.encode_fields("payload", payload, limits.MAX_PAYLOAD)
        reply = self._caller.call(
            "sb_explain", root, id, arguments.check_event(event), body, arguments.encode_whole("now", now)
        )
        if reply[0] != Status.OK:
            raise replies.build_error(machine, id, reply)
        return replies.read_explanation(machine, id, reply[1])

    def get(self, machine: str, id: str) -> Instance:
        """Raises UnknownInstance, UnknownMachine."""
        return self._change("sb_get", machine, id, (id,))

    def history(self, machine: str, id: str, *, limit: int = 100, before: int | None = None) -> list[Step]:
        """The latest steps, newest first; ``before`` is a version, for the page after."""
        arguments.check_count("limit", limit, limits.MAX_HISTORY)
        root = self._root(machine, id)
        skip = 0
        if before is not None:
            arguments.encode_whole("before", before)
            newest = self._caller.call("sb_history", root, id, -1, -1)
            if newest[0] == Status.OK and len(newest) > 3:
                skip = max(0, replies.read_step(newest[3]).version - before + 1)
        # One entry more than asked for: it tells the state the oldest of them came from.
        reply = self._caller.call("sb_history", root, id, -(limit + skip + 1), -1 - skip)
        if reply[0] != Status.OK:
            raise replies.build_error(machine, id, reply)
        # Steps that came in between the two calls moved the window: none of them is older than ``before``.
        steps = replies.read_steps(reply[3:])
        return [step for step in steps if before is None or step.version < before][:limit]

    def counts(self, machine: str) -> dict[str, int]:
        """How many instances are in each leaf state; states without any are there with 0."""
        return self.live(machine).counts

    def live(self, machine: str, *, now: int | None = None) -> Live:
        """Counts, oldest entries, flow, queue depths and breaches, each partition read in one atomic call."""
        at = (arguments.encode_whole("now", now),)
        calls = [("sb_live", p.root, at) for p in self._catalog.partitions(machine)]
        return replies.merge_live([replies.read_live(machine, reply[1]) for reply in self._answers(machine, calls)])

    def survey(self) -> Survey:
        """All machines with their queues, and the workers, in few round trips however many there are."""
        return read_survey(self._caller, self._catalog, self.workers())

    # Periodic duties

    def tick(self, machine: str | None = None, *, now: int | None = None) -> int:
        """The periodic duties, once: what every live process does all the time. How many things it moved.

        Takes back expired leases, fires due timers, delivers messages. ``now`` stands in for the clock.
        """
        names = [machine] if machine is not None else list(self.machines())
        moved = 0
        faults: list[SignalboxError] = []
        for name in names:
            try:
                moved += self.sweep(name, now=now)
            except EngineFault as fault:  # what is wrong with one machine keeps no other waiting
                faults.append(fault)
        driven = self.drive(names, now=now, retry=True)
        faults += driven.faults
        if faults:
            raise faults[0]
        return moved + driven.moved

    def advance(self, machine: str, *, now: int | None = None) -> tuple[int, int | None]:
        """Do what is due in a machine and deliver its messages: how many moved, and ms of its next timer or None.

        What is due: timers fire, expired leases are taken back, delayed jobs become ready.
        """
        self._catalog.partitions(machine)  # raises when there is none
        driven = self.drive([machine], now=now)
        if driven.faults:
            raise driven.faults[0]
        return driven.moved, driven.due

    def drive(
        self, machines: Iterable[str], *, now: int | None = None, retry: bool = False, look: bool = True
    ) -> DeliveryReport:
        """The same for several machines, in one round trip where nothing is due; those that are gone are passed over.

        A message that could not be delivered is tried again after a pause, and with ``retry`` now. Without ``look``
        the server answers from memory where it knows that nothing is due, and reads no key: for those who call often.
        """
        return self._delivery.drive(
            self._partitions(machines), arguments.encode_whole("now", now), retry=retry, look=look
        )

    def clocks(self, machines: Iterable[str]) -> list[str]:
        """The keys that are pushed to when something becomes due earlier than ticks have said: one a partition."""
        return [partition.clock for partition in self._partitions(machines)]

    def queues(self, machine: str) -> dict[str, dict[str, int]]:
        """Queue -> how many jobs are ready, leased, delayed and dead."""
        return self.live(machine).queues

    # Workers

    def beat(self, row: WorkerInfo) -> dict[str, Any] | None:
        """Write a worker's row; the order that stands for it: ``{"order", "actor", "reason", "at"}``, or None."""
        return self._roster.beat(row)

    def direct(self, worker: str, order: str, *, actor: str, reason: str) -> None:
        """Tell a worker to be "quiet" (take no further jobs), to "work" again, or to "stop" as a TERM has it.

        It obeys with its next heartbeat. Raises LookupFailed for a worker without a row.
        """
        self._roster.direct(worker, order, actor=actor, reason=reason)

    def leave(self, worker: str) -> None:
        self._roster.leave(worker)

    def workers(self) -> list[WorkerInfo]:
        return self._roster.workers()

    # Within

    def _partitions(self, machines: Iterable[str]) -> list[Partition]:
        """Those of all these machines that are there."""
        found: list[Partition] = []
        for machine in machines:
            with contextlib.suppress(LookupFailed):
                found += self._catalog.partitions(machine)
        return found

    def _root(self, machine: str, id: str) -> str:
        arguments.check_instance(id)
        return self._catalog.partition(machine, id).root

    def _change(
        self,
        function: str,
        machine: str,
        id: str,
        args: Sequence[Any],
        *,
        expect: int | None = None,
        now: int | None = None,
    ) -> Instance:
        root = self._root(machine, id)
        reply = self._caller.call(function, root, *args)
        instance = self._instance(machine, id, root, reply, expect)
        if replies.has_messages(reply):
            self._deliver(root, now)
        return instance

    def _deliver(self, root: str, now: int | None) -> None:
        """Carry a step's messages on at once. They are safe in the outbox: what fails here is a worker's to do."""
        try:
            self._delivery.deliver(root, arguments.encode_whole("now", now))
        except SignalboxError as error:
            log.info("messages of %s are left for a worker: %s", root, error)

    def _instance(self, machine: str, id: str, root: str, reply: Sequence[Any], expect: int | None) -> Instance:
        if reply[0] != Status.OK:
            error = replies.build_error(machine, id, reply, expect=expect)
            if isinstance(error, UnknownMachine):
                self._catalog.forget(machine)
            raise error
        raw = replies.read_fields(reply)
        types = self._catalog.types(machine, root, raw["_def"])
        return replies.read_instance(machine, id, raw, types, replies.read_outcome(reply))
