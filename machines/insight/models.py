"""The facts of insight where they are kept in a database. Only ``machines.insight.places`` reads and writes them."""

from django.db import models

from machines.conf.base_model import BaseModel


class InsightManifest(BaseModel):
    """What the facts of a machine are. ``generation`` counts its changes: who knows the latest one makes the next."""

    machine = models.CharField(max_length=64, primary_key=True)
    generation = models.PositiveBigIntegerField()
    text = models.TextField(help_text="JSON")


class InsightPart(BaseModel):
    """A piece of a Parquet file that a manifest names."""

    pk = models.CompositePrimaryKey("machine", "name", "number")
    machine = models.CharField(max_length=64)
    name = models.CharField(max_length=64)
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, help_text="SHA-256 of the body, hexadecimal")
    body = models.BinaryField()
