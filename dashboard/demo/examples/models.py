"""A table whose rows another state library moves, beside the machines that the engine moves."""

from django.db import models


class Visit(models.Model):
    """A technician's visit. The rules of its status are in ``visits``."""

    customer = models.CharField(max_length=40)
    status = models.CharField(max_length=20, default="booked")

    def __str__(self) -> str:
        return f"visit at {self.customer}"
