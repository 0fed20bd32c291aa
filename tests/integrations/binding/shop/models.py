"""A shop with orders, as a project would have it."""

from __future__ import annotations

from django.db import models

from machines.fields import MachineField


class Order(models.Model):
    number = models.CharField(max_length=20, default="")
    total = models.IntegerField(default=0)
    status = MachineField("order", data=lambda order: {"total": order.total})

    def __str__(self) -> str:
        return f"order {self.pk}"


class Stamped(models.Model):
    """An abstract model that brings the field along."""

    made = models.IntegerField(default=0)

    class Meta:
        abstract = True


class Parcel(Stamped):
    """Its instances have the parcel's number as id, and go with it."""

    number = models.CharField(max_length=20, unique=True)
    place = MachineField("parcel", id_from="number", on_delete="delete")

    def __str__(self) -> str:
        return f"parcel {self.number}"


class LargeParcel(Parcel):
    """A child with a table of its own: the columns are the parent's."""

    weight = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"large parcel {self.number}"


class PlainParcel(models.Model):
    """A table that a project keeps in step by hand, to compare with."""

    number = models.CharField(max_length=20, unique=True)
    made = models.IntegerField(default=0)
    place = models.CharField(max_length=255, db_index=True, default="")

    def __str__(self) -> str:
        return f"plain parcel {self.number}"


class Entry(models.Model):
    """A ledger of what was asked of parcels, written beside the asking."""

    token = models.CharField(max_length=40, unique=True)
    kind = models.CharField(max_length=9)

    def __str__(self) -> str:
        return f"{self.kind} {self.token}"


class Bill(models.Model):
    """Its machine decides by columns that it follows."""

    total = models.IntegerField(default=0)
    discount = models.DecimalField(max_digits=6, decimal_places=2, null=True)
    note = models.CharField(max_length=20, default="")
    state = MachineField("bill", follows={"total": "total", "off": "discount"})

    def __str__(self) -> str:
        return f"bill {self.pk}"
