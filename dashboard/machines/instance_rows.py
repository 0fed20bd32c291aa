"""Writes the rows of a list of instances.

The list is most of what the page of a machine shows, and is fetched again while it is watched. Fifty rows of three
columns are four thousand nodes of a template, and took half of the page's time; here they are text with values in
between. Every value is escaped. ``templates/signalbox/machines/_instances.html`` has the table around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from django.utils.safestring import SafeString

from dashboard.shared.addresses.page_addresses import find_instance_address
from dashboard.shared.times import times
from machines.engine import Instance

from .columns import Column, read_text

PICK = """<td class="pick"><label><input type="checkbox" name="pick" value="{id}"
    aria-label="Select {id}"></label></td>"""
ROW = """<tr data-row="{id}" data-states="{state}" data-revision="{revision}">
  {pick}
  <th scope="row"><a class="key" href="{url}">{id}</a></th>
  <td data-cell="states">{states}{held}{trouble}</td>
  {cells}
</tr>
"""
HELD = '<span class="held">suspended</span>'

# How a column is drawn, by its kind. ``now``: ms that ages count from.
Cell = Callable[[Instance, Column, float], str]
CELLS: dict[str, Cell] = {
    "time": lambda one, column, now: (
        f'<td class="num" data-cell="entered">{times.format_ticking(one.entered, now, "ago")}</td>'
    ),
    "revision": lambda one, column, now: f'<td class="num wide" data-cell="revision">{one.revision}</td>',
    "age": lambda one, column, now: f'<td class="num wide faint">{times.format_ticking(one.created, now, "ago")}</td>',
    "entered": lambda one, column, now: (
        f'<td class="num wide" data-cell="since">{times.format_element(one.entered)}</td>'
    ),
    "created": lambda one, column, now: f'<td class="num wide">{times.format_element(one.created)}</td>',
    "version": lambda one, column, now: f'<td class="num wide" data-cell="version">{one.version}</td>',
    "actor": lambda one, column, now: f'<td class="wide" data-cell="actor">{escape(one.actor)}</td>',
    "suspended": lambda one, column, now: (
        f'<td class="wide" data-cell="suspended">{"yes" if one.suspended else "no"}</td>'
    ),
    "data": lambda one, column, now: f'<td class="wide" data-cell="data">{escape(read_text(one, column))}</td>',
}


def write_rows(
    instances: Sequence[Instance],
    columns: Sequence[Column],
    wrong: Mapping[str, Sequence[Any]],
    *,
    now: float,
    picks: bool,
    current_app: str | None = None,
) -> SafeString:
    """Write a row for each instance. ``wrong``: id -> its errors; ``picks``: with a box to select it."""
    drawn = [(column, CELLS[column.kind]) for column in columns]
    return SafeString(
        "".join(_write_row(one, drawn, wrong.get(one.id, ()), now, picks, current_app) for one in instances)
    )


def _write_row(
    one: Instance,
    columns: Sequence[tuple[Column, Cell]],
    errors: Sequence[Any],
    now: float,
    picks: bool,
    current_app: str | None,
) -> str:
    id, final = escape(one.id), " final" if one.done else ""
    return ROW.format(
        id=id,
        state=escape(one.state),
        revision=one.revision,
        pick=PICK.format(id=id) if picks else "",
        url=escape(find_instance_address(one.machine, one.id, current_app)),
        states="".join(f'<span class="state{final}">{escape(leaf)}</span>\n    ' for leaf in one.configuration),
        held=HELD if one.suspended else "",
        trouble=f'\n    <span class="trouble bad">✕ {escape(errors[0].kind or "error")}</span>' if errors else "",
        cells="\n  ".join(draw(one, column, now) for column, draw in columns),
    )
