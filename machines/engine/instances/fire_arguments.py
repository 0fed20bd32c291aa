"""Builds the arguments of ``sb_fire`` from a ``Fire`` record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from machines.engine import arguments, limits, permits
from machines.engine.errors import BadInput
from machines.engine.records import Fire

REVISION_ALONE = "version"  # the argument of ``sb_fire`` that asks for it


def build_arguments(call: Fire, revision_only: bool = False) -> tuple[Any, ...]:
    """Build the arguments of ``sb_fire``, in its order. Raises BadInput or BadPayload."""
    found = (
        call.id,
        arguments.check_event(call.event),
        arguments.encode_fields("payload", call.payload, limits.MAX_PAYLOAD),
        "" if call.expect is None else arguments.encode_whole("expect", call.expect),
        "" if call.key is None else arguments.check_key(call.key),
        "" if call.actor == "" else arguments.check_actor(call.actor),
        "" if call.reason == "" else arguments.check_reason(call.reason),
        "" if call.now is None else arguments.encode_whole("now", call.now),
    )
    if call.permit is None and not revision_only:
        return found
    permit = "" if call.permit is None else permits.encode_permit(call.permit)
    return (*found, permit, REVISION_ALONE) if revision_only else (*found, permit)


def read_call(item: Fire | Mapping[str, Any] | Sequence[Any]) -> Fire:
    """Return one item of ``Engine.fire_many``, a Fire, its fields by name or the first five in order, as a Fire."""
    try:
        call = item if isinstance(item, Fire) else Fire(**item) if isinstance(item, Mapping) else Fire(*item)
    except TypeError as error:
        allowed = ", ".join(asdict(Fire("", "", "")))
        raise BadInput(f"a call for fire_many() has the fields {allowed}: {error}", code="SB407") from error
    arguments.check_machine(call.machine)
    arguments.check_instance(call.id)
    return call
