"""A form with one field for each field that a definition declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from machines.engine.definitions import FieldOutline

from .inputs import JsonText, field_for
from .rendering import PageForm

MORE = "*"
"""Name of the field for whatever else an open payload carries; no declared field can be called that."""


class TypedForm(PageForm):
    """One input for each declared field, of the declared type. ``is_open`` adds one for additional fields as JSON."""

    def __init__(
        self,
        outlines: Iterable[FieldOutline],
        *,
        is_open: bool = False,
        prefix: str = "payload",
        id_prefix: str = "f",
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, prefix=prefix, auto_id=f"{id_prefix}-%s")
        for outline in outlines:
            self.fields[outline.name] = field_for(outline)
        if is_open:
            self.fields[MORE] = JsonText(label="additional fields", type_name="JSON object", rows=2)

    def list_declared(self) -> list[forms.BoundField]:
        """Return the inputs of the fields that have a name."""
        return [self[name] for name in self.fields if name != MORE]

    def more(self) -> forms.BoundField | None:
        """Return the input for whatever else an open payload carries."""
        return self[MORE] if MORE in self.fields else None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get(MORE) is not None and not isinstance(cleaned[MORE], dict):
            self.add_error(MORE, 'Enter a JSON object, such as {"token": "MTOB1J"}.')
        return cleaned

    def values(self) -> dict[str, Any]:
        """Return what was entered, without the fields that were left blank. Only after ``is_valid()``."""
        further = self.cleaned_data.get(MORE) or {}
        return dict(further) | {
            name: entered for name, entered in self.cleaned_data.items() if name != MORE and entered is not None
        }

    def blame(self, field: str | None, message: str) -> None:
        """Put an error the engine found beside the input it is about."""
        name = field if field in self.fields else MORE if MORE in self.fields else None
        self.add_error(name, message)
