"""What the parts of ``Engine`` share: its connection, its catalog, and the way of a call that changes an instance."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import arguments
from .connection import replies
from .connection.calls import Caller, translate
from .connection.replies import Status
from .connection.retries import get_root
from .errors import BadPayload, SignalboxError, UnknownMachine
from .keys import Keys
from .records import Explanation, Instance

if TYPE_CHECKING:
    from .instances.encryption import FieldEncryption
    from .instances.replication import Replication
    from .messages.delivery import Delivery
    from .publishing.catalog import Catalog

log = logging.getLogger(__name__)
Found = TypeVar("Found")


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
