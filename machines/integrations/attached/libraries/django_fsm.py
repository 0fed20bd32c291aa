"""django-fsm-2: transitions are decorated methods of the model, and signals tell of them."""

from collections.abc import Mapping
from typing import Any

from django.db import models

from .library import ANY, ANY_OTHER, DeclaredTransition, Library, Listener, MadeTransition, holds, name_of

_UID = "machines.integrations.attached"


class DjangoFsm(Library):
    name = "django-fsm-2"

    def list_transitions(self) -> list[DeclaredTransition]:
        found = []
        for name, method in sorted((self.field.transitions.get(self.model) or {}).items()):
            sources = method._django_fsm.transitions
            found += [_declare(name, source, sources[source]) for source in sorted(sources, key=str)]
        return found

    def connect(self, listener: Listener) -> None:
        from django_fsm.signals import post_transition

        def hear(
            sender: Any, instance: models.Model, name: str, field: Any, source: Any, target: Any,
            method_kwargs: Mapping[str, Any] | None = None, **_: Any,
        ) -> None:  # fmt: skip
            listener(instance, field.name, MadeTransition(name, source, target, method_kwargs or {}))

        post_transition.connect(hear, weak=False, dispatch_uid=_UID)

    def find_refusal(self, row: models.Model, declared: DeclaredTransition, user: Any) -> str:
        permission = declared.raw.permission
        if not (permission(row, user) if callable(permission) else holds(user, permission, row)):
            return f"the permission {declared.permission} is missing"
        for condition, name in zip(declared.raw.conditions, declared.conditions, strict=True):
            if not condition(row):
                return f"the condition {name} is not met"
        return ""

    def call(self, row: models.Model, event: str, arguments: Mapping[str, Any]) -> None:
        getattr(row, event)(**arguments)


def _declare(name: str, source: Any, raw: Any) -> DeclaredTransition:
    computes = hasattr(raw.target, "get_state")
    targets = list(raw.target.allowed_states or ()) if computes else [raw.target] if raw.target is not None else []
    if raw.on_error is not None:
        targets.append(raw.on_error)
    if source == ANY_OTHER and (computes or raw.target is None):
        source = ANY  # there is no target that could be the source
    permission = raw.permission or ""
    return DeclaredTransition(
        event=name, source=source, targets=tuple(targets), stays=raw.target is None,
        computes=computes and not raw.target.allowed_states,
        conditions=tuple(name_of(one) for one in raw.conditions),
        permission=permission if isinstance(permission, str) else name_of(permission),
        on_error=raw.on_error, raw=raw,
        label=str(raw.custom.get("label") or "") or (raw.method.__doc__ or "").strip().partition("\n")[0],
    )  # fmt: skip
