"""Models that django-fsm-2 drives, as a project would have them, and nothing of Signalbox."""

from __future__ import annotations

from django.db import models
from django_fsm import GET_STATE, RETURN_VALUE, FSMField, FSMIntegerField, transition

from .flows import Door, Lamp, Parcel, Report  # noqa: F401


class Purchase(models.Model):
    """Two fields, each with transitions of its own."""

    state = FSMField(default="new")
    parcel = FSMIntegerField(default=0, choices=[(0, "Waiting"), (10, "Packed"), (20, "Sent")])
    paid = models.BooleanField(default=True)

    def __str__(self) -> str:
        return f"purchase {self.pk}"

    def is_paid(self) -> bool:
        return self.paid

    @transition(state, source="new", target="confirmed", conditions=[is_paid], permission="auth.view_user")
    def confirm(self, by=None):
        """Confirm it."""

    @transition(state, source=["new", "confirmed"], target="shipped", on_error="failed", custom={"label": "Ship it"})
    def ship(self, raises=False):
        if raises:
            raise ValueError("no carrier")

    @transition(state, source="+", target="canceled", conditions=[lambda purchase: True])
    def cancel(self):
        pass

    @transition(state, source="shipped", target=None)
    def remind(self):
        pass

    @transition(state, source="failed", target=RETURN_VALUE("new", "confirmed"))
    def retry(self, to="new"):
        return to

    @transition(state, source="new", target="confirmed")
    def assign(self, carrier: str, boxes: int = 1, by=None, description=""):
        if boxes < 0:
            raise ValueError("boxes are counted")
        self.paid = carrier != "nobody"

    @transition(state, source="canceled", target=GET_STATE(lambda self, to: to))
    def reopen(self, to):
        pass

    @transition(parcel, source=0, target=10)
    def pack(self):
        pass

    @transition(parcel, source=10, target=20)
    def send(self):
        pass


class Basket(models.Model):
    """Columns of many types."""

    state = FSMField(default="open")
    number = models.CharField(max_length=20, unique=True)
    amount = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    due = models.DateTimeField(null=True)
    gift = models.BooleanField(default=False)
    buyer = models.ForeignKey("auth.User", null=True, on_delete=models.SET_NULL)
    serial = models.BigIntegerField(null=True)
    facts = models.JSONField(default=dict)

    def __str__(self) -> str:
        return self.number

    @transition(state, source="open", target="paid")
    def pay(self):
        self.amount = 0


class Gift(Purchase):
    """A child with a table of its own."""

    words = models.CharField(max_length=20, default="")

    def __str__(self) -> str:
        return f"gift {self.pk}"
