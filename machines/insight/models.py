"""The facts of insight where they are kept in a database. Only ``machines.insight.places`` reads and writes them."""

from django.db import models


class InsightManifest(models.Model):
    """What the facts of a machine are. ``generation`` counts its changes: who knows the latest one makes the next."""

    machine = models.CharField(max_length=64, primary_key=True)
    generation = models.PositiveBigIntegerField()
    text = models.TextField(help_text="JSON")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.machine}, generation {self.generation}"


class InsightPart(models.Model):
    """A piece of a Parquet file that a manifest names."""

    pk = models.CompositePrimaryKey("machine", "name", "number")
    machine = models.CharField(max_length=64)
    name = models.CharField(max_length=64)
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, help_text="SHA-256 of the body, hexadecimal")
    body = models.BinaryField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.machine}/{self.name}, part {self.number}"
