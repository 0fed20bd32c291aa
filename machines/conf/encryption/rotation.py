"""Encrypts every stored secret under the current key. Each value is replaced only where it is still the one that was
read, so a rotation runs beside a live installation, and a second time."""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db import models
from django.db.models.functions import Cast

from .ciphers import MARK, WORDS, renew
from .fields import EncryptedTextField

FACTORS = "second factors"
"""The purpose of the secrets of second factors."""
FACTOR_KEYS = ("secret", "seed", "migrated_codes")
"""Where django-allauth keeps what it encrypts."""


@dataclass(slots=True)
class Rotation:
    """The result for one field. ``current``: values that the current key had encrypted already; ``changed``: others
    wrote the value meanwhile; ``kept``: why a value stays as it is, mostly since no key decrypts it, by primary key."""

    name: str
    renewed: int = 0
    current: int = 0
    changed: int = 0
    kept: dict[object, str] = field(default_factory=dict)


def rotate_all() -> Iterator[Rotation]:
    """Encrypt every stored secret under the current key."""
    for model in apps.get_models():
        for column in model._meta.local_concrete_fields:
            if isinstance(column, EncryptedTextField):
                yield rotate(model, column)
    if apps.is_installed("allauth.mfa"):
        yield rotate_factors()


def rotate(model: type[models.Model], column: EncryptedTextField) -> Rotation:
    """Encrypt the values of a field under the current key."""
    return _rotate_rows(
        model, column.name, lambda stored: renew(stored, column.purpose),
        lambda text: models.Value(text, models.TextField()), column.EMPTY,
    )  # fmt: skip


def rotate_factors() -> Rotation:
    """Encrypt the secrets of second factors under the current key: django-allauth keeps them within JSON, beside public
    keys of passkeys."""
    return _rotate_rows(
        apps.get_model("mfa", "Authenticator"), "data", _renew_within,
        lambda text: models.Value(json.loads(text), models.JSONField()),
    )  # fmt: skip


def _renew_within(stored: str) -> str | None:
    """Return the data of a factor with each secret as the current key encrypts it; None where no key fits one."""
    data = json.loads(stored)
    before = {key: data[key] for key in FACTOR_KEYS if key in data}
    after: dict[str, Any] = {}
    for key, held in before.items():
        texts = held if isinstance(held, list) else [held]
        found = [renew(one, FACTORS) if str(one).startswith(MARK) else one for one in texts]
        if None in found:
            return None
        after[key] = found if isinstance(held, list) else found[0]
    return stored if after == before else json.dumps(data | after)


def _rotate_rows(
    model: type[models.Model], column: str, renew_stored: Callable[[str], str | None],
    make_value: Callable[[str], models.Value], empty: Collection[str] = (),
) -> Rotation:  # fmt: skip
    report = Rotation(f"{model._meta.label}.{column}")
    rows = model._base_manager.annotate(stored=Cast(column, models.TextField()))
    held = rows.exclude(stored__in=empty).exclude(stored=None)
    for pk, stored in held.order_by("pk").values_list("pk", "stored").iterator():
        new = renew_stored(stored)
        if new is None:
            report.kept[pk] = WORDS
        elif new == stored:
            report.current += 1
        elif rows.filter(pk=pk, stored=stored).update(**{column: make_value(new)}):
            report.renewed += 1
        else:
            report.changed += 1
    return report
