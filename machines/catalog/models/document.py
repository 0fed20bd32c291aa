"""A model field for JSON documents that keeps the order of keys."""

from __future__ import annotations

import json
from typing import Any

from django.db import models


class DocumentField(models.TextField):
    """JSON kept as text, because ``jsonb`` of PostgreSQL reorders keys, and transitions count in document order.

    Everything outside ASCII is escaped: text columns refuse NUL and lone surrogates, JSON allows both.
    """

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""
