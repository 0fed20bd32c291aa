"""The methods of the engine that read or create several instances in one round trip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from machines.engine import arguments, limits
from machines.engine.connection import replies
from machines.engine.connection.calls import Caller, require_any, translate
from machines.engine.connection.redirects import get_root
from machines.engine.connection.replies import Status
from machines.engine.errors import BadInput, SignalboxError
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Explanation, Instance

from .replication import Replication, mark


class BulkReadMethods:
    """Calls about several instances, each at a moment of its own: a part of ``Engine``."""

    _caller: Caller
    _catalog: Catalog
    _replication: Replication

    def _deliver(self, root: str, now: int | None) -> None:
        raise NotImplementedError

    def _instance(self, machine: str, id: str, root: str, reply: Sequence[Any], expect: int | None) -> Instance:
        raise NotImplementedError

    def get_many(self, machine: str, ids: Iterable[str]) -> list[Instance | SignalboxError]:
        """Return, in order, the instance of each id or its error. Raises UnknownMachine; EngineUnavailable where no
        partition answers."""
        asked = [arguments.check_instance(id) for id in ids]
        roots, answers = self._ask(machine, "sb_get", asked, ())
        return [self._read_one(machine, id, root, reply) for id, root, reply in zip(asked, roots, answers, strict=True)]

    def explain_many(
        self, machine: str, ids: Iterable[str], event: str, payload: Mapping[str, Any] | None = None
    ) -> list[Explanation | SignalboxError]:
        """Compute what ``fire`` would do with each instance, in order; change nothing. Raises UnknownMachine,
        EngineUnavailable."""
        asked = [arguments.check_instance(id) for id in ids]
        words = (arguments.check_event(event), arguments.encode_fields("payload", payload, limits.MAX_PAYLOAD), "")
        _, answers = self._ask(machine, "sb_explain", asked, words)
        return [self._explain_one(machine, id, reply) for id, reply in zip(asked, answers, strict=True)]

    def create_many(
        self,
        machine: str,
        instances: Mapping[str, Mapping[str, Any] | None],
        *,
        actor: str = "",
        reason: str = "",
        now: int | None = None,
    ) -> list[Instance | SignalboxError]:
        """Create instances, id -> data, each as ``create`` does; return, in order, the instance or its error. One that
        fails does not stop the others. Raises UnknownMachine; EngineUnavailable where no partition answers, after which
        some may have been created."""
        ends = (arguments.check_actor(actor), arguments.check_reason(reason), arguments.encode_whole("now", now))
        results: dict[str, Instance | SignalboxError] = {}
        calls: dict[str, tuple[str, str, Sequence[Any]]] = {}
        for id, data in instances.items():
            try:
                words = (arguments.check_instance(id), arguments.encode_fields("data", data, limits.MAX_DATA), "", "")
            except BadInput as error:
                results[id] = error
            else:
                calls[id] = "sb_create", self._catalog.partition(machine, id).root, (*words, *ends)
        wanted = self._replication.choose(None)
        answers, counts = self._replication.many(wanted, list(calls.values()))
        require_any(answers)
        sending = set()
        for (id, (_, root, _)), reply, count in zip(calls.items(), answers, counts, strict=True):
            made = self._read_one(machine, id, root, reply)
            results[id] = mark(made, wanted, count) if isinstance(made, Instance) else made
            if isinstance(made, Instance) and replies.has_messages(reply):
                sending.add(get_root(reply, root))
        for root in sending:
            self._deliver(root, now)
        return [results[id] for id in instances]

    def _ask(
        self, machine: str, function: str, ids: Sequence[str], words: Sequence[str]
    ) -> tuple[list[str], list[Any]]:
        roots = [self._catalog.partition(machine, id).root for id in ids]
        calls = [(function, root, (id, *words)) for id, root in zip(ids, roots, strict=True)]
        answers = self._caller.many(calls)
        require_any(answers)
        return roots, answers

    def _read_one(self, machine: str, id: str, root: str, reply: Any) -> Instance | SignalboxError:
        try:
            return self._instance(machine, id, root, _require_ok(machine, id, reply), None)
        except SignalboxError as error:
            return error

    def _explain_one(self, machine: str, id: str, reply: Any) -> Explanation | SignalboxError:
        try:
            return replies.read_explanation(machine, id, _require_ok(machine, id, reply)[1])
        except SignalboxError as error:
            return error


def _require_ok(machine: str, id: str, reply: Any) -> Sequence[Any]:
    """Return an OK reply; raise the error that any other stands for."""
    if isinstance(reply, Exception):
        translate(reply)
    if reply[0] != Status.OK:
        raise replies.build_error(machine, id, reply)
    answer: Sequence[Any] = reply
    return answer
