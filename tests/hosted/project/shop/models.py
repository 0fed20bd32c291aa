"""The accounts of the shop: its own user model, with a key of the old kind."""

from django.contrib.auth.models import AbstractUser
from django.db import models


class Customer(AbstractUser):
    points = models.IntegerField(default=0)
