"""What the parts of ``Engine`` share: its connection, its catalog, and the way of a call that changes an instance.

A step is carried out first and replicated afterwards, so that waiting for replicas cannot undo it: the outcome says how
many of them have written it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from . import arguments, tracing
from .connection import library, replies
from .connection.calls import Caller, translate
from .connection.replies import Status
from .connection.retries import get_root
from .errors import BadPayload, SignalboxError, UnknownMachine
from .keys import Keys, Partition
from .limits import LONGEST_WAIT, MOST_REPLICAS
from .records import Explanation, Instance
from .tracing import Call

if TYPE_CHECKING:
    from .instances.encryption import FieldEncryption
    from .messages.delivery import Delivery
    from .publishing.catalog import Catalog

log = logging.getLogger(__name__)
Found = TypeVar("Found")
Reply = Any
PULSE_MS = 50  # how long the key of a pulse lives


class Replication:
    """How many replicas a step waits for by default, and for how long. ``timeout`` is in ms."""

    def __init__(self, caller: Caller, replicas: int, timeout: int) -> None:
        self._caller = caller
        self._replicas = arguments.check_between("replicas", replicas, 0, MOST_REPLICAS)
        self._timeout = arguments.check_between("replica_timeout", timeout, 1, LONGEST_WAIT)

    def choose(self, replicas: int | None) -> int:
        """Return the number to wait for: that of the call, or else the default. Raises BadInput."""
        if replicas is None:
            return self._replicas
        return arguments.check_between("replicas", replicas, 0, MOST_REPLICAS)

    def call(self, wanted: int, function: str, root: str, args: Sequence[Any]) -> tuple[Reply, int | None]:
        """Call a function; return its reply, and how many replicas have written its step, None where none is wanted."""
        if function not in tracing.PLACES or tracing.find_tracer() is None:
            return self._call(wanted, function, root, args)
        step, words = tracing.Step.of_call(function, root, args)
        with step:
            found = self._call(wanted, function, root, words)
            step.read(found[0])
        return found

    def _call(self, wanted: int, function: str, root: str, args: Sequence[Any]) -> tuple[Reply, int | None]:
        if not wanted or function in library.read_only():
            return self._caller.call(function, root, *args), None
        reply, written = self._caller.call_and_wait(function, root, *args, replicas=wanted, timeout=self._timeout)
        return reply, self._confirm(wanted, root) if _is_replayed(reply) else written

    def many(self, wanted: int, calls: Sequence[Call]) -> tuple[list[Reply], list[int | None]]:
        """Send several calls in one round trip; return their replies, and for each the number of replicas as ``call``
        does."""
        if tracing.find_tracer() is None:
            return self._many(wanted, calls)
        with tracing.Spans() as steps:
            found, written = self._many(wanted, list(tracing.begin_steps(calls, steps)))
            for place, reply in enumerate(found):
                steps.end(place, reply)
        return found, written

    def _many(self, wanted: int, calls: Sequence[Call]) -> tuple[list[Reply], list[int | None]]:
        if not wanted or not calls:
            return self._caller.many(calls), [None] * len(calls)
        found, written = self._caller.many_and_wait(calls, replicas=wanted, timeout=self._timeout)
        replayed = {root for (_, root, _), reply in zip(calls, found, strict=True) if _is_replayed(reply)}
        confirmed = {root: self._confirm(wanted, root) for root in replayed}
        return found, [
            confirmed[root] if _is_replayed(reply) else count
            for (_, root, _), reply, count in zip(calls, found, written, strict=True)
        ]

    def stream(self, wanted: int, calls: Iterable[Call]) -> Iterator[tuple[int, Reply, int | None]]:
        """Send several calls in one round trip, each as soon as it is made; yield the place of each, its reply, and the
        number of replicas as ``call`` does. Those that succeeded come first."""
        if tracing.find_tracer() is None:
            return self._stream(wanted, calls)
        return self._stream_traced(wanted, calls)

    def _stream_traced(self, wanted: int, calls: Iterable[Call]) -> Iterator[tuple[int, Reply, int | None]]:
        with tracing.Spans() as steps:
            for place, reply, count in self._stream(wanted, tracing.begin_steps(calls, steps)):
                steps.end(place, reply)
                yield place, reply, count

    def _stream(self, wanted: int, calls: Iterable[Call]) -> Iterator[tuple[int, Reply, int | None]]:
        if not wanted:
            return ((place, reply, None) for place, reply in self._caller.stream(calls))
        replies, written = self._many(wanted, list(calls))
        return ((place, reply, count) for place, (reply, count) in enumerate(zip(replies, written, strict=True)))

    @staticmethod
    def mark(instance: Instance, wanted: int, written: int | None) -> Instance:
        """Return the instance with what is known about replicas in its outcome."""
        if written is None or instance.outcome is None:
            return instance
        return replace(instance, outcome=replace(instance.outcome, replicated=written, replicas=wanted))

    def _confirm(self, wanted: int, root: str) -> int:
        """Wait for all that is written so far: WAIT is about writes of its own connection, and a repeated call with a
        key wrote nothing, while its first step may not be replicated."""
        pulse = Partition(root).pulse
        return self._caller.command_and_wait(
            pulse, ("SET", pulse, "1", "PX", PULSE_MS), replicas=wanted, timeout=self._timeout
        )


def _is_replayed(reply: Reply) -> bool:
    return isinstance(reply, list) and len(reply) > 2 and reply[0] == Status.OK and str(reply[2]) == "1"


class EngineBase:
    """The base of the classes of which ``Engine`` is made."""

    keys: Keys
    _caller: Caller
    _catalog: Catalog
    _replication: Replication
    _delivery: Delivery
    _encryption: FieldEncryption

    def _root(self, machine: str, id: str) -> str:
        """Return the root of an instance's partition. Raises BadInput, UnknownMachine."""
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
        replicas: int | None = None,
    ) -> Instance:
        """Call a function that answers with an instance, deliver the messages of its step, and return the instance."""
        root = self._root(machine, id)
        wanted = self._replication.choose(replicas)
        reply, written = self._replication.call(wanted, function, root, args)
        instance = self._replication.mark(self._instance(machine, id, root, reply, expect), wanted, written)
        if replies.has_messages(reply):
            self._deliver(get_root(reply, root), now)
        return instance

    def _deliver(self, root: str, now: int | None) -> None:
        """Deliver a step's messages at once. They are safe in the outbox: a worker delivers what fails here."""
        try:
            self._delivery.deliver(root, arguments.encode_whole("now", now))
        except SignalboxError as error:
            log.info("messages of %s are left for a worker: %s", root, error)

    def _instance(self, machine: str, id: str, root: str, reply: Any, expect: int | None = None) -> Instance:
        """Read the instance in a reply. Raises the error that the reply stands for."""
        self._require_ok(machine, id, reply, expect)
        raw = replies.read_fields(reply)
        types = self._catalog.types(machine, root, raw["_def"])
        return replies.read_instance(machine, id, raw, types, replies.read_outcome(reply))

    def _explanation(self, machine: str, id: str, reply: Any) -> Explanation:
        return replies.read_explanation(machine, id, self._require_ok(machine, id, reply)[1])

    def _require_ok(self, machine: str, id: str, reply: Any, expect: int | None = None) -> Sequence[Any]:
        """Return an OK reply; raise the error that any other stands for."""
        if isinstance(reply, Exception):
            translate(reply)
        if reply[0] != Status.OK:
            error = replies.build_error(machine, id, reply, expect=expect)
            if isinstance(error, UnknownMachine):
                self._catalog.forget(machine)
            if isinstance(error, BadPayload):  # another process may have published a version that encrypts more
                self._encryption.forget(machine)
            raise error
        answer: Sequence[Any] = reply
        return answer


def return_errors(read: Callable[..., Found], *words: Any) -> Found | SignalboxError:
    """Call, and return an error in place of raising it: one of a batch does not keep the others."""
    try:
        return read(*words)
    except SignalboxError as error:
        return error
