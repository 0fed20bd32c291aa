"""Questions about many instances in one round trip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from machines.engine import arguments, limits
from machines.engine.connection import replies
from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.replies import Status
from machines.engine.errors import EngineUnavailable, SignalboxError
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Explanation, Instance


class BulkReadMethods:
    """The part of the front door that asks about several instances at once, each at a moment of its own."""

    _caller: Caller
    _catalog: Catalog

    def _instance(self, machine: str, id: str, root: str, reply: Sequence[Any], expect: int | None) -> Instance:
        raise NotImplementedError

    def get_many(self, machine: str, ids: Iterable[str]) -> list[Instance | SignalboxError]:
        """For each id, in order, the instance or the error it met. Raises UnknownMachine, EngineUnavailable."""
        asked = [arguments.check_instance(id) for id in ids]
        roots, answers = self._ask(machine, "sb_get", asked, ())
        return [self._seen(machine, id, root, reply) for id, root, reply in zip(asked, roots, answers, strict=True)]

    def explain_many(
        self, machine: str, ids: Iterable[str], event: str, payload: Mapping[str, Any] | None = None
    ) -> list[Explanation | SignalboxError]:
        """What ``fire`` would do with each, in order; changes nothing. Raises UnknownMachine, EngineUnavailable."""
        asked = [arguments.check_instance(id) for id in ids]
        words = (arguments.check_event(event), arguments.encode_fields("payload", payload, limits.MAX_PAYLOAD), "")
        _, answers = self._ask(machine, "sb_explain", asked, words)
        return [self._explained(machine, id, reply) for id, reply in zip(asked, answers, strict=True)]

    def _ask(
        self, machine: str, function: str, ids: Sequence[str], words: Sequence[str]
    ) -> tuple[list[str], list[Any]]:
        roots = [self._catalog.partition(machine, id).root for id in ids]
        return roots, self._caller.many([(function, root, (id, *words)) for id, root in zip(ids, roots, strict=True)])

    def _seen(self, machine: str, id: str, root: str, reply: Any) -> Instance | SignalboxError:
        try:
            return self._instance(machine, id, root, _sound(machine, id, reply), None)
        except EngineUnavailable:
            raise
        except SignalboxError as error:
            return error

    def _explained(self, machine: str, id: str, reply: Any) -> Explanation | SignalboxError:
        try:
            return replies.read_explanation(machine, id, _sound(machine, id, reply)[1])
        except EngineUnavailable:
            raise
        except SignalboxError as error:
            return error


def _sound(machine: str, id: str, reply: Any) -> Sequence[Any]:
    """A reply that says OK; else the error it stands for."""
    if isinstance(reply, Exception):
        translate(reply)
    if reply[0] != Status.OK:
        raise replies.build_error(machine, id, reply)
    answer: Sequence[Any] = reply
    return answer
