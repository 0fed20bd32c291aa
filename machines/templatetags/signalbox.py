"""Template filters for projects that bind a machine to a model: ``{% load signalbox %}``."""

from typing import Any

from django import template
from django.utils.safestring import SafeString

from machines.engine import SignalboxError
from machines.integrations.binding.bound_state import BoundState

register = template.Library()


@register.filter
def diagram(state: Any) -> str | SafeString:
    """Return the diagram of a machine field's machine with the state highlighted: ``{{ order.status|diagram }}``.

    The page links ``signalbox/admin/diagram.css``. Where the machine is not published, or nobody knows, it is "".
    """
    if not isinstance(state, BoundState):
        return ""
    try:
        return state.diagram()
    except SignalboxError:
        return ""
