"""The preferences of a person: theme, time zone, clock, live updates, keyboard shortcuts."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Preferences(models.Model):
    """Who has none gets the site's time zone and is offered the browser's once. What machines read stays in UTC."""

    class Clock(models.IntegerChoices):
        DAY = 24, "24 hours: 14:05"
        HALF = 12, "12 hours: 2:05 pm"

    class Theme(models.TextChoices):
        SYSTEM = "", "as the system"
        LIGHT = "light", "light"
        DARK = "dark", "dark"

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="preferences"
    )
    time_zone = models.CharField(max_length=64, blank=True)  # an IANA name; "" where the person never chose
    clock = models.PositiveSmallIntegerField(choices=Clock.choices, default=Clock.DAY)
    calm = models.BooleanField(default=False)  # pages change every few seconds, and nothing on them moves
    theme = models.CharField(max_length=5, choices=Theme.choices, default=Theme.SYSTEM, blank=True)
    keys = models.BooleanField(default=True)  # single letters are shortcuts

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"preferences of {self.user}"
