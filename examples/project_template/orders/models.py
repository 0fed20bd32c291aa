from django.db import models

from machines.fields import MachineField


class Order(models.Model):
    total = models.IntegerField()
    status = MachineField("order", follows=["total"])

    def __str__(self) -> str:
        return f"order {self.pk}"
