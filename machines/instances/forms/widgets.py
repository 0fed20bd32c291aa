"""Widgets of two inputs side by side that make one field. The first input has the label."""

from __future__ import annotations

import json
from typing import Any

from django import forms

PLAIN = {"autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"}


class Pair(forms.MultiWidget):
    """The tilde in ``second`` keeps the second input's name apart from every field's own."""

    use_fieldset = False

    def __init__(self, second: str, beside: forms.Widget) -> None:
        super().__init__({"": forms.TextInput(PLAIN), f"~{second}": beside})

    def id_for_label(self, id_: str) -> str:
        return f"{id_}_0"

    def use_required_attribute(self, initial: Any) -> bool:
        return False  # a browser would ask for both of the two


class TextOrEmpty(Pair):
    """A text, and a box to tick when it is meant to be empty rather than not sent."""

    template_name = "signalbox/forms/text_or_empty.html"

    def __init__(self) -> None:
        super().__init__("empty", forms.CheckboxInput())

    def decompress(self, value: Any) -> list[Any]:
        return [value, value == ""]


class TextAndKind(Pair):
    """A text, and what to read it as."""

    kinds = (("text", "text"), ("json", "JSON"))

    def __init__(self) -> None:
        super().__init__("kind", forms.Select({"aria-label": "Format"}, choices=self.kinds))

    def decompress(self, value: Any) -> list[Any]:
        if value is None:
            return ["", "text"]
        return [value, "text"] if isinstance(value, str) else [json.dumps(value), "json"]
