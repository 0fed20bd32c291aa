"""The orders that a worker can be given, and their form."""

from __future__ import annotations

from django import forms

from machines.instances.forms import REASON_LIMIT, PageForm

ORDERS = {
    "quiet": ("Quiet", "will take no more jobs and finish the running ones"),
    "work": ("Resume", "will take jobs again"),
    "stop": ("Stop", "will stop, finish what it can before its deadline and return the rest"),
}
"""order -> its button, and what a page says once it is given."""
OPEN_TO = {
    "working": ("quiet", "stop"),
    "blocked": ("quiet", "stop"),
    "quiet": ("work", "stop"),
    "exhausted": ("stop",),
    "stopping": (),
}
"""status -> the orders that mean something to it."""


class OrderForm(PageForm):
    order = forms.ChoiceField(choices=[(order, label) for order, (label, _) in ORDERS.items()])
    reason = forms.CharField(
        max_length=REASON_LIMIT, error_messages={"required": "Enter a reason. It is recorded in the audit."}
    )
