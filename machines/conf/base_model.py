"""What all tables of the product have in common."""

from django.db import models


class BaseModel(models.Model):
    """A table of the product. It brings no permissions: rights are those of ``machines.people.permissions``."""

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"
