"""Pages of a list: the rows of one, and the addresses of its tabs and of the other pages."""

from collections.abc import Iterable
from typing import Annotated, Any, Self, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest
from pydantic import BaseModel, Field, ValidationError

from .addresses import find_page_address, parse_number

Row = TypeVar("Row", bound=Model)
Text = Annotated[str, Field(pattern="^[^\\x00]*$")]
"""What a database can look for."""
ID_DIGITS = 18


def cut_page(found: QuerySet[Row], before: int | None, size: int) -> tuple[list[Row], int | None]:
    """Return the newest rows whose id is less than ``before``, and the id where the next page begins; None after the
    last."""
    found = found.order_by("-pk")
    rows = list((found if before is None else found.filter(pk__lt=before))[: size + 1])
    return rows[:size], rows[size - 1].pk if len(rows) > size else None


class Terms(BaseModel):
    """What narrows a list: the query of an operation of the API, and of the address of the page with the same list."""

    @classmethod
    def of_page(cls, request: HttpRequest) -> Self:
        """Read the address of a page. Blank terms narrow nothing. Raise Http404 for one that makes no sense."""
        try:
            return cls.model_validate({name: text for name, text in request.GET.items() if text})
        except ValidationError:
            raise Http404("Unknown filter.") from None


def read_place(request: HttpRequest) -> int | None:
    """Read ``?before=``, the id where a page begins; None for the first page. Raise Http404 for no id."""
    if not (text := request.GET.get("before", "")):
        return None
    if not (place := parse_number(text, ID_DIGITS)):
        raise Http404("Unknown page.")
    return place


class ListLinks:
    """Makes the addresses of a list: with its filters, from its first page on, and with what a link changes."""

    def __init__(self, name: str, *args: str | int, **filters: Any) -> None:
        """Take the name of the page, the names in its address, and its filters. Empty ones are left out."""
        self._address = find_page_address(f"signalbox:{name}", *args)
        self._filters = filters

    def url(self, **changes: Any) -> str:
        query = urlencode({name: term for name, term in (self._filters | changes).items() if term})
        return f"{self._address}?{query}" if query else self._address

    def tabs(self, name: str, choices: Iterable[tuple[str, Any]]) -> list[tuple[str, str, bool]]:
        """Return a tab for each value of a filter: label, address, whether it is chosen."""
        return [(label, self.url(**{name: value}), value == self._filters[name]) for value, label in choices]

    def pages(self, name: str, here: Any, further: Any) -> dict[str, str]:
        """Return the context of ``shared/_older.html``. ``name`` of the term that says where a page begins; ``here``:
        its value for this page; ``further``: for the next one."""
        return {"first": self.url() if here else "", "older": self.url(**{name: further}) if further else ""}
